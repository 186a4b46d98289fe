"""Which MPI library an Apptainer image loads: its environment, by the shell alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import ROOT

DEFINITION = ROOT / "contrib" / "apptainer" / "omb-py.def"


@pytest.mark.parametrize(
    ("library", "loads"),
    [
        (None, ""),
        ("libmpi_abi.so.1", "LD_LIBRARY_PATH=HOST/lib"),
        *(
            (
                name,
                f"LD_LIBRARY_PATH=HOST/lib MPI4PY_LIBMPI=HOST/lib/{name} "
                "PYTHONPATH=/opt/mpi4py-of-pypi",
            )
            for name in ("libmpi.so.12", "libmpi.so.40")
        ),
    ],
)
def test_host_library_decides_the_abi(tmp_path: Path, library: str | None, loads: str) -> None:
    if library:
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / library).touch()
    (text,) = re.findall(r"(?ms)^%environment\n(.*?)^%", DEFINITION.read_text(encoding="utf-8"))
    script = text.replace("/host", str(tmp_path)) + "\nenv | sort"
    done = subprocess.run(
        ["sh", "-e"], input=script, text=True, capture_output=True, check=True, env={"PATH": "/bin"}
    )
    known = ("LD_LIBRARY_PATH=", "MPI4PY_LIBMPI=", "PYTHONPATH=")
    found = [line for line in done.stdout.splitlines() if line.startswith(known)]
    assert " ".join(found).replace(str(tmp_path), "HOST") == loads
    assert "PATH=/opt/omb-py/bin:/bin" in done.stdout.splitlines()
