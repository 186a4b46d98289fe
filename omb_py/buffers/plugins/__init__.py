"""Members that reach the suite as anybody's do, by entry points: examples to start from."""
