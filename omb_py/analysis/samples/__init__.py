"""Samples of single iterations: reading them, and what their order and their times tell."""
