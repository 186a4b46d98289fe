"""What the suite adds to mpi4py, and what both add to C; interleaved, medians and ratios.

Usage: python -m perf.speed [ROUNDS]   (compiles perf/reference.c with the MPI's own mpicc)
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from perf.jobs import HERE, compile_reference, printed_by, rows_of

SIZE, ITERATIONS = "8", "10000"


def omb_py() -> tuple[float, float]:
    (row,) = rows_of("latency", "--sizes", SIZE, "-i", ITERATIONS)
    return float(row["latency_us"]), float(row["sample_p50_us"])


def numbers(text: str) -> tuple[float, float]:
    mean, middle = text.split()
    return float(mean), float(middle)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "reference")
        compile_reference(program)
        contenders: dict[str, Callable[[], tuple[float, float]]] = {
            "C": lambda: numbers(printed_by(program, "latency", SIZE, ITERATIONS)),
            "omb-py, binding buffer": omb_py,
            "plain mpi4py, multiple": lambda: numbers(
                printed_by(sys.executable, str(HERE / "plain.py"), SIZE, ITERATIONS)
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
    for line in printed_by(sys.executable, str(HERE / "loops.py"), str(rounds)).splitlines():
        name, *figures = line.split()
        loops[name] = [float(figure) for figure in figures]
    for name, found in loops.items():
        base = loops[name.rpartition(".")[0] + ".hand"]
        added = median(value - other for value, other in zip(found, base, strict=True))
        print(f"{name:<28}{median(found):8.3f}{added:+8.3f} over hand")


if __name__ == "__main__":
    main()
