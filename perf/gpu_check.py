"""What a machine with an NVIDIA GPU is asked: is all of it right, and what does it cost?

Usage: python -m perf.gpu_check [--output FOLDER] [--parts PART,…] [--buffers NAME,…]

It needs an MPI library that takes memory on a device: Intel MPI or an Open MPI with CUDA, found as
`perf/launchers.py` says, else this environment's own, which is then asked. Two ranks may share one
GPU. Parts, each a file or more in the folder:

    machine   machine.txt: the GPU, the driver, what works here
    lookup    lookup.csv: what finding an array's address costs on the processor
    overhead  overhead-*.csv: bindings alternately, natural and prebound, against native
    rows      rows-*.csv: latency, bandwidth and allreduce; device, host, managed and staged
    native    native.csv: beside Intel's IMB-MPI1-GPU, alternately
    nccl      nccl.csv: NCCL beside MPI
    validate  validate.csv: every benchmark on every buffer through every form, data checked

Each job is a line on standard output; what failed is counted at the end, and is the exit code.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from threading import Lock
from typing import TypeVar

import click

from omb_py.apps import APPLICATIONS
from omb_py.core.errors import MissingError, UnsupportedError
from perf.launchers import (
    OMB_PY,
    ROOT,
    Launcher,
    aware_launchers,
    on_two_ranks,
    own_launcher,
)

BUFFERS = ("cupy", "numba", "pycuda", "torch")
FORMS = ("buffer", "prebound", "native")
ONE_NODE = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SIZES = "1:4194304"
TELLING = "8,64,1024,8192,65536,1048576,4194304"
ROUNDS = 5
REFUSED = (UnsupportedError.exit_code, MissingError.exit_code)
IMB_LINE = re.compile(r"^\s+(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)(?:\s+([\d.]+))?")


Case = TypeVar("Case")
Result = TypeVar("Result")


class Check:
    """Runs jobs, keeps what they print, counts those that fail."""

    def __init__(self, folder: Path, launchers: list[Launcher], seconds: float) -> None:
        self.folder = folder
        self.launchers = launchers
        self.failed = 0
        self._limit = seconds
        self._counting = Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def job(
        self,
        launcher: Launcher,
        *arguments: str,
        ranks: int = 2,
        program: tuple[str, ...] = OMB_PY,
        refusal: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a job in the folder and say how it ended; a ``refusal`` may be no failure."""
        settings = os.environ | ONE_NODE | launcher.with_libraries() | dict(environment or {})
        settings["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(ROOT), settings.get("PYTHONPATH")])
        )
        begin = time.monotonic()
        command = ["timeout", f"{self._limit:g}", *launcher.run(ranks, *arguments, program=program)]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=settings,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        state = "ok" if done.returncode == 0 else f"exit code {done.returncode}"
        if done.returncode and not (refusal and done.returncode in REFUSED):
            with self._counting:
                self.failed += 1
        if done.returncode:
            state += f": {reason(done.stderr)}"
        name = " ".join(arguments) or Path(program[0]).name
        print(f"{time.monotonic() - begin:6.1f} s  {launcher.name}: {name}: {state}", flush=True)
        return done

    def untimed(self, work: Callable[[Case], Result], cases: Iterable[Case]) -> Iterator[Result]:
        """Do the work of each case, several at once: a case has two ranks, which wait busily."""
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
            yield from pool.map(work, cases)

    def table(self, name: str, rows: list[dict[str, object]]) -> None:
        """Write rows of one kind."""
        if not rows:
            return
        with (self.folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def machine(check: Check, buffers: list[str]) -> None:
    """What the machine is, and what of the suite works on it."""
    text = ""
    for command in (["nvidia-smi"], ["nvidia-smi", "topo", "-m"], [*OMB_PY, "info"]):
        try:
            settings = os.environ | check.launchers[0].with_libraries()
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                cwd=ROOT,
                check=False,
                timeout=120,
                env=settings,
            )
            said = done.stdout + done.stderr
        except (OSError, subprocess.TimeoutExpired) as error:
            said = f"{error}\n"
        shown = command if command[0] == "nvidia-smi" else ["omb-py", "info"]
        text += f"$ {' '.join(shown)}\n{said}\n"
    (check.folder / "machine.txt").write_text(text)
    print(text, flush=True)


def lookup(check: Check, buffers: list[str]) -> None:
    """The parts of handing an array to MPI, one rank by itself."""
    found: list[dict[str, object]] = []
    for name in ["numpy", *buffers]:
        script = (sys.executable, "-m", "perf.device_lookup")
        done = check.job(check.launchers[0], name, ranks=1, program=script)
        found += csv.DictReader(done.stdout.splitlines())
    check.table("lookup.csv", found)


