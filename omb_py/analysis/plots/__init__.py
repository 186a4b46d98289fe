"""WHAT IT LOOKS LIKE: figures of results, in files and in terminals."""
