"""Each command needs the packages of one extra only, and names that one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

BEYOND_TABLES = ("scipy", "altair", "vl_convert", "plotext", "jinja2", "tomli_w", "simgrid")
BEYOND_BASE = (*BEYOND_TABLES, "pandas", "pyarrow", "rich", "pydantic", "annotated_types")
FILE = ROOT / "results" / "imb.txt"
PROFILE = ROOT / "tests" / "data" / "mpitrace" / "thetagpu-cpu-16ranks.txt"


def without(
    packages: tuple[str, ...], words: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command where packages cannot be imported."""
    program = (
        f"import sys; sys.modules |= dict.fromkeys({packages}); from omb_py.cli import main; main()"
    )
    command = [sys.executable, "-c", program, *words.format(file=FILE, profile=PROFILE).split()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    ["show {file}", "show {file} -o rows.parquet", "efficiency {profile} --format json"],
)
def test_extra_tables_is_enough(words: str, tmp_path: Path) -> None:
    done = without(BEYOND_TABLES, words, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("packages", "words", "extra"),
    [
        (BEYOND_BASE, "show {file}", "[tables]'"),
        (BEYOND_BASE, "efficiency {profile}", "[tables]'"),
        (BEYOND_BASE, "traffic x", "[tables]'"),
        (BEYOND_BASE, "show {file} --across ranks", "[analysis]'"),
        (BEYOND_BASE, "show {file} --format latex", "[analysis]'"),
        (BEYOND_BASE, "show {file} --speedup", "[analysis]'"),
        (BEYOND_TABLES, "show {file} --format latex", "[analysis]'"),
        (BEYOND_TABLES, "show {file} --speedup", "[analysis]'"),
        (BEYOND_BASE, "compare {file} {file}", "[analysis]'"),
        (BEYOND_BASE, "model {file}", "[analysis]'"),
        (BEYOND_TABLES, "plot {file}", "[analysis]'"),
        (BEYOND_TABLES, "gate", "[analysis]'"),
        (BEYOND_BASE, "sweep quick", "[sweep]'"),
        (BEYOND_BASE, "simulate allreduce --ranks 4", "[simulate]'"),
        (BEYOND_TABLES, "simulate allreduce --ranks 4", "python3-simgrid"),
    ],
)
def test_missing_package_is_named_by_the_smallest_extra(
    packages: tuple[str, ...], words: str, extra: str, tmp_path: Path
) -> None:
    done = without(packages, words, tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (8, 1)
    assert extra in done.stderr
