"""What the suite adds to mpi4py, and what both add to C; interleaved, medians and ratios.

Usage: python perf/speed.py [ROUNDS]   (compiles perf/reference.c with the MPI's own mpicc)
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


def numbers(text: str) -> tuple[float, float]:
    mean, middle = text.split()
    return float(mean), float(middle)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "reference")
        subprocess.run(
            [BIN / "mpicc", "-O2", "-o", program, HERE / "reference.c"], env=ENVIRONMENT, check=True
        )
        contenders = {
            "C": lambda: numbers(run(program, "latency", SIZE, ITERATIONS)),
            "omb-py, binding buffer": omb_py,
            "plain mpi4py, multiple": lambda: numbers(
                run(sys.executable, str(HERE / "plain.py"), SIZE, ITERATIONS)
            ),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, contender in contenders.items():
                times[name].append(contender())
    print(f"{SIZE}-byte latency, {rounds} interleaved runs each: median over the runs of")
    print(f"{'':<26}{'mean us':>9}{'median us':>11}{'ratio to C':>12}{'of medians':>12}")
    for name, values in times.items():
        middles = [median(value[k] for value in values) for k in (0, 1)]
        ratios = [
            median(value[k] / c[k] for value, c in zip(values, times["C"], strict=True))
            for k in (0, 1)
        ]
        print(f"{name:<26}{middles[0]:9.3f}{middles[1]:11.3f}{ratios[0]:12.3f}{ratios[1]:12.3f}")

    print(f"\ntime per MPI call in one job, {rounds} interleaved rounds, median, us")
    loops = {}
    for line in run(sys.executable, str(HERE / "loops.py"), str(rounds)).splitlines():
        name, *values = line.split()
        loops[name] = [float(value) for value in values]
    for name, values in loops.items():
        base = loops[name.rpartition(".")[0] + ".hand"]
        added = median(value - other for value, other in zip(values, base, strict=True))
        print(f"{name:<28}{median(values):8.3f}{added:+8.3f} over hand")


if __name__ == "__main__":
    main()
