"""The compiled loop of binding native: `loop.c`, which is compiled when omb-py is installed."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from omb_py.core.errors import MissingError

FILE = os.path.join(os.path.dirname(__file__), "libloop.so")

POINTERS = (ctypes.c_void_p,) * 2, (ctypes.c_void_p,) * 3
"""Of the rows and bounds of ``omb_py_run``; of its start, lateness and seconds."""


@cache
def library() -> ctypes.CDLL:
    """Return the loop's functions.

    Raises `MissingError` where omb-py was installed without a C compiler.
    """
    try:
        found = ctypes.CDLL(FILE)
    except OSError as error:
        raise MissingError(
            "binding native has no compiled loop here, for there was no C compiler when omb-py "
            "was installed: install one (gcc) and omb-py again, or use --binding prebound "
            f"({error})"
        ) from None
    first, last = POINTERS
    found.omb_py_run.argtypes = [*first, ctypes.c_int64, ctypes.c_int64, *last]
    found.omb_py_run.restype = ctypes.c_int64
    return found


def address(name: str) -> int:
    """Return where a function of `library` is; raises as that does."""
    return ctypes.cast(getattr(library(), name), ctypes.c_void_p).value or 0