def overhead(check: Check, buffers: list[str]) -> None:
    """What each form adds to the native call on the same memory."""
    for launcher in check.launchers:
        for name in buffers:
            for benchmark in ("latency", "allreduce"):
                check.job(
                    launcher,
                    *("overhead", benchmark, "--buffer", name, "--sizes", TELLING),
                    *("--bindings", "native,prebound,buffer,array", "--rounds", "20"),
                    *("-i", "200", "-x", "20", "-q"),
                    *("--output", file("overhead", launcher)),
                )


def rows(check: Check, buffers: list[str]) -> None:
    """Where messages lie, and what copying through the host costs."""
    places = (("D", "D"), ("D", "H"), ("H", "D"), ("H", "H"), ("MD", "MD"), ("MH", "MH"))
    for launcher in check.launchers:
        common = ("-m", SIZES, "-q", "--output", file("rows", launcher))
        for benchmark in ("latency", "bw"):
            for place in places:
                arguments = (benchmark, *place, "--buffer", buffers[0], "--binding", "native")
                check.job(launcher, *arguments, *common)
            staged = ("--buffer", buffers[0], "--binding", "native", "--staging")
            check.job(launcher, benchmark, *staged, *common)
        for name in buffers:
            for form in ("native", "buffer"):
                for benchmark in ("latency", "bw", "allreduce"):
                    chosen = (benchmark, "--buffer", name, "--binding", form)
                    check.job(launcher, *chosen, *common)
            check.job(launcher, "latency", "--buffer", name, "--stream-sync", *common)


def native(check: Check, buffers: list[str]) -> None:
    """Intel's C benchmarks beside ours, alternately, medians over the rounds."""
    intel = next((item for item in check.launchers if item.name == "Intel MPI"), None)
    if intel is None:
        print("no Intel MPI here: IMB-MPI1-GPU is not measured", flush=True)
        return
    program = Path(intel.command[0]).parent / "IMB-MPI1-GPU"
    found: dict[tuple[str, int, str], list[float]] = {}
    for theirs, ours in (("PingPong", "latency"), ("Allreduce", "allreduce")):
        for _ in range(ROUNDS):
            options = (theirs, "-msglog", "2:22", "-iter", "400", "-mem_alloc_type", "device")
            done = check.job(intel, *options, program=(str(program),))
            for size, microseconds in imb_rows(done.stdout):
                found.setdefault((ours, size, "IMB-MPI1-GPU"), []).append(microseconds)
            for form in ("native", "buffer"):
                arguments = (ours, "--buffer", buffers[0], "--binding", form, "-m", "4:4194304")
                done = check.job(intel, *arguments, "-i", "400", "--format", "csv")
                for row in csv_rows(done.stdout):  # lines of a launcher may follow
                    key = (ours, int(row["bytes"]), form)
                    found.setdefault(key, []).append(float(row["latency_us"]))
    check.table(
        "native.csv",
        [
            {"benchmark": name, "bytes": size, "program": program, "latency_us": median(values)}
            for (name, size, program), values in found.items()
        ],
    )


