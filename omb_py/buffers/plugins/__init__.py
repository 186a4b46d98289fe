"""Buffers that are found by entry points, as those of other distributions: examples."""
