"""The walk of a run through the code: what rank 0 calls from one file of omb-py into another.

Usage: mpiexec -n 2 python -m perf.walk latency -m 8:8 -i 1 -x 0 --quiet

A reader has to follow each such call once, however often it is made. Files that call each other
are read back and forth. `core/dataclass.py`, which fills data classes, is left out.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import omb_py
from omb_py.cli import main
from omb_py.core.mpi import launcher

ROOT = f"{Path(omb_py.__file__).parent}/"
LEFT_OUT = "core/dataclass.py"


class Walk:
    """The calls from file to file: caller's file and function, then those of what it calls."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str, str, str]] = Counter()

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call from another file of omb-py, perhaps by way of a library."""
        here = place(frame)
        if event != "call" or here is None or frame.f_code.co_name == "<module>":
            return
        caller = frame.f_back
        while caller is not None and place(caller) is None:
            caller = caller.f_back
        there = None if caller is None else place(caller)
        if caller is not None and there is not None and there != here:
            self.calls[there, caller.f_code.co_name, here, frame.f_code.co_name] += 1

    def report(self) -> str:
        """Return the numbers, and the files that call each other."""
        pairs = {(there, here) for there, _, here, _ in self.calls}
        files = {file for pair in pairs for file in pair}
        mutual = sorted((a, b) for a, b in pairs if a < b and (b, a) in pairs)
        lines = [
            f"{len(files)} files, {len(pairs)} pairs of files, {len(self.calls)} calls into "
            f"another file, made {self.calls.total()} times; call each other:"
        ]
        return "\n".join([*lines, *(f"  {a}  {b}" for a, b in mutual)])


def place(frame: FrameType) -> str | None:
    """Return the file of a frame, below omb_py; None for any other."""
    path = frame.f_code.co_filename
    return path.removeprefix(ROOT) if path.startswith(ROOT) and LEFT_OUT not in path else None


if __name__ == "__main__":
    walk = Walk()
    sys.setprofile(walk.profile)
    try:
        main()
    finally:
        sys.setprofile(None)
        if launcher.rank() in (0, None):
            print(walk.report(), file=sys.stderr, flush=True)
