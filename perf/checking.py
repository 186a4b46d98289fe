"""What -c costs, and how good the guess of a sweep's time is: seconds said and taken, both ways.

Usage: python -m perf.checking [BENCHMARK …]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from omb_py.sweeps.forecast import guess
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.point_options import Setting, planned_sizes
from omb_py.sweeps.points import SweepPoint
from omb_py.sweeps.targets import parse_target, target

BIN = Path(sys.executable).parent
BENCHMARKS = ("latency", "bw", "allreduce", "alltoall", "put_latency")
MACHINE = Machine(name="here", nodes=1)


def point_of(name: str, checked: bool) -> SweepPoint:
    """Two ranks and the benchmark's own sizes and counts."""
    settings = (Setting("validation", True),) if checked else ()
    point = SweepPoint(name, "numpy", "buffer", 1, 2, (), settings)
    options = parse_target(name, point.arguments(())[1:])
    sizes, _ = planned_sizes(target(name), options, None, 2)
    return SweepPoint(name, "numpy", "buffer", 1, 2, sizes, settings)


def taken(point: SweepPoint) -> float:
    """Seconds from the launcher's start to its end."""
    command = [str(BIN / "mpiexec"), "-n", "2", str(BIN / "omb-py"), *point.arguments(point.sizes)]
    begin = time.monotonic()
    subprocess.run([*command, "-q"], check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


def main() -> None:
    print(f"{'benchmark':<14}{'-c':>4}{'said (s)':>10}{'taken (s)':>11}")
    for name in sys.argv[1:] or BENCHMARKS:
        for checked in (False, True):
            point = point_of(name, checked)
            said, took = guess(point, MACHINE), taken(point)
            print(f"{name:<14}{'-c' * checked:>4}{said:10.1f}{took:11.1f}", flush=True)


if __name__ == "__main__":
    main()
