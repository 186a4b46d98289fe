"""MPI libraries alternately, with real launches: one table; those that cannot start are named."""

from __future__ import annotations

import csv
import json
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ENVIRONMENT, OMB_PY, Finished, run
from tests.helpers.refusals import assert_refused
from tests.mpi.vendor import VENDOR

pytestmark = [pytest.mark.usefixtures("mpi"), pytest.mark.every_library]

MACHINE = """
name = "two"
oversubscribe = true

[library.one]
virtual_environment = "{environment}"

[library.again]
virtual_environment = "{environment}"
environment = {{ OMB_TEST_LIBRARY = "again" }}

[library.empty]
libmpi = "{folder}/libmpi.so"
"""


def omb_py(folder: Path, *words: str) -> Finished:
    return run([OMB_PY, *words], ENVIRONMENT, folder, 200)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "libmpi.so").write_text("no library")
    path = tmp_path / "two.toml"
    path.write_text(MACHINE.format(environment=sys.prefix, folder=tmp_path))
    return path


@pytest.mark.long
def test_libraries_take_turns_in_one_table_and_one_that_does_not_start_is_named(
    tmp_path: Path, machine: Path
) -> None:
    words = ["compare", "--libraries", "--machine", machine.name, "latency", "barrier"]
    words += ["--sizes", "8", "--rounds", "2", "--keep", "kept"]
    done = omb_py(tmp_path, *words, "-o", "table.csv")
    assert done.code == 0, done.err
    assert "left out 4 points with empty: its MPI library cannot be loaded" in done.err
    assert "no row of empty could be measured" in done.err
    rows = [*csv.DictReader((tmp_path / "table.csv").open())]
    assert [(row["benchmark"], row["bytes"], row["other"]) for row in rows] == [
        ("latency", "8", "again"),
        ("barrier", "", "again"),
    ]
    assert {row["base_mpi"] for row in rows} == {row["other_mpi"] for row in rows}
    assert all(row["runs_base"] == row["runs_other"] == "2" for row in rows)

    software = json.loads((tmp_path / "kept" / "software.json").read_text())
    assert {one["name"] for one in software} == {"one", "again"}
    assert all(one["library"].startswith(VENDOR) for one in software)
    (file,) = (tmp_path / "kept" / "points").glob("barrier-*-again-r2-*.csv")
    assert "again" in file.read_text()

    again = omb_py(tmp_path, *words)
    assert again.code == 0, again.err
    assert "measuring" not in again.err, "rows that are there are measured again"
    assert "MPI libraries" in again.out


def test_sweep_whose_libraries_cannot_be_started_refused(tmp_path: Path, machine: Path) -> None:
    words = ["compare", "--libraries=empty,gone", "--machine", machine.name, "barrier"]
    machine.write_text(f"{machine.read_text()}\n[library.gone]\nvirtual_environment = '/none'\n")
    done = omb_py(tmp_path, *words, "--keep", "kept")
    assert_refused(done, 1, "no library of two can be started empty: gone: /none/bin/python")


@pytest.mark.long
def test_rows_of_another_library_under_the_same_name_are_refused(
    tmp_path: Path, machine: Path
) -> None:
    words = ["compare", "--libraries=one,again", "--machine", machine.name, "barrier"]
    words += ["--rounds", "1", "--keep", "kept"]
    assert omb_py(tmp_path, *words).code == 0
    known = tmp_path / "kept" / "software.json"
    known.write_text(known.read_text().replace(VENDOR, "Other MPI"))
    refused = omb_py(tmp_path, *words, "latency")
    assert_refused(refused, 2, "rows of other software of library instead of Other MPI")


def test_library_that_is_here_is_found_and_its_table_is_a_machine_s(tmp_path: Path) -> None:
    done = omb_py(tmp_path, "info", "--libraries", sys.prefix)
    assert done.code == 0, done.err
    tables = tomllib.loads(done.out)["library"]
    assert sys.prefix in [one.get("virtual_environment") for one in tables.values()]
    (tmp_path / "mine.toml").write_text(f'name = "mine"\n{done.out}')
    name = next(iter(tables))
    sweep = f"""
name = "one"
[[experiments]]
benchmarks = "barrier"
bindings = "buffer"
ranks = 2
libraries = "{name}"
"""
    (tmp_path / "one.toml").write_text(sweep)
    done = omb_py(tmp_path, "sweep", "./one.toml", "--machine", "./mine.toml")
    assert done.code == 0, done.out + done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--libraries=one", "--machine", "two.toml"], "--libraries=one two or more"),
        (["--libraries=one,three", "--machine", "two.toml"], "[library.three] one, again"),
        (["--libraries", "--native", "osu"], "--native --libraries exclude"),
        (["--libraries", "--machine", "two.toml", "lattency"], "lattency latency"),
        (["--libraries", "--machine", "two.toml", "--where", "ranks=2"], "--where --libraries"),
        (["--libraries", "--machine", "two.toml", "--name", "mine"], "--name --libraries"),
        (["a", "b", "--machine", "local"], "--machine --libraries"),
    ],
)
def test_libraries_that_cannot_be_compared_refused(
    machine: Path, words: list[str], said: str
) -> None:
    assert_refused(omb_py(machine.parent, "compare", *words), 2, said)
