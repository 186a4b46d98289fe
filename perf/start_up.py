"""What starting costs: modules, files and seconds beyond mpi4py and NumPy alone.

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
BASE = "from mpi4py import MPI; import numpy"
ALLREDUCE = [OMB_PY, "allreduce", "-m", "8", "-i", "1", "-x", "0"]
FIRST_USE = "the same, compiling"
COMMANDS = {
    "bare mpi4py and numpy": [sys.executable, "-c", BASE],
    "the same and click": [sys.executable, "-c", f"{BASE}; import click"],
    "omb-py allreduce, numpy": ALLREDUCE,
    "bare mpi4py": [sys.executable, "-c", "from mpi4py import MPI"],
    "omb-py allreduce, bytearray": [*ALLREDUCE, "--buffer", "bytearray"],
    "omb-py allreduce, native": [*ALLREDUCE, "--binding", "native"],
    FIRST_USE: [*ALLREDUCE, "--binding", "native"],
    "python -c pass": [sys.executable, "-c", "pass"],
    "omb-py --help": [OMB_PY, "--help"],
}


def modules(command: list[str]) -> int:
    """Modules imported, as ``-X importtime`` counts them."""
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


def seconds(command: list[str], first_use: bool) -> float:
    """The time of a command, with what earlier runs compiled or without."""
    with tempfile.TemporaryDirectory() as empty:
        environment = os.environ | ({"OMB_PY_CACHE_DIR": empty} if first_use else {})
        start = perf_counter()
        subprocess.run(command, capture_output=True, check=True, env=environment)
        return perf_counter() - start


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command, name == FIRST_USE))
    print(f"{'':<30}{'ms':>8}{'modules':>9}{'opened':>8}{'file calls':>12}")
    for name, command in COMMANDS.items():
        counted = files(command) if shutil.which("strace") else ("-", "-")
        milliseconds = median(times[name]) * 1e3
        print(f"{name:<30}{milliseconds:8.1f}{modules(command):9d}{counted[0]:>8}{counted[1]:>12}")


if __name__ == "__main__":
    main()
