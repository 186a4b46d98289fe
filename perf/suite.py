"""What one launch of several benchmarks saves, and whether it changes their numbers.

python -m perf.suite numbers [ROUNDS]    each benchmark in a launch of its own and at a random
                                         place among the others, alternately
python -m perf.suite seconds [RANKS]     17 collectives in one launch, in 17, and 15 of C
python -m perf.suite slow RANKS          one launch and some, where each open takes 1 ms more
                                             and MPI_Init 5 s
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from omb_py.benchmarks import by_family, find_benchmark
from perf.jobs import BIN, ENVIRONMENT, HERE, OMB_PY, compile_c, parsed

BENCHMARKS = ("latency", "bw", "allreduce", "alltoall", "put_latency", "iallreduce")
NUMBERS = ("--sizes", "8,8192,1048576", "-i", "200", "-x", "50")
ALL = ("run", "s:collective")
SIZES = ("-m", "8:1024")
FEW = ("-m", "8:64", "-i", "20", "-x", "5")
IN_C = "allgather allreduce alltoall barrier bcast gather reduce scatter".split()

Times = dict[str, list[float]]


def launched(ranks: int, *words: str, more: dict[str, str] | None = None) -> float:
    """Seconds of a launch."""
    begin = perf_counter()
    subprocess.run(
        [str(BIN / "mpiexec"), "-n", str(ranks), *words],
        env=ENVIRONMENT | (more or {}),
        check=True,
        capture_output=True,
    )
    return perf_counter() - begin


def numbers(rounds: int) -> None:
    """Print the medians of each benchmark and size, alone and in a suite, and their spreads."""
    alone: Times = {}
    together: Times = {}
    shuffled = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            order = shuffled.sample(BENCHMARKS, len(BENCHMARKS))
            for name in order:
                path = Path(folder) / f"{name}-{number}.csv"
                launched(2, OMB_PY, name, *NUMBERS, "-q", "-o", str(path))
                keep(path, alone)
            path = Path(folder) / f"suite-{number}.csv"
            launched(2, OMB_PY, "run", *order, *NUMBERS, "-q", "-o", str(path))
            keep(path, together)
    print(f"median over {rounds} launches of each launch's median, us, and its spread (10 to 90 %)")
    print(
        f"{'':<26}{'alone':>10}{'from':>10}{'to':>10}{'suite':>10}{'from':>10}{'to':>10}{'ratio':>8}"
    )
    for key, values in alone.items():
        others = together[key]
        cells = [part for some in (values, others) for part in spread(some)]
        print(f"{key:<26}{''.join(f'{cell:10.3f}' for cell in cells)}", end="")
        print(f"{median(others) / median(values):8.3f}")


def spread(values: list[float]) -> tuple[float, float, float]:
    """The median, and the values that 10 % are below and above."""
    ordered = sorted(values)
    tenth = len(ordered) // 10
    return median(ordered), ordered[tenth], ordered[-1 - tenth]


def keep(path: Path, times: Times) -> None:
    """Add the medians of a launch's rows."""
    for row in parsed(path.read_text().splitlines()):
        key = f"{row['benchmark']} {row['bytes']}"
        times.setdefault(key, []).append(float(row["sample_p50_us"]))


def seconds(ranks: int, rounds: int = 3) -> None:
    """Print the seconds of all blocking collectives, in one launch and in many."""
    collectives = [one.name for one in by_family()["collective"]]
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "collective")
        compile_c(str(HERE / "collective.c"), program)
        contenders: dict[str, Callable[[], float]] = {
            "17 collectives, one launch": lambda: launched(ranks, OMB_PY, *ALL, *SIZES),
            "17 launches": lambda: sum(alone(ranks, one, SIZES) for one in collectives),
            "15 launches of C": lambda: sum(
                launched(ranks, program, name, "8", "1024") for name in (IN_C * 2)[:15]
            ),
        }
        times: Times = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, contender in contenders.items():
                times[name].append(contender())
    print(f"{ranks} ranks, sizes 8 B to 1 KiB, {rounds} rounds alternately: seconds, median")
    for name, found in times.items():
        print(f"{name:<30}{median(found):8.2f}")


def alone(
    ranks: int, name: str, options: tuple[str, ...], more: dict[str, str] | None = None
) -> float:
    """Seconds of a launch of one collective."""
    has_sizes = find_benchmark(name).sized
    return launched(ranks, OMB_PY, name, *(options if has_sizes else options[2:]), more=more)


def slow(ranks: int, launches: int = 3) -> None:
    """Print the seconds of one launch and of some of a collective each, where a start is slow."""
    collectives = [one.name for one in by_family()["collective"]]
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "slow_start.so")
        compile_c(str(HERE / "slow_start.c"), library, "-shared", "-fPIC")
        more = {"LD_PRELOAD": library, "OMB_SLOW_OPEN_US": "1000", "OMB_SLOW_INIT_S": "5"}
        together = launched(ranks, OMB_PY, *ALL, *FEW, more=more)
        each = [alone(ranks, name, FEW, more) for name in collectives[:launches]]
    print(f"{ranks} ranks, an open takes 1 ms more and MPI_Init 5 s, 8 to 64 B, 20 iterations")
    print(f"17 collectives, one launch    {together:8.1f} s")
    print(f"a launch of one, mean         {sum(each) / len(each):8.1f} s")


def main() -> None:
    what, *rest = sys.argv[1:]
    number = int(rest[0]) if rest else None
    if what == "numbers":
        numbers(number or 20)
    else:
        (seconds if what == "seconds" else slow)(number or 2)


if __name__ == "__main__":
    main()
