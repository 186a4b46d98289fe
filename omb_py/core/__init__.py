"""The ground floor: errors, options, memory, element types, text, the MPI job, calls."""

import time

VERSION = "1.0.0"

DISTRIBUTION = "omb-python"
"""The name of omb-py on PyPI, for pip; `omb-py` on PyPI is another project."""

BEGAN = time.perf_counter()
BEGAN_CPU = time.process_time()
"""Start of omb-py's import, and the CPU time that its process had used by then, in seconds."""
