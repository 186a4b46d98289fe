"""Memory of a rank as the job grows: omb-py beside a program that only starts MPI.

Usage: python -m perf.memory [RANKS ...]   Prints the private memory of the ranks in MiB.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median

from perf.jobs import BIN, ENVIRONMENT

ON_FEW_CORES = ENVIRONMENT | {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "16",
}
REPORT = """
import atexit, sys
def private():
    lines = open("/proc/self/status").read().splitlines()
    (line,) = [line for line in lines if line.startswith("RssAnon")]
    print("PRIVATE", line.split()[1], file=sys.stderr, flush=True)
"""
PROGRAMS = {
    "bare": REPORT
    + """
import mpi4py
mpi4py.rc.thread_level = "single"
from mpi4py import MPI
import numpy, click
data = numpy.ones(2, "i4"), numpy.ones(2, "i4")
for _ in range(10):
    MPI.COMM_WORLD.Allreduce(*data)
    MPI.COMM_WORLD.Barrier()
private()
""",
    "omb-py": REPORT
    + """
import sys
from omb_py.core.job import Job
close = Job._close
def reporting(job):
    private()
    close(job)
Job._close = reporting
from omb_py.cli import main
sys.argv = ["omb-py", "allreduce", "-m", "8", "-i", "10", "-x", "0"]
main()
""",
}


def private_memory(program: str, ranks: int) -> list[float]:
    """Private memory of each rank in MiB at the end of a program."""
    command = [str(BIN / "mpiexec"), "-n", str(ranks), sys.executable, "-c", program]
    done = subprocess.run(command, env=ON_FEW_CORES, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("PRIVATE")]
    return [int(line.split()[1]) / 1024 for line in lines]


def main() -> None:
    print(f"{'ranks':>6}" + "".join(f"{name:>10} {'(max)':>7}" for name in PROGRAMS) + "     added")
    for ranks in [int(argument) for argument in sys.argv[1:]] or [2, 16, 64]:
        found = [private_memory(program, ranks) for program in PROGRAMS.values()]
        cells = "".join(f"{median(values):10.1f} {max(values):7.1f}" for values in found)
        print(f"{ranks:6d}{cells}{median(found[1]) - median(found[0]):10.2f}")


if __name__ == "__main__":
    main()
