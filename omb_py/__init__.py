"""omb-py: what communication costs from Python, on this machine, with these arrays."""

import time

__version__ = "0.1.0"

BEGAN = time.perf_counter()
BEGAN_CPU = time.process_time()
"""When the first line of omb-py ran, and the CPU time that its process had used, in seconds."""
