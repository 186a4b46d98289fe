"""Tuning with real launches: a bad choice is found and undone, a bad file is named."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from omb_py.algorithms import library
from omb_py.algorithms.rules import LibraryBuild, Rule, rules_format
from omb_py.analysis.table import load
from omb_py.core.mpi import abi
from tests.conftest import ENVIRONMENT, OMB_PY, Finished, run
from tests.helpers.refusals import assert_refused
from tests.layers import MANY_RANKS
from tests.mpi.vendor import VENDOR

pytestmark = [
    pytest.mark.usefixtures("mpi"),
    pytest.mark.every_library,
    # beside jobs of many ranks no difference can be told
    pytest.mark.xdist_group(MANY_RANKS),
]

HANDICAP = {
    "MPICH": {"MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM": "brucks"},
    "Open MPI": {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_alltoall_algorithm": "3",
    },
}[VENDOR]
"""Variables by which a user forces an algorithm that copies all data several times."""

POINT = ("--ranks", "4", "--sizes", "256K", "--launches", "6")
BUILD = LibraryBuild(VENDOR, (5, 0, 10), Path(abi.library_path()))


def tune(
    folder: Path, *words: str, variables: dict[str, str] | None = None, timeout: float = 400
) -> Finished:
    return run([OMB_PY, "tune", *words], ENVIRONMENT | (variables or {}), folder, timeout)


def assert_said(done: Finished, *parts: str) -> None:
    for part in parts:
        assert part in done.out, done.out + done.err


def table_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open() as file:
        return [*csv.DictReader(file)]


def files_with(folder: Path, word: str) -> list[str]:
    """Files of rules that name an algorithm of alltoall at 256 KiB on four ranks."""
    form = rules_format(VENDOR)
    rule = Rule("alltoall", 4, 1 << 18, 1 << 18, library(VENDOR).algorithm("alltoall", word))
    for name, text in zip(form.files, form.write([rule], [], BUILD), strict=True):
        (folder / name).write_text(text)
    return list(form.files)


@pytest.mark.long
def test_algorithm_forced_by_a_variable_is_undone_where_it_is_slow(tmp_path: Path) -> None:
    done = tune(tmp_path, "alltoall", *POINT, variables=HANDICAP)
    assert done.code in (0, 7), done.out + done.err
    (row,) = table_of(tmp_path / "rules")
    if not float(row["fastest_high"]) < 1:
        pytest.skip("the machine is too busy to tell a factor of three")
    exports = (tmp_path / "rules" / "environment.sh").read_text()
    for name in HANDICAP:
        assert name.endswith("use_dynamic_rules") or f"export {name}=" in exports
    if row["choice"] != "kept":
        assert (row["verdict"], float(row["rules_high"]) < 1) == ("faster", True), done.out
        assert " says: " in done.out

    again = tune(tmp_path, "alltoall", *POINT, variables=HANDICAP)
    assert again.code == done.code, again.err
    assert "measuring alltoall" not in again.err, "rows that are there are measured again"
    assert table_of(tmp_path / "rules") == [row]


@pytest.mark.long
def test_rule_that_is_slower_fails_the_check_of_its_file(tmp_path: Path) -> None:
    files = [word for name in files_with(tmp_path, "bruck") for word in ("--check", name)]
    done = tune(tmp_path, "alltoall", *POINT, *files)
    if done.code == 7 and "cannot tell" in done.out:
        pytest.skip("the machine is too busy to tell a factor of three")
    assert done.code == 4, done.out + done.err
    assert_said(done, "FAIL: 0 of 1 point", "  alltoall 256 KiB on 4 ranks, bruck: 0.")


def test_file_that_the_library_does_not_read_fails_the_check_at_once(tmp_path: Path) -> None:
    bad = {"MPICH": '{"collective=alltoall": {"rank=3": {}}}', "Open MPI": "1 3 1 4 1 8 2 0 0"}
    (tmp_path / "bad").write_text(bad[VENDOR])
    done = tune(tmp_path, "alltoall", *POINT, "--check", "bad", timeout=60)
    assert done.code == 4, done.out + done.err
    assert_said(done, "FAIL: 0 of 1 file read by the library", "this file")
    assert not (tmp_path / "rules").exists()


def test_rules_in_force_are_named_in_results_and_their_comparison(tmp_path: Path) -> None:
    files = [tmp_path / name for name in files_with(tmp_path, "pairwise")]
    variables = rules_format(VENDOR).environment(files)
    for name, more in (("plain.csv", {}), ("tuned.csv", variables)):
        words = ["alltoall", "--sizes", "256K", "-i", "3", "-o", name]
        done = run([OMB_PY, *words], ENVIRONMENT | more, tmp_path, 60)
        assert done.code == 0, done.err
    (row,) = load(tmp_path / "tuned.csv").rows.to_dict("records")
    assert f" with rules {files[0].name}:" in row["mpi"]
    compared = run([OMB_PY, "compare", "plain.csv", "tuned.csv"], ENVIRONMENT, tmp_path, 60)
    assert f"with rules {files[0].name}" in compared.out, compared.out + compared.err


def test_plan_is_shown_without_measuring(tmp_path: Path) -> None:
    done = tune(tmp_path, "alltoall", *POINT, "--dry-run", timeout=60)
    assert done.code == 0, done.err
    assert_said(done, " options, 6 of each", f"{VENDOR} 5.")
    assert not list((tmp_path / "rules").glob("*/points/*.csv"))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "name a collective to tune"),
        (["latency"], "latency has no algorithms to choose from tune allreduce"),
        (["exscan"], "exscan has one algorithm, or rules that do not see the size"),
        (["allreduce", "--ranks", "x"], "--ranks x numbers"),
        (["allreduce", "--sweep", "quick"], "--sweep names the functions leave out allreduce"),
        (["allreduce", "--gain", "0%"], "--gain"),
        (["allreduce", "--check", "missing"], "missing"),
    ],
)
def test_impossible_request_is_refused_in_a_sentence(
    tmp_path: Path, words: list[str], named: str
) -> None:
    done = tune(tmp_path, *words, timeout=60)
    assert_refused(done, 1 if "missing" in words else 2, named)
