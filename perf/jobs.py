"""Jobs of this Python's MPI, for the scripts of this folder."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
OMB_PY = str(BIN / "omb-py")
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,sm",
}

OVERSUBSCRIBED = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_osc": "^ucx",
}
"""Lets Open MPI start more ranks than there are cores, without a line for each window."""


def compile_reference(output: str, *options: str) -> None:
    """Compile ``reference.c`` with the MPI's own compiler."""
    compile_c(str(HERE / "reference.c"), output, *options)


def compile_c(source: str, output: str, *options: str) -> None:
    """Compile a C program or library with the compiler of mpi4py's MPI library, for its ABI."""
    from omb_py.tracing.recorder.library import compiler

    command = [compiler(), "-O2", *options, "-o", output, source]
    subprocess.run(command, env=ENVIRONMENT, check=True)


def printed_by(*command: str) -> str:
    """What two ranks of a command print."""
    return subprocess.run(
        [str(BIN / "mpiexec"), "-n", "2", *command],
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def rows_of(*arguments: str) -> list[dict[str, str]]:
    """The rows that two ranks of omb-py measure."""
    lines = printed_by(OMB_PY, *arguments, "--format", "csv").splitlines()
    return parsed(lines)


def parsed(lines: Iterable[str]) -> list[dict[str, str]]:
    """The rows of a CSV table, without its comments."""
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
