"""What starting costs: modules, files and seconds beyond the libraries that are needed.

Usage: python -m perf.start_up [ROUNDS]   (one rank; interleaved; files are counted with strace)
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

OMB_PY = str(Path(sys.executable).parent / "omb-py")
ALLREDUCE = [OMB_PY, *"allreduce -m 8 -i 1 -x 0".split()]
NATIVE = [*ALLREDUCE, "--binding", "native"]
PROGRAM = "program.py"
PROFILE = [OMB_PY, *"profile --quiet --force --folder profile".split(), PROGRAM]


def importing(modules: str) -> list[str]:
    """A program that imports modules, of which mpi4py.MPI starts MPI."""
    return [sys.executable, "-c", f"from mpi4py import MPI; import {modules}"]


COMMANDS: dict[str, tuple[list[str], str]] = {
    "mpi4py, numpy and click": (importing("numpy, click"), ""),
    "omb-py allreduce": (ALLREDUCE, "mpi4py, numpy and click"),
    "the same, --binding native": (NATIVE, "omb-py allreduce"),
    "mpi4py and click": (importing("click"), ""),
    "the same, --buffer bytearray": ([*ALLREDUCE, "--buffer", "bytearray"], "mpi4py and click"),
    "click": ([sys.executable, "-c", "import click"], ""),
    "omb-py --help": ([OMB_PY, "--help"], "click"),
    "a program with mpi4py": ([sys.executable, PROGRAM], ""),
    "omb-py profile": (PROFILE, "a program with mpi4py"),
}
"""Each with what it is compared with."""


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
    if shutil.which("strace") is None:
        sys.exit("strace counts the files: install it")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is compiled is kept, as for users
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        report(rounds)
        os.chdir("/")


def report(rounds: int) -> None:
    """Measure by turns in this folder, and print the table."""
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
