"""Tests: their folders are those of omb_py, but for what docs/testing.md names."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The repository."""

RESULTS = ROOT / "tests" / "data" / "results"
"""What omb-py 0.1.0 and native OMB 7.4 measured on two cores; results/ is measured anew."""
