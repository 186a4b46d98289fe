"""omb-py: what communication costs from Python, on this machine, with these arrays."""

__version__ = "0.1.0"
