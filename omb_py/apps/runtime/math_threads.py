"""The number of threads of BLAS and OpenMP in one rank: limited, and reported.

Without a limit each rank takes as many as there are cores, which with several ranks costs a factor
of ten and more, and makes one rank's time that of the whole machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from omb_py.core.errors import installing

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Environment variables that libraries read when they are loaded."""


def request_threads(threads: int) -> None:
    """Have libraries that are loaded from now on take so many threads."""
    for variable in VARIABLES:
        os.environ[variable] = str(threads)


NOT_SET = (
    "threads of the numerical library were not set, only asked for by OMP_NUM_THREADS and its like,"
    f" and ranks share a host: install threadpoolctl by {installing('apps')}"
)


@contextmanager
def limit_threads(threads: int) -> Iterator[str | None]:
    """Make the loaded libraries take so many threads.

    Yields the libraries, with their versions and their numbers of threads; None without
    threadpoolctl, which alone can set them.
    """
    try:
        from threadpoolctl import threadpool_info, threadpool_limits
    except ModuleNotFoundError:
        yield None
        return
    with threadpool_limits(threads):
        found = {
            f"{pool['internal_api']} {pool['version'] or ''}".strip() + f" ({pool['num_threads']})"
            for pool in threadpool_info()
        }
        yield ", ".join(sorted(found)) or "no library with threads"
