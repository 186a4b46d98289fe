"""What starting costs: modules, files and seconds beyond the libraries that are needed.

Usage: python -m perf.start_up [ROUNDS]   (interleaved)

First one and two ranks beside a program that only imports mpi4py, NumPy and click: time and CPU
time, of all ranks with their launcher. Then one rank of several commands, whose files are counted
with strace.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from perf.jobs import BIN, ENVIRONMENT

OMB_PY = str(BIN / "omb-py")
ALLREDUCE = [OMB_PY, *"allreduce -m 8:8 -i 1 -x 0".split()]
NATIVE = [*ALLREDUCE, "--binding", "native"]
PROGRAM = "program.py"
PROFILE = [OMB_PY, *"profile --quiet --force --folder profile".split(), PROGRAM]


def importing(modules: str) -> list[str]:
    """A program that imports modules, of which mpi4py.MPI starts MPI."""
    return [sys.executable, "-c", f"from mpi4py import MPI; import {modules}"]


BARE, OURS = "mpi4py, numpy and click", "omb-py allreduce"
COMMANDS: dict[str, tuple[list[str], str]] = {
    BARE: (importing("numpy, click"), ""),
    OURS: (ALLREDUCE, BARE),
    "the same, --binding native": (NATIVE, OURS),
    "mpi4py and click": (importing("click"), ""),
    "the same, --buffer bytearray": ([*ALLREDUCE, "--buffer", "bytearray"], "mpi4py and click"),
    "click": ([sys.executable, "-c", "import click"], ""),
    "omb-py --help": ([OMB_PY, "--help"], "click"),
    "a program with mpi4py": ([sys.executable, PROGRAM], ""),
    "omb-py profile": (PROFILE, "a program with mpi4py"),
}
"""Each with what it is compared with."""


ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""NumPy's idle threads spin: their CPU time grows with any program's duration."""


def cost(command: list[str]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of a command and of all that it starts."""
    start = perf_counter()
    process = subprocess.Popen(
        command,
        env=ENVIRONMENT | ONE_THREAD,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    elapsed = perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return elapsed, used.ru_utime + used.ru_stime


def beside_bare(rounds: int) -> None:
    """Measure ranks of omb-py and bare ones alternately, and print medians and differences."""
    print(
        f"{'median ms':<30}{'ranks':>6}{'elapsed':>9}{'more':>8}{'CPU':>9}{'more':>8}{'a rank':>8}"
    )
    for ranks in (1, 2):
        launcher = [str(BIN / "mpiexec"), "-n", str(ranks)] if ranks > 1 else []
        costs: dict[str, list[tuple[float, float]]] = {BARE: [], OURS: []}
        for turn in range(rounds + 1):
            for name in (BARE, OURS) if turn % 2 else (OURS, BARE):
                costs[name].append(cost([*launcher, *COMMANDS[name][0]]))
        medians = {
            name: [median(column) * 1e3 for column in zip(*found[1:], strict=True)]
            for name, found in costs.items()
        }
        for name, (elapsed, cpu) in medians.items():
            more, more_cpu = elapsed - medians[BARE][0], cpu - medians[BARE][1]
            print(f"{name:<30}{ranks:6d}{elapsed:9.1f}{more:+8.1f}{cpu:9.1f}", end="")
            print(f"{more_cpu:+8.1f}{more_cpu / ranks:+8.1f}")
    print()


def modules(command: list[str]) -> int:
    """Modules that ``-X importtime`` shows: those that `import` statements import."""
    script = command if command[0] == sys.executable else [sys.executable, *command]
    done = subprocess.run(
        [script[0], "-X", "importtime", *script[1:]], capture_output=True, text=True, check=True
    )
    return done.stderr.count("import time:") - 1


def files(command: list[str]) -> tuple[int, int]:
    """Files opened, and all calls that name a file, opened or not."""
    with tempfile.NamedTemporaryFile() as log:
        trace = ["strace", "-f", "-e", "trace=%file", "-o", log.name]
        subprocess.run([*trace, *command], capture_output=True, check=True)
        lines = Path(log.name).read_text(errors="replace").splitlines()
    opened = [line for line in lines if re.search(r"open(at)?\(.*= \d+$", line)]
    return len(opened), len(lines)


def seconds(command: list[str]) -> float:
    """The time of a command."""
    start = perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return perf_counter() - start


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    for variables in (os.environ, ENVIRONMENT):
        variables.pop("PYTHONDONTWRITEBYTECODE", None)  # what is compiled is kept, as for users
    beside_bare(rounds)
    if shutil.which("strace") is None:
        sys.exit("strace counts the files: install it")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        report(rounds)
        os.chdir("/")


def report(rounds: int) -> None:
    """Measure alternately in this folder, and print the table."""
    Path(PROGRAM).write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n")
    for command, _ in COMMANDS.values():
        seconds(command)
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, (command, _) in COMMANDS.items():
            times[name].append(seconds(command))
    medians = {name: median(found) * 1e3 for name, found in times.items()}
    counts = {name: files(found) for name, (found, _) in COMMANDS.items()}
    print(f"{'':<30}{'ms':>8}{'more':>8}{'ratio':>8}{'modules':>9}", end="")
    print(f"{'opened':>8}{'more':>6}{'file calls':>12}")
    for name, (command, base) in COMMANDS.items():
        more = [medians[name] - medians[base], medians[name] / medians[base]] if base else ["", ""]
        cells = [f"{one:8.2f}" if one else f"{'':8}" for one in more]
        opened, calls = counts[name]
        extra = opened - counts[base][0] if base else ""
        print(f"{name:<30}{medians[name]:8.1f}{''.join(cells)}{modules(command):9d}", end="")
        print(f"{opened:8d}{extra:>6}{calls:12d}")


if __name__ == "__main__":
    main()
