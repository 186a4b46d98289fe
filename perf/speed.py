"""What the suite adds to mpi4py, and what both add to C; interleaved, medians and ratios.

Usage: python perf/speed.py [ROUNDS]   (compiles perf/ping_pong.c with the MPI's own mpicc)
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
MPIEXEC = [str(BIN / "mpiexec"), "-n", "2"]
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,sm",
}
SIZE, ITERATIONS = "8", "10000"


def run(*command: str) -> str:
    return subprocess.run(
        [*MPIEXEC, *command], env=ENVIRONMENT, check=True, capture_output=True, text=True
    ).stdout


def omb_py() -> tuple[float, float]:
    text = run(str(BIN / "omb-py"), "latency", "--sizes", SIZE, "-i", ITERATIONS, "--format", "csv")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    row = next(rows)
    return float(row["latency_us"]), float(row["sample_p50_us"])


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "ping_pong")
        subprocess.run(
            [BIN / "mpicc", "-O2", "-o", program, HERE / "ping_pong.c"], env=ENVIRONMENT, check=True
        )
        c_times: list[tuple[float, float]] = []
        python_times: list[tuple[float, float]] = []
        for _ in range(rounds):
            mean, middle = run(program, SIZE, ITERATIONS).split()
            c_times.append((float(mean), float(middle)))
            python_times.append(omb_py())
    print(f"8-byte latency, {rounds} interleaved runs each, median over runs, us")
    print(f"{'':<28}{'mean':>8}{'median':>8}")
    for name, times in (("C", c_times), ("omb-py, binding buffer", python_times)):
        print(f"{name:<28}{median(t[0] for t in times):8.3f}{median(t[1] for t in times):8.3f}")
    ratios = [median(p[k] / c[k] for p, c in zip(python_times, c_times)) for k in (0, 1)]  # noqa: B905
    print(f"{'ratio (median of pairs)':<28}{ratios[0]:8.3f}{ratios[1]:8.3f}\n")

    print(f"time per MPI call in one job, {rounds} interleaved rounds, median, us")
    loops = {}
    for line in run(sys.executable, str(HERE / "loops.py"), str(rounds)).splitlines():
        name, *values = line.split()
        loops[name] = [float(value) for value in values]
    for name, values in loops.items():
        base = loops[name.rpartition(".")[0] + ".hand"]
        added = median(value - other for value, other in zip(values, base))  # noqa: B905
        print(f"{name:<28}{median(values):8.3f}{added:+8.3f} over hand")


if __name__ == "__main__":
    main()
