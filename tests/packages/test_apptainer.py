"""The definition of an Apptainer image: its sections, and which MPI library an image loads."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from omb_py.core import VERSION
from tests import ROOT

DEFINITION = ROOT / "contrib" / "apptainer" / "omb-py.def"
SCRIPTS = ("post", "environment", "runscript", "test")


def sections() -> dict[str, str]:
    """The text of each section, by its name."""
    _, *parts = re.split(r"(?m)^%(\w+)\n", DEFINITION.read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_it_has_the_wheel_of_this_version() -> None:
    assert (
        f"wheel=dist/omb_python-{VERSION}-py3-none-manylinux_2_17_x86_64.whl"
        in sections()["arguments"]
    )
    assert "{{ wheel }}" in sections()["files"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_those_of_a_posix_shell(name: str) -> None:
    text = sections()[name]
    subprocess.run(["sh", "-n"], input=text, text=True, check=True)
    if shutil.which("shellcheck"):
        command = ["shellcheck", "--shell=sh", "-"]
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout


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
    script = sections()["environment"].replace("/host", str(tmp_path)) + "\nenv | sort"
    done = subprocess.run(
        ["sh", "-e"], input=script, text=True, capture_output=True, check=True, env={"PATH": "/bin"}
    )
    known = ("LD_LIBRARY_PATH=", "MPI4PY_LIBMPI=", "PYTHONPATH=")
    found = [line for line in done.stdout.splitlines() if line.startswith(known)]
    assert " ".join(found).replace(str(tmp_path), "HOST") == loads
    assert "PATH=/opt/omb-py/bin:/bin" in done.stdout.splitlines()
