"""Machine code for the native binding: programs of calls, compiled once and kept."""
