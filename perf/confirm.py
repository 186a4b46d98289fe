"""How often `omb-py check` fails healthy jobs and finds slow ones, with --confirm and without.

Usage: python -m perf.confirm [--jobs 16] [--slow-jobs 13] [--chance 0.27] [--times 2] [--seed 1]
       python -m perf.confirm --simulated 1600

The first needs a compiler. It runs real ranks, 2 a job, whose allreduces take 20 ms more, so that
the noise of this machine is small. In a launch of the given chance those of the first size take
200 ms more: in each launch by itself, also in one that measures again. A slow job's take 1.25
times as long.

The second makes rows with a lognormal noise of 3 % instead, which come from --again. There is the
same chance for each launch; and that of aws/aws-parallelcluster#7565, where the trip of a job's
first launch came again in the second once in twelve times.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.core.mpi import THROTTLE
from perf.jobs import BIN, ENVIRONMENT, HERE, OMB_PY, compile_c

CALL_US = 20_000
ITERATIONS, WARMUP = 15, 2
SIZES = (1024, 2048, 4096)
EVERYWHERE = ("-i", str(ITERATIONS), "-x", str(WARMUP), "--binding", "buffer")
SLOWDOWN = 1.25
TOLERANCE = "15%"
NOISE = 0.03
YIELDING = THROTTLE | {"OMPI_MCA_mpi_yield_when_idle": "1"}
"""What makes ranks that wait leave their core to other processes."""

FOLLOWED = 1 / 12
"""Chance of a slow launch after a slow one in the same job, by aws/aws-parallelcluster#7565."""


@dataclass(frozen=True)
class Found:
    """How many of so many jobs failed at once, and how many of them were confirmed."""

    jobs: int
    failed: int
    confirmed: int

    def text(self, title: str) -> str:
        """A line of output."""
        return (
            f"{title:<44}{self.failed:6} of {self.jobs} without --confirm"
            f"{self.confirmed:6} of {self.jobs} with it"
        )


def launch(folder: Path, words: Sequence[str]) -> None:
    """Become a launcher whose first allreduces are slow in some launches, drawn by the seed."""
    counter = folder / "launches"
    number = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(number + 1))
    seed, chance = (folder / "chance").read_text().split()
    slow = random.Random(f"{seed} {number}").random() < float(chance)
    library = {"LD_PRELOAD": str(folder / "slow.so")}
    calls = {"OMB_SLOW_CALLS": str(ITERATIONS + WARMUP)} if slow else {}
    os.execvpe(words[0], [*words], os.environ | library | calls)


def started(folder: Path, *words: str, more_us: float = 0.0) -> subprocess.CompletedProcess[str]:
    """A command in the folder, in which allreduces take so much longer."""
    environment = ENVIRONMENT | YIELDING | {"OMB_CALL_US": str(CALL_US + more_us)}
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def real(jobs: int, slowdown: float, chance: float, times: int, seed: int, folder: Path) -> Found:
    """Measure and check real jobs."""
    launcher = f"{sys.executable} {Path(__file__).resolve()} launch {folder} {BIN / 'mpiexec'}"
    (folder / "chance").write_text(f"{seed} {chance}")
    more_us = (slowdown - 1) * float((folder / "healthy.txt").read_text())
    failed = confirmed = 0
    for number in range(jobs):
        rows = f"{number}.csv"
        measure = [OMB_PY, "allreduce", *EVERYWHERE, "-q", "-o", rows, "--force"]
        measure += ["--sizes", ",".join(map(str, SIZES))]
        started(folder, *shlex.split(launcher), "-n", "2", *measure, more_us=more_us)
        check = [OMB_PY, "check", rows, "--expected", "expected.csv", "--tolerance", TOLERANCE]
        code = started(folder, *check).returncode
        if code not in (0, 4):
            raise SystemExit(f"job {number} ended with exit code {code}")
        if code:
            failed += 1
            again = ["--confirm", str(times), "--launcher", launcher]
            done = started(folder, *check, *again, more_us=more_us)
            confirmed += done.returncode == 4
            print(f"# job {number}, {slowdown}x:", *done.stdout.splitlines()[-4:], sep="\n#   ")
    return Found(jobs, failed, confirmed)


