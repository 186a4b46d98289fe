"""`omb-py guidelines --measure`: one command that measures what is missing and judges."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.conftest import Finished

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
