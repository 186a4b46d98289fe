"""Tests: their folders are those of omb_py, but for what docs/testing.md names."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The repository."""
