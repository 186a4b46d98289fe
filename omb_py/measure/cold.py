"""Cold caches: what lay in them is pushed out before each iteration, outside the time."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path

from omb_py.benchmarks import Plan
from omb_py.buffers import TIMES_CACHE, Buffer
from omb_py.core.calls import Call, Step
from omb_py.core.dataclass import replace
from omb_py.core.errors import OutOfMemoryError, UnsupportedError
from omb_py.core.memory import Local
from omb_py.measure.bounds import SYS, caches

USUAL_CACHE = 32 << 20
"""Bytes of the largest cache if the system does not say."""


class Flush:
    """Pushes messages out of the caches of a rank's core or device."""

    def __init__(self, buffer: Buffer) -> None:
        """Prepare the flush; raise `OutOfMemoryError` without room for the data to read instead."""
        self.steps: tuple[Step, ...] = buffer.flush() or host_flush()

    def before(self, plan: Plan) -> Plan:
        """Return the plan with a flush before each iteration, then a barrier for slower ranks.

        Raises `UnsupportedError` for a plan of several threads.
        """
        if plan.threads > 1:
            raise UnsupportedError("--cold is for one thread a rank: leave it out, or use -t 1")
        exchanges = (
            replace(exchange, before=(*self.steps, Call("barrier"), *exchange.before))
            for exchange in plan.exchanges
        )
        return replace(plan, exchanges=tuple(exchanges))


def host_flush(root: Path = SYS) -> tuple[Local]:
    """Return a step that reads `TIMES_CACHE` times the largest cache, and so empties it.

    The C library compares two halves of a block, with ordinary loads: its writes of large blocks
    bypass caches. Raises `OutOfMemoryError`.
    """
    half = TIMES_CACHE * max(caches(root).values(), default=USUAL_CACHE) // 2
    try:
        block = bytearray(b"\1") * (2 * half)  # written: pages never written are all one
    except MemoryError:
        raise OutOfMemoryError(
            f"--cold needs {2 * half >> 20} MiB on each rank: start fewer ranks on a host"
        ) from None
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    compare = ctypes.CDLL(None).memcmp
    arguments = address, address + half, half
    compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    function = ctypes.cast(compare, ctypes.c_void_p).value or 0
    return (Local("flush", partial(compare, *arguments), function, arguments, kept=block),)
