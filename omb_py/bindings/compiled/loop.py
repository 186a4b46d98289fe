"""The compiled loop of binding native: `loop.c`, which is compiled when omb-py is installed.

Ranks without mpi4py compute by it, too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

from omb_py.core.errors import MissingError, source_tree

FILE = os.path.join(os.path.dirname(__file__), "libloop.so")


@cache
def compiled() -> ctypes.CDLL:
    """Return the loop's functions.

    Raises `MissingError` if omb-py was installed without a C compiler, not on Linux, or not at all.
    """
    try:
        # CDLL gives up Python's lock during a call, so that a rank's threads run at once
        found = ctypes.CDLL(FILE)
    except OSError as error:
        raise MissingError(f"binding native has no compiled loop: {_why(error)}") from None
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    found.omb_py_run.argtypes = [*[pointer] * 2, *[word] * 2, *[pointer] * 3]
    found.omb_py_run.restype = word
    return found


def _why(error: OSError) -> str:
    """Return why there is no loop, and what to do."""
    if sys.platform != "linux":
        return (
            "it exists only on Linux, whose calling conventions it follows; "
            "use --binding prebound, or a container"
        )
    if os.path.exists(FILE):
        return f"{error}; install omb-py again on this machine, or use --binding prebound"
    if tree := source_tree():  # it may hide an omb-py that is installed, and complete
        return (
            f"omb-py comes from {tree}, a source tree that was never built: leave that folder if "
            f"omb-py is installed, else pip install -e {tree} with a C compiler (gcc), or use "
            "--binding prebound"
        )
    return (
        "there was no C compiler when omb-py was installed: install one (gcc) and omb-py again, "
        "or use --binding prebound; all other bindings work"
    )


def address_in_loop(name: str) -> int:
    """Return the address of a function of `compiled`; raises as that does."""
    return ctypes.cast(getattr(compiled(), name), ctypes.c_void_p).value or 0
