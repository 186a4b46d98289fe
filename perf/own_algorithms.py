"""Own algorithms against the library's call, alternately in one job for each number of ranks.

Usage: python -m perf.own_algorithms [ROUNDS] [BINDING] [RANKS,…]

Every round runs all contenders one after the other. Prints, as Markdown, who has the lowest median
latency where: the median over the rounds of each run's own median, how many times longer the
library takes (or the second, where the library wins), and whether the winner's slowest run is no
faster than the other's fastest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from omb_py.core.mpi import THROTTLE
from omb_py.core.options import LIBRARY
from omb_py.core.text.units import digits, parse_bytes, size_text
from perf.jobs import BIN, ENVIRONMENT

SIZES = ["1K", "4K", "16K", "64K", "256K", "1M", "4M"]
ITERATIONS, WARMUP, SECONDS = 500, 3, 0.1
"""Of each run: the most iterations, the warm-up, and the time after which it stops."""
TIMES = "\N{MULTIPLICATION SIGN}"
SHARED = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_osc": "^ucx"}


@dataclass(frozen=True)
class Contender:
    """An algorithm; ``nodes`` are ranks of each pretended node."""

    algorithm: str
    nodes: int | None = None

    @property
    def name(self) -> str:
        """What the table calls it."""
        return self.algorithm.replace("_", " ")

    def options(self) -> dict[str, object]:
        """Options of a run."""
        found = {"p2p_algorithm": self.algorithm, "node_map": self.nodes}
        return {name: value for name, value in found.items() if value is not None}


def contenders(benchmark: str, ranks: int) -> list[Contender]:
    """Who is to be compared on so many ranks; the library comes first."""
    if benchmark == "bcast":
        return [*map(Contender, (LIBRARY, "binomial", "scatter_ring"))]
    words = (LIBRARY, "ring", "recursive_doubling", "rabenseifner")
    return [*map(Contender, words), *[Contender("hierarchical", ranks // 2)] * (ranks >= 4)]


def measure(ranks: str, rounds: str, binding: str) -> None:
    """One rank of a job; rank 0 prints a line for each run and size."""
    from omb_py.benchmarks import find_benchmark
    from omb_py.measure.in_program import measure_in_program
    from omb_py.options.parse import parse, words_of
    from omb_py.options.table import alike

    common = {"sizes": SIZES, "iterations": ITERATIONS, "warmup": WARMUP, "max_time": SECONDS}
    for _ in range(int(rounds)):
        for benchmark in ("bcast", "allreduce"):
            for contender in contenders(benchmark, int(ranks)):
                options = {**common, "binding": binding, **contender.options()}
                subject = find_benchmark(benchmark)
                chosen = parse(subject, words_of(subject, options))
                rows, _ = measure_in_program(subject, chosen, alike(chosen))
                for row in rows or ():
                    found = (benchmark, contender.name, row["bytes"], row["sample_p50_us"])
                    print("ROW", json.dumps(found), flush=True)


Times = dict[tuple[str, int], dict[str, list[float]]]
"""Microseconds of each contender's runs, by benchmark and size."""


def run(ranks: int, rounds: str, binding: str) -> Times:
    """The runs of one job."""
    few = THROTTLE if ranks > (os.cpu_count() or 1) else {}
    command = [str(BIN / "mpiexec"), "-n", str(ranks), sys.executable, "-m", "perf.own_algorithms"]
    done = subprocess.run(
        [*command, "measure", str(ranks), rounds, binding],
        env=ENVIRONMENT | SHARED | few,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    times: Times = defaultdict(lambda: defaultdict(list))
    for line in done.stdout.splitlines():
        if line.startswith("ROW "):
            benchmark, name, size, value = json.loads(line[4:])
            times[benchmark, size][name].append(value)
    return times


def cell(runs: dict[str, list[float]]) -> str:
    """Who wins, its latency, and how much longer the library takes, or else the second."""
    first, second, *_ = sorted(runs, key=lambda name: median(runs[name]))
    beside = second if first == LIBRARY else LIBRARY
    value, other = median(runs[first]), median(runs[beside])
    words = f"{first if first == LIBRARY else f'**{first}**'} {digits(value)}"
    noise = ", runs overlap" if max(runs[first]) >= min(runs[beside]) else ""
    return f"{words} ({beside} {digits(other / value)}{TIMES}{noise})"


def main(rounds: str = "3", binding: str = "native", ranks: str = "2,4,8") -> None:
    """Measure, and print the tables."""
    counts = [int(count) for count in ranks.split(",")]
    measured = {count: run(count, rounds, binding) for count in counts}
    for benchmark in ("bcast", "allreduce"):
        print(f"\n{benchmark}, binding {binding}, {rounds} rounds, us\n")
        print("| size | " + " | ".join(f"{count} ranks" for count in counts) + " |")
        print("|---|" + "---|" * len(counts))
        for size in map(parse_bytes, SIZES):
            cells = [cell(measured[count][benchmark, size]) for count in counts]
            print(f"| {size_text(size)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
