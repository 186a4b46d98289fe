"""Whether a run is slower while it is watched: one job, with and without a watcher alternately.

Usage: python -m perf.watching [TURNS] [SECONDS]

Two ranks send a byte to and fro under omb-py profile, for TURNS stretches of SECONDS with
omb-py watch at its default rate, and as many without. Blocks of messages are told apart by when
they were sent; the time in which a watcher starts is left out. A watcher needs a core for itself:
what it takes of one is measured, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, median, quantiles

from omb_py.measure.turns import with_interval

BIN = Path(sys.executable).parent

PROGRAM = """
import sys
from time import monotonic, perf_counter
from mpi4py import MPI

comm, byte, stop = MPI.COMM_WORLD, bytearray(1), bytearray(1)
other, messages, end = 1 - comm.rank, 200, monotonic() + float(sys.argv[1])
send, receive, found = comm.Send, comm.Recv, []
while not stop[0]:
    began = perf_counter()
    for _ in range(messages):
        if comm.rank == 0:
            send(byte, other)
            receive(byte, other)
        else:
            receive(byte, other)
            send(byte, other)
    found.append((monotonic(), (perf_counter() - began) / messages / 2))
    stop[0] = monotonic() > end
    comm.Bcast(stop)
if comm.rank == 0:
    for at, seconds in found:
        print("BLOCK", at, seconds)
"""


def main() -> None:
    """Alternate, then print the medians and the differences of neighbours."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 4.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        length = (2 * seconds + 3) * turns + 5
        command = [str(BIN / "mpiexec"), "-n", "2", str(BIN / "omb-py"), "profile", "-q"]
        command += ["program.py", str(length)]
        with (folder / "out").open("w") as out:
            job = subprocess.Popen(command, cwd=folder, stdout=out)
            stretches, cpu = alternated(folder, turns, seconds)
            job.wait(length)
        told = (line.split() for line in (folder / "out").read_text().splitlines())
        blocks = [(float(words[1]), float(words[2])) for words in told if words[0] == "BLOCK"]
    cores = len(os.sched_getaffinity(0))
    print(f"1-byte latency under profile, {turns} times {seconds:g} s alternately, ")
    print(f"{cores} cores; us one way, medians of the turns")
    sent = [
        [[t for at, t in blocks if begin < at < end] for begin, end in pair] for pair in stretches
    ]
    sent = [pair for pair in sent if all(len(times) > 1 for times in pair)]
    for what, chosen in (("mean", mean), ("median", median), ("first decile", first_decile)):
        pairs = [tuple(1e6 * chosen(times) for times in pair) for pair in sent]
        alone, watched = zip(*pairs, strict=True)
        added, low, high = with_interval([b - a for a, b in zip(alone, watched, strict=True)])
        print(
            f"{what:<14}alone {median(alone):.3f}  watched {median(watched):.3f}  "
            f"added {added:+.3f} [{low:+.3f}, {high:+.3f}]"
        )
    print(f"a watcher takes {100 * cpu:.1f} % of a core once it runs")


def first_decile(values: list[float]) -> float:
    """What a tenth of them is below: on a busy machine, those that were not disturbed."""
    return quantiles(values, n=10)[0]


def alternated(
    folder: Path, turns: int, seconds: float
) -> tuple[list[tuple[tuple[float, float], tuple[float, float]]], float]:
    """When ranks were alone and when watched, for each turn; and the watcher's share of a core."""
    while not list(folder.glob("omb-profile/*.record")):
        time.sleep(0.1)
    time.sleep(2)
    stretches, busy, watched = [], 0.0, 0.0
    for _ in range(turns):
        began = time.monotonic()
        time.sleep(seconds)
        alone = (began, time.monotonic())
        watcher = subprocess.Popen(
            [str(BIN / "omb-py"), "watch"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert watcher.stdout is not None
        watcher.stdout.readline()
        before, began = cpu_of(watcher.pid), time.monotonic()
        time.sleep(seconds)
        stretches.append((alone, (began, time.monotonic())))
        busy += cpu_of(watcher.pid) - before
        watched += seconds
        watcher.terminate()
        watcher.communicate()
    return stretches, busy / watched


def cpu_of(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
