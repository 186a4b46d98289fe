"""Intel's C benchmarks and ours alternately, on Intel MPI: results/imb.txt, results/beside-imb.csv.

Usage: python -m perf.beside_imb [ROUNDS]     (needs `make .intel-mpi/.unpacked`, x86-64)

They mean the same in both (docs/reading.md).
Then: omb-py compare results/imb.txt results/beside-imb.csv
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from perf.launchers import ROOT, Launcher, aware_launchers

SAME = {"PingPong": "latency", "Allreduce": "allreduce", "Bcast": "bcast"}
LARGEST = 22
ITERATIONS = 1000


def printed(launcher: Launcher, command: list[str], folder: Path) -> str:
    """What a job of two ranks prints."""
    environment = os.environ | launcher.with_libraries() | {"I_MPI_OFFLOAD": "0"}
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def main(rounds: int) -> None:
    """Take turns, and keep everything that was printed."""
    launcher = next(one for one in aware_launchers() if one.name == "Intel MPI")
    imb = Path(launcher.command[0]).parent / "IMB-MPI1"
    imb.chmod(0o755)
    folder = ROOT / "results"
    text, table = folder / "imb.txt", folder / "beside-imb.csv"
    text.unlink(missing_ok=True)
    table.unlink(missing_ok=True)
    theirs = [str(imb), "-iter", str(ITERATIONS), "-msglog", str(LARGEST), "-iter_policy", "off"]
    theirs += ["-time", "10"]
    for number in range(rounds):
        for name, ours in SAME.items():
            print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr)
            command = [*theirs, name]
            output = printed(launcher, launcher.run(2, program=tuple(command)), folder)
            with text.open("a") as file:
                shown = " ".join(["mpiexec.hydra -n 2 IMB-MPI1", *theirs[1:], name])
                file.write(f"$ {shown}\n{output.replace(str(imb), 'IMB-MPI1')}\n")
            for binding in ("native", "buffer"):
                options = ["--binding", binding, "-m", f":{1 << LARGEST}", "-i", str(ITERATIONS)]
                options += ["-T", "float32"] if ours == "allreduce" else []
                options += ["-q", "--output", table.name]
                printed(launcher, launcher.run(2, ours, *options), folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