def expected(folder: Path) -> None:
    """Write the medians of five healthy launches as references."""
    (folder / "chance").write_text("0 0")
    command = [sys.executable, str(Path(__file__).resolve()), "launch", str(folder)]
    command += [str(BIN / "mpiexec"), "-n", "2", OMB_PY, "allreduce", *EVERYWHERE, "-q"]
    for number in range(5):
        sizes = ["--sizes", ",".join(map(str, SIZES))]
        started(folder, *command, *sizes, "-o", f"healthy/{number}.csv")
    from omb_py.analysis.references_learned import from_runs
    from omb_py.analysis.table import load

    rows = load(folder / "healthy").rows
    made = from_runs(rows, "here").drop(columns=["low", "high"])
    made.to_csv(folder / "expected.csv", index=False)
    (folder / "healthy.txt").write_text(str(made["value"].median()))


def simulated(jobs: int, slowdown: float, chance: float, times: int, seed: int, own: bool) -> Found:
    """Judge made jobs; with ``own`` each launch is slow by itself, else hardly after the first."""
    from omb_py.analysis import references
    from omb_py.analysis.references_check import check
    from omb_py.analysis.table import load
    from omb_py.sweeps.confirming import Way, confirm

    drawn = random.Random(seed)
    failed = confirmed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder, waiting = Path(temporary), Path(temporary) / "waiting"
        waiting.mkdir()
        made = [f"allreduce,{size},10,us" for size in SIZES]
        (folder / "known.csv").write_text("\n".join(["benchmark,bytes,value,unit", *made]))
        known = references.load(str(folder / "known.csv"))
        (folder / "next.sh").write_text(f'set -- {waiting}/*; cat "$1"; rm "$1"')
        way = Way(times, 60, f"sh {folder / 'next.sh'}", None, folder)
        for _ in range(jobs):
            slow = drawn.random() < chance
            (folder / "first.txt").write_text(text_of(slow, slowdown, drawn))
            for place in range(times):
                slow_again = drawn.random() < (chance if own else slow * FOLLOWED)
                (waiting / f"{place}.txt").write_text(text_of(slow_again, slowdown, drawn))
            rows = load(folder / "first.txt").rows
            failures = check(rows, known, "made").failures
            failed += bool(failures)
            if failures:
                confirmed += bool(confirm(failures, {"": rows}, {}, way).failures)
    return Found(jobs, failed, confirmed)


def text_of(slow: bool, slowdown: float, drawn: random.Random) -> str:
    """Native OMB's text of a launch with the usual noise; a slow one has a first size of 100 us."""
    lines = ["# OSU MPI Allreduce Latency Test v7.5", "# Datatype: MPI_CHAR."]
    lines.append("# Size       Avg Latency(us)")
    for size in SIZES:
        level = 10 * slowdown * (10 if slow and size == SIZES[0] else 1)
        lines.append(f"{size:<24}{level * drawn.lognormvariate(0, NOISE):.2f}")
    return "\n".join(["", *lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--slow-jobs", type=int, default=13)
    parser.add_argument("--chance", type=float, default=0.27)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--simulated", type=int, metavar="JOBS")
    given = parser.parse_args()
    what = (given.chance, given.times, given.seed)
    if given.simulated:
        for own, title in ((False, "slow once in a job"), (True, "slow in each launch by itself")):
            for slowdown, jobs in ((1.0, "healthy jobs"), (SLOWDOWN, f"{SLOWDOWN}-fold jobs")):
                found = simulated(given.simulated, slowdown, *what, own)
                print(found.text(f"{jobs}, {title}"))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compile_c(str(HERE / "slow_start.c"), str(folder / "slow.so"), "-shared", "-fPIC")
        expected(folder)
        found = real(given.jobs, 1.0, *what, folder)
        slow = real(given.slow_jobs, SLOWDOWN, *what, folder)
    print(found.text("healthy jobs"))
    print(slow.text(f"{SLOWDOWN}-fold jobs"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["launch"]:
        launch(Path(sys.argv[2]), sys.argv[3:])
    main()