def nccl(check: Check, buffers: list[str]) -> None:
    """NCCL and MPI: on two ranks, or only collectives on one if NCCL refuses a shared device."""
    if "cupy" not in buffers:
        return

    def measured(name: str, binding: str, ranks: int, refusal: bool = False) -> bool:
        arguments = (name, "--buffer", "cupy", "--binding", binding, "-m", "4:4194304", "-q")
        variables = {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
        output = ("--output", "nccl.csv")
        launcher = check.launchers[0]
        done = check.job(
            launcher, *arguments, *output, ranks=ranks, refusal=refusal, environment=variables
        )
        return done.returncode == 0

    collectives = ("allgather", "bcast", "reduce", "alltoall")
    ranks = 2 if measured("allreduce", "nccl", 2, refusal=True) else 1
    if ranks == 1:
        measured("allreduce", "nccl", 1)
    measured("allreduce", "native", ranks)
    for name in collectives if ranks == 1 else (*collectives, "latency", "bw"):
        for binding in ("nccl", "native"):
            measured(name, binding, ranks)


def validate(check: Check, buffers: list[str]) -> None:
    """Every benchmark on every buffer in every form."""

    def passes(case: tuple[Launcher, str, str, str]) -> dict[str, object]:
        launcher, benchmark, name, form = case
        arguments = (benchmark, "--buffer", name, "--binding", form, "-c")
        sizes = ("--sizes", "8,65536,4194304", "-i", "3", "-x", "1", "-u", "1", "-M", "4294967296")
        done = check.job(launcher, *arguments, *sizes, refusal=True)
        return {
            "mpi": launcher.name,
            "benchmark": benchmark,
            "buffer": name,
            "binding": form,
            "result": result_of(done.returncode),
        }

    cases = [
        (launcher, benchmark.name, name, form)
        for launcher in check.launchers
        for name in buffers
        for benchmark in on_two_ranks()
        for form in (FORMS if benchmark.family in ("point-to-point", "collective") else FORMS[:1])
    ]
    results: list[dict[str, object]] = []
    for result in check.untimed(passes, cases):
        results.append(result)
        check.table("validate.csv", results)


def applications(check: Check, buffers: list[str]) -> None:
    """Every application on the device, handed over and staged, on one rank and on two."""
    if "cupy" not in buffers:
        return
    names = APPLICATIONS.builtin()
    launcher = check.launchers[0]
    for name in (one for one in names if one != "replay"):
        for ranks, form in ((1, ()), (2, ()), (2, ("--staging",))):
            output = ("--buffer", "cupy", "-q", "--output", "applications.csv")
            check.job(launcher, name, *form, *output, ranks=ranks)


def imb_rows(text: str) -> Iterator[tuple[int, float]]:
    """Sizes and microseconds of IMB's tables: the only time, or the average of three."""
    for line in text.splitlines():
        found = IMB_LINE.match(line)
        if found:
            size, _, first, _, third = found.groups()
            yield int(size), float(third if third is not None else first)


def csv_rows(text: str) -> Iterator[dict[str, str]]:
    """The rows of omb-py's CSV on standard output."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    yield from (row for row in csv.DictReader(lines) if (row.get("bytes") or "").isdigit())


def file(kind: str, launcher: Launcher) -> str:
    """The name of a library's file of one kind."""
    return f"{kind}-{launcher.name.lower().replace(' ', '-')}.csv"


def usable(names: tuple[str, ...]) -> list[str]:
    """Those buffers that work here; why the others don't is printed."""
    found = []
    for name in names:
        command = [sys.executable, "-c", f"from perf.gpu_check import prepare; prepare({name!r})"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        if done.returncode == 0:
            found.append(name)
        else:
            print(f"without {name}: {last_line(done.stderr)}", flush=True)
    return found


def result_of(code: int) -> str:
    """What the exit code of a job with checked data says."""
    return "Refused" if code in REFUSED else "Fail" if code else "Pass"


def reason(stderr: str) -> str:
    """Why a job failed: the last sentence of omb-py that is no note, else the end of its output."""
    said = [line for line in stderr.splitlines() if line.startswith("omb-py: ")]
    errors = [line for line in said if not line.startswith("omb-py: note: ")]
    return errors[-1] if errors else stderr.strip()[-200:]


def last_line(text: str) -> str:
    """The last line of a text, where tracebacks and our sentences have what matters."""
    return (text.strip().splitlines() or [""])[-1]


def prepare(name: str) -> None:
    """Take and leave a buffer's device, in a process of its own; its exit says why it cannot."""
    from omb_py.buffers import BUFFERS
    from omb_py.core.errors import OmbError

    try:
        BUFFERS.load(name).prepare(0).close()
    except OmbError as error:
        sys.exit(str(error))


ALL = (machine, lookup, overhead, rows, native, nccl, validate, applications)
PARTS = {part.__name__: part for part in ALL}


@click.command(help=__doc__)
@click.option("--output", default="results/gpu", show_default=True, type=Path)
@click.option("--parts", default=",".join(PARTS), show_default=True)
@click.option("--buffers", default=",".join(BUFFERS), show_default=True)
@click.option("--mpi", help="Only the library whose name contains this.")
@click.option("--job-seconds", default=120.0, show_default=True, help="Limit of one job.")
def main(output: Path, parts: str, buffers: str, mpi: str | None, job_seconds: float) -> None:
    launchers = [item for item in aware_launchers() if mpi is None or mpi in item.name]
    chosen = usable(tuple(buffers.split(",")))
    if not chosen:
        raise click.ClickException("no buffer on a device works here, so there is nothing to check")
    check = Check(output.resolve(), launchers or [own_launcher()], job_seconds)
    for part in parts.split(","):
        if part not in PARTS:
            raise click.ClickException(f"no part {part!r}: choose from {', '.join(PARTS)}")
        PARTS[part](check, chosen)
    print(f"{check.failed} jobs failed; files in {output}")
    sys.exit(min(check.failed, 1))


if __name__ == "__main__":
    main()
