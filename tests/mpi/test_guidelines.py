"""`omb-py guidelines --measure`: one command that measures what is missing and judges."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.results.row import COLUMNS
from tests.analysis.guidelines.synthetic import results
from tests.conftest import Finished, rows_of

pytestmark = [pytest.mark.usefixtures("mpi"), pytest.mark.any_library]


def test_what_is_missing_is_measured_and_checked(omb_py: Callable[..., Finished]) -> None:
    done = omb_py(
        *("guidelines", "--measure", "-n", "2", "--only", "emulation,scatter", "--sizes", "8,64"),
        *("-i", "20", "--rounds", "1", "--folder", "out", "--format", "json"),
    )
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert {(point["guideline"], point["bytes"]) for point in document["points"]} == {
        *(("scatter <= bcast", 8), ("scatter <= scatterv", 8), ("scatter <= scatterv", 64))
    }
    assert {point["time"] for point in document["points"]} == {"slowest"}


@pytest.mark.usefixtures("long_time")
def test_algorithms_are_measured_where_a_guideline_is_violated(
    omb_py: Callable[..., Finished], tmp_path: Path
) -> None:
    slow = results(("scatter", "bcast"), {("scatter", size): 5.0 for size in (64, 256)}, ranks=2)
    slow.reindex(columns=list(COLUMNS)).to_csv(tmp_path / "slow.csv", index=False)
    done = omb_py(
        *("guidelines", "slow.csv", "--assume", "mpi=MPICH 5.0.2", "--measure", "--mend"),
        *("--only", "emulation,scatter", "--sizes", "8", "-i", "20", "--rounds", "1"),
        *("--folder", "out"),
        timeout=120,
    )
    assert done.code == 0, done.err
    rows = [row for path in (tmp_path / "out/mend/points").iterdir() for row in rows_of(path)]
    measured = {(row["benchmark"], row["library_algorithm"], row["bytes"]) for row in rows}
    assert measured == {("scatter", "binomial", "64"), ("scatter", "binomial", "256")}
    assert "scatter <= bcast" in done.out
