"""The ground floor: errors, options, memory, element types, text, the MPI job, calls."""

import time

VERSION = "0.1.0"

DISTRIBUTION = "omb-python"
"""The name by which pip knows omb-py: `omb-py` on PyPI is another project."""

BEGAN = time.perf_counter()
BEGAN_CPU = time.process_time()
"""When omb-py began to be imported, and the CPU time that its process had used, in seconds."""
