"""Every benchmark on this environment's MPI: does it pass, and what does it measure?

Usage: python -m perf.families check [NAME]…    adds to docs/support.csv what passes -c
       python -m perf.families measure     8 B and 1 MiB, native and buffer, to results/

Two ranks, but three for neighbourhoods and four for congestion (as two nodes) and failures.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from omb_py.benchmarks import Benchmark, all_benchmarks
from omb_py.core.mpi import THROTTLE
from perf.jobs import BIN, ENVIRONMENT, OMB_PY, OVERSUBSCRIBED

ROOT = Path(__file__).parent.parent
SUPPORT = ROOT / "docs" / "support.csv"
COLUMNS = ("benchmark", "mpi", "binding", "outcome")
BINDINGS = ("buffer", "native", "pickle")
SECONDS = 120
FEW_CORES = THROTTLE | OVERSUBSCRIBED
REPLACING = {"OMPI_MCA_btl": "self,sm,tcp"}
"""How processes that replace failed ranks reach the others."""


def ranks(benchmark: Benchmark) -> int:
    """How many ranks a benchmark gets."""
    has = benchmark.options
    return 4 if "nodes" in has or benchmark.recovery else 3 if "topology" in has else 2


def launcher(benchmark: Benchmark) -> list[str]:
    """The launcher and its options."""
    words = [str(BIN / "mpiexec"), "-n", str(ranks(benchmark))]
    open_mpi = (BIN / "prterun").exists()
    return [*words, "--with-ft", "ulfm"] if benchmark.recovery and open_mpi else words


def run(benchmark: Benchmark, *arguments: str) -> tuple[int, str, str]:
    """Run a benchmark: exit code, standard output, and what our ranks said."""
    count = ranks(benchmark)
    more = ["--node-map", "2"] if "nodes" in benchmark.options else []
    with tempfile.TemporaryDirectory() as folder:
        if "file" in benchmark.options:
            more += ["--file", f"{folder}/file"]
        command = [*launcher(benchmark), OMB_PY, benchmark.name, *more]
        environment = ENVIRONMENT | {"TMPDIR": folder} | (FEW_CORES if count > 2 else {})
        environment.setdefault("OMPI_MCA_osc", "^ucx")
        environment |= REPLACING if benchmark.recovery else {}
        try:
            done = subprocess.run(
                [*command, *arguments],
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 124, "", f"still running after {SECONDS} s"
    said = [line for line in done.stderr.splitlines() if line.startswith("omb-py: ")]
    said = [line for line in said if "note: " not in line]
    return done.returncode, done.stdout, said[-1].removeprefix("omb-py: ") if said else "crashes"


def mpi_library() -> str:
    """The MPI library's name and version."""
    done = subprocess.run([OMB_PY, "info"], capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("MPI "))
    return line.removeprefix("MPI").strip().split(";")[0]


def bindings_of(benchmark: Benchmark) -> tuple[str, ...]:
    """The bindings that a benchmark is tried through; start-up passes through none."""
    return BINDINGS if benchmark.planned else ("",)


def outcome(benchmark: Benchmark, binding: str) -> str:
    """``pass``, ``runs`` where there is no data to check, or why not."""
    arguments = ["-i", "3", "-x", "1"] if binding else []
    if binding:
        arguments += ["--binding", binding]
    if benchmark.sized:
        arguments += ["-c", "-u", "1"]
        arguments += [] if benchmark.elements else ["--sizes", "8,4096,65536"]
    code, out, said = run(benchmark, *arguments)
    if code == 0:
        return "pass" if benchmark.sized and "Pass" in out else "runs"
    return said


def check(names: Sequence[str] = ()) -> None:
    """Write down which of these benchmarks, or of all, work with this MPI."""
    library = mpi_library()
    chosen = [one for one in all_benchmarks() if not names or one.name in names]
    again = {one.name for one in chosen}
    kept = []
    if SUPPORT.is_file():
        with SUPPORT.open(newline="") as file:
            known = csv.DictReader(file)
            kept = [row for row in known if row["mpi"] != library or row["benchmark"] not in again]
    for benchmark in chosen:
        for binding in bindings_of(benchmark):
            found = (benchmark.name, library, binding, outcome(benchmark, binding))
            print(*found, sep="  ", flush=True)
            kept.append(dict(zip(COLUMNS, found, strict=True)))
    kept.sort(key=lambda row: [row[column] for column in COLUMNS[:3]])
    with SUPPORT.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)


def measure() -> None:
    """Measure every benchmark through native and buffer; sizes only where it has several."""
    os.chdir(ROOT / "results")
    name = mpi_library().split()[0].lower()
    output = f"families-{'mpich' if name == 'mpich' else 'openmpi'}.csv"
    Path(output).unlink(missing_ok=True)
    for benchmark in all_benchmarks():
        for binding in ("native", "buffer") if benchmark.planned else ("",):
            words = ["--output", output, "-q", *(["--binding", binding] if binding else [])]
            if benchmark.sized and not benchmark.elements:
                words += ["--sizes", "8,1M"]
            code, _, said = run(benchmark, *words)
            print(benchmark.name, binding, said if code else "", flush=True)


if __name__ == "__main__":
    command, *names = sys.argv[1:]
    if command == "check":
        check(names)
    else:
        measure()
