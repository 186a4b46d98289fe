"""omb-py, which says at its end how many iterations each rank has made."""

from __future__ import annotations

import atexit
import sys
from array import array

from omb_py.cli import main
from omb_py.core.calls.loop import PythonLoop
from omb_py.core.mpi import launcher

run = PythonLoop.run
made = 0


def counting(loop: PythonLoop, first: int, seconds: array[float]) -> None:
    """Run iterations, and count them."""
    global made
    made += len(seconds)
    run(loop, first, seconds)


PythonLoop.run = counting  # type: ignore[assignment,method-assign]
atexit.register(lambda: print(f"rank {launcher.rank()} made {made}", file=sys.stderr, flush=True))
main()
