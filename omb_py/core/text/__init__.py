"""Words, numbers, units and tables as people read and write them, and files."""
