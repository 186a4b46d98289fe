"""Guidelines on results: what is planted is found, sane libraries are not accused."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.guidelines import check as checking
from omb_py.analysis.guidelines import rules
from omb_py.analysis.guidelines.check import CANNOT_TELL, COLUMNS, HOLDS, VIOLATED, guidelines
from omb_py.analysis.guidelines.rules import FORMS, chosen, of_blocks, size_beside
from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import UsageError
from tests import ROOT
from tests.analysis.guidelines.synthetic import SIZES, results
from tests.helpers.properties import examples
from tests.helpers.refusals import refuses


def violated(points: pd.DataFrame) -> dict[str, list[int]]:
    """Sizes of violations by guideline."""
    found = points[points["verdict"] == VIOLATED]
    return {
        str(name): [int(size) for size in rows["bytes"].dropna()]
        for name, rows in found.groupby("guideline")
    }


def test_planted_violation_is_the_only_one_found() -> None:
    rows = results(("allreduce", "reduce", "bcast"), {("allreduce", 1024): 3.0})
    points = guidelines(rows, only=("emulation",))
    assert violated(points) == {"allreduce <= reduce + bcast": [1024]}
    (point,) = points[points["verdict"] == VIOLATED].to_dict("records")
    assert point["ratio"] == pytest.approx(1.5, rel=0.05)  # 3 times one of two alike calls
    assert point["ratio_low"] < 1.5 < point["ratio_high"]
    assert (point["runs_left"], point["runs_right"], point["time"]) == (10, 10, "slowest")
    assert list(points.columns) == list(COLUMNS)


def test_sizes_of_blocks_meet_sizes_of_whole_messages() -> None:
    """A broadcast of 1024 bytes to 4 ranks is beside blocks of 256 bytes, not of 1024."""
    rows = results(("bcast", "scatter", "allgather"), {("scatter", 256): 4.0})
    points = guidelines(rows, only=("emulation", "bcast")).set_index("bytes")
    assert list(points.index) == [64, 256, 1024, 4096]  # blocks of 4 bytes were not measured
    assert points.loc[1024, "right_us"] == pytest.approx(5 * (10 + 1.024), rel=0.05)
    assert points.loc[256, "right_us"] == pytest.approx(2 * (10 + 0.256), rel=0.05)


@pytest.mark.slow
@examples(50)
@given(st.integers(1, 1 << 20), st.integers(2, 100))
def test_both_sides_move_the_same_data(size: int, ranks: int) -> None:
    for rule in rules.guidelines():
        for name in rule.right if rule.kind == "emulation" and rule.left != "barrier" else ():
            moved = [
                each * (ranks if of_blocks(which) else 1)
                for which, each in (
                    (rule.left, size),
                    (name, size_beside(rule.left, name, size, ranks)),
                )
            ]
            assert 0 <= moved[1] - moved[0] < ranks


def test_guidelines_name_benchmarks_that_there_are() -> None:
    names = [rule.name for rule in rules.guidelines()]
    assert len(set(names)) == len(names)
    for rule in rules.guidelines():
        for name in (rule.left, *rule.right):
            assert find_benchmark(name).name == name


def test_the_documentation_lists_every_emulated_collective() -> None:
    page = (ROOT / "docs" / "guidelines.md").read_text(encoding="utf-8")
    rows = {row[1]: row[2] for row in re.finditer(r"\| `(\w+)` \| (.*) \|\n", page)}
    for left, others in rules.EMULATED.items():
        assert rows[left] == ", ".join(f"`{right.replace(' ', ' + ')}`" for right in others)


@pytest.mark.long
def test_library_at_the_limit_is_rarely_a_violation() -> None:
    """All sides that are one call are exactly alike, and nothing is tolerated: one set in 20."""
    names = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "scatter")
    accused = [
        seed
        for seed in range(12)
        if violated(guidelines(results(names, seed=seed), tolerance=0.0, only=("emulation",)))
    ]
    assert len(accused) <= 1


@pytest.mark.parametrize(
    ("names", "slow", "only", "found"),
    [
        (
            ("bcast",),
            {("bcast", 64): 2.0, ("bcast", 4096): 9.0},
            None,
            {"bcast(n) <= bcast(m), n < m": [64], "bcast(k n) <= k bcast(n)": [4096]},
        ),
        (
            ("allreduce", "iallreduce", "allreduce_persistent"),
            {("iallreduce", 64): 1.5, ("allreduce_persistent", 256): 1.3},
            tuple(FORMS),
            {"iallreduce <= allreduce": [64], "allreduce_persistent <= allreduce": [256]},
        ),
        (
            ("barrier", "allreduce"),
            {("barrier", None): 2.0},
            ("barrier",),
            {"barrier <= allreduce": []},
        ),
    ],
)
def test_each_kind_is_found(
    names: tuple[str, ...],
    slow: dict[Any, float],
    only: tuple[str, ...] | None,
    found: dict[str, list[int]],
) -> None:
    assert violated(guidelines(results(names, slow), only=only)) == found


def test_one_launch_tells_nothing() -> None:
    rows = results(("gather", "allgather"), {("gather", 64): 5.0}, launches=1)
    points = guidelines(rows, only=("gather",))
    assert set(points["verdict"]) == {CANNOT_TELL}
    assert points["ratio_low"].isna().all()
    assert any("too few launches" in remark for remark in checking.remarks(points))


def test_unlike_rows_are_never_compared() -> None:
    slow = results(("gather", "allgather"), binding="pickle", time=lambda *_: 100.0)
    fast = results(("gather", "allgather"), binding="native")
    points = guidelines(pd.concat([slow, fast]), only=("emulation",))
    assert set(points["binding"]) == {"pickle", "native"}
    assert set(points["verdict"]) == {HOLDS}
    assert not violated(guidelines(pd.concat([slow[slow["benchmark"] == "gather"], fast])))
    ints = results(("allreduce", "reduce", "bcast"), mpi_type="MPI_INT")
    floats = results(("allreduce",), mpi_type="MPI_FLOAT", time=lambda *_: 100.0)
    points = guidelines(pd.concat([ints, floats]), only=("allreduce", "emulation"))
    assert set(points["mpi_type"]) == {"MPI_INT"}
    assert not violated(points)


@pytest.mark.parametrize("column", ["library_algorithm", "algorithm"])
def test_another_algorithm_is_not_judged_as_the_library(column: str) -> None:
    rows = results(("gather", "allgather"), {("gather", 64): 4.0})
    ring = results(("gather",), launches=30, time=lambda *_: 1000.0).assign(**{column: "ring"})
    points = guidelines(pd.concat([rows, ring]), only=("emulation",))
    assert violated(points) == {"gather <= allgather": [64]}
    assert any("--coll-algorithm" in remark for remark in checking.remarks(points))


@pytest.mark.parametrize(
    ("column", "label"), [("library_algorithm", "default"), ("algorithm", "library")]
)
def test_rows_labelled_as_the_library_choice_are_judged(column: str, label: str) -> None:
    rows = results(("gather", "allgather"), {("gather", 64): 4.0}).assign(**{column: label})
    assert violated(guidelines(rows, only=("emulation",))) == {"gather <= allgather": [64]}


@pytest.mark.parametrize(
    ("left", "right", "launches"),
    [
        (4, 4, ["4 launches a side"]),
        (4, 5, ["4 launches against 5"]),
        (5, 4, ["5 launches against 4"]),
        (4, 12, []),
        (12, 4, []),
    ],
)
def test_remark_on_chance_fits_the_launches_of_both_sides(
    left: int, right: int, launches: list[str]
) -> None:
    rows = [results(("gather",), launches=left), results(("allgather", "reduce"), launches=right)]
    points = guidelines(pd.concat(rows), only=("gather",))
    points = points[points["guideline"].isin(["gather <= allgather", "gather <= reduce"])]
    remarks = [text.partition(" checks ")[0] for text in checking.remarks(points)]
    assert remarks == [f"with {each}, a single violation among 9" for each in launches]


def test_violations_at_neighbouring_sizes_are_one_line() -> None:
    slow = {("gather", size): factor for size, factor in ((16, 2.0), (64, 3.0), (1024, 2.5))}
    points = guidelines(results(("gather", "allgather"), slow), only=("emulation",))
    (sheet,) = checking.sheets(points)
    assert [cells[:2] for cells in sheet.rows] == [
        ("gather <= allgather", "16 B to 64 B"),
        ("gather <= allgather", "1 KiB"),
    ]
    assert [cells[4] for cells in sheet.rows] == ["64 B", "1 KiB"]
    assert (
        checking.summary(points, [])
        == "5 checks of 1 guideline: 3 violated, 2 hold, 0 cannot be told"
    )
    assert len(checking.conclusion(points, [], [], 2.2).reasons) == 2


@examples(30)
@given(st.integers(2, 9), st.floats(0.5, 2.0), st.floats(0.0, 0.3), st.integers(0, 99))
def test_verdict_fits_interval(launches: int, factor: float, tolerance: float, seed: int) -> None:
    slow = {("gather", size): factor for size in SIZES}
    rows = results(("gather", "allgather"), slow, launches, noise=0.1, seed=seed)
    points = guidelines(rows, tolerance, ("emulation",))
    limit = 1 + tolerance
    assert (points.loc[points["verdict"] == VIOLATED, "ratio_low"] > limit).all()
    assert (points.loc[points["verdict"] == HOLDS, "ratio_high"] <= limit).all()
    assert (points["p_adjusted"].dropna() >= points["p_value"].dropna()).all()


def test_what_is_not_measured_is_named_only_beside_what_is() -> None:
    rows = results(("gather", "allgather"))
    points = guidelines(rows)
    missing = checking.not_measured(rows, points, None)
    assert "gather <= reduce" in missing
    assert "allreduce <= reduce + bcast" not in missing


def test_guidelines_are_chosen_by_kind_and_benchmark() -> None:
    assert {rule.left for rule in chosen(("bcast",))} == {"bcast"}
    assert {rule.kind for rule in chosen(("monotony", "bcast"))} == {"monotony"}
    with refuses(UsageError, "--only bcst: choose from"):
        chosen(("bcst",))
