"""What several threads cost on a Python without its lock (PEP 703), and on one with it.

    python -m perf.free_threading VENV VENV... [--rounds 7] [--output FILE.csv]

omb-py is installed in each VENV. Every line of LINES runs in each of them alternately ROUNDS times;
the order turns round with every round. A row of the output has the median of the rounds, the lowest
and the highest.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from perf.jobs import ENVIRONMENT, parsed

SECONDS = 300.0

UNBOUND = {"PRTE_MCA_hwloc_default_binding_policy": "none"}
"""Open MPI binds each of two ranks to a core, where its threads would take turns."""

ITERATIONS = {"native": 400_000, "buffer": 100_000, "pickle": 20_000}
"""Of each binding: so many that threads run side by side for much longer than they start."""

WINDOWS = 2_000
SIZES = "8,65536"
INTERPRETER = "from omb_py.results.metadata import interpreter; print(interpreter())"


@dataclass(frozen=True)
class Line:
    """A launch: its ranks, the benchmark, threads of each rank and what they communicate by."""

    ranks: int
    benchmark: str
    threads: int
    comm: str
    binding: str

    def command(self, venv: Path) -> list[str]:
        """Return the command line, which prints rows as CSV."""
        bin = venv / "bin"
        words = f"{self.benchmark} --binding {self.binding} -t {self.threads} --sizes {SIZES}"
        launch = [bin / "mpiexec", "-n", self.ranks, bin / "omb-py", *words.split()]
        iterations = WINDOWS if self.benchmark == "mbw_mr_mt" else ITERATIONS[self.binding]
        own = ["--thread-comm", self.comm, "-i", iterations, "-x", 200, "--format", "csv"]
        return [str(word) for word in (*launch, *own)]


def lines() -> Iterator[Line]:
    """Yield what is measured: calls without waiting on one rank, then pairs of ranks."""
    for binding in ITERATIONS:
        yield Line(1, "sendrecv_mt", 1, "one", binding)
        yield Line(1, "sendrecv_mt", 2, "one", binding)
        yield Line(1, "sendrecv_mt", 2, "each", binding)
    for binding in ITERATIONS:
        yield Line(2, "latency_mt", 1, "one", binding)
        yield Line(2, "mbw_mr_mt", 1, "one", binding)


def measured(line: Line, venv: Path) -> dict[int, float]:
    """Return the value of one launch by message size: latency in us, or messages per second.

    Means, since a thread that waits for Python's lock does so in few of its iterations.
    """
    command = line.command(venv)
    done = subprocess.run(
        command,
        env=ENVIRONMENT | UNBOUND,
        check=True,
        timeout=SECONDS,
        stdout=subprocess.PIPE,
        text=True,
    )
    rows = parsed(done.stdout.splitlines())
    value = "messages_per_s" if line.benchmark == "mbw_mr_mt" else "latency_us"
    return {int(row["bytes"]): float(row[value]) for row in rows}


def name_of(venv: Path) -> str:
    """Return Python's version in an environment, and whether it has its lock."""
    command = [str(venv / "bin" / "python"), "-c", INTERPRETER]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    """Measure alternately, and write medians of all rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("venvs", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    venvs = [venv.absolute() for venv in chosen.venvs]
    times: dict[tuple[Line, int, Path], list[float]] = {}
    for number in range(chosen.rounds):
        for line in lines():
            for venv in venvs[:: -1 if number % 2 else 1]:
                for size, found in measured(line, venv).items():
                    times.setdefault((line, size, venv), []).append(found)
        print(f"round {number + 1} of {chosen.rounds}", file=sys.stderr)
    names = {venv: name_of(venv) for venv in venvs}
    file = chosen.output.open("w", newline="", encoding="utf-8") if chosen.output else sys.stdout
    with file:
        rows = csv.writer(file)
        head = "benchmark ranks threads thread_comm binding bytes python median lowest highest"
        rows.writerow(head.split())
        for (line, size, venv), values in times.items():
            what = (line.benchmark, line.ranks, line.threads, line.comm, line.binding, size)
            spread = (f"{one:.2f}" for one in (median(values), min(values), max(values)))
            rows.writerow((*what, names[venv], *spread))


if __name__ == "__main__":
    main()
