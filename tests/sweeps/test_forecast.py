"""How long a sweep takes is known by the rows that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.sweeps.folder import DONE, FAILED, Attempt, Folder, PointState
from omb_py.sweeps.forecast import in_words, remaining
from omb_py.sweeps.points import SweepPoint
from tests.helpers.refusals import missing

LATENCY, BCAST = (
    SweepPoint(name, "numpy", "buffer", 1, 2, (8, 16, 32, 64)) for name in ("latency", "bcast")
)


def took(folder: Folder, point: SweepPoint, seconds: float, rows: int, outcome: str = DONE) -> None:
    """Let an attempt at a point have added rows, the first of its sizes."""
    ended = Attempt(started="", seconds=seconds, exit_code=0, outcome=outcome, rows=rows)
    (folder.root / "state").mkdir(exist_ok=True)
    folder.note(point, PointState(attempts=(ended,)))
    folder.csv(point).parent.mkdir(exist_ok=True)
    folder.csv(point).write_text("bytes\n" + "".join(f"{size}\n" for size in point.sizes[:rows]))


def test_before_any_row_no_time_is_named(tmp_path: Path) -> None:
    assert remaining([LATENCY], Folder(tmp_path)) is None
    took(Folder(tmp_path), LATENCY, 5.0, 0, FAILED)
    assert remaining([LATENCY], Folder(tmp_path)) is None
    assert not missing("known once rows", in_words(None))


def test_forecast_uses_rows_of_the_benchmark_or_all(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    took(folder, LATENCY, 6.0, 2)
    assert remaining([LATENCY, BCAST], folder) == pytest.approx(2 * 3.0 + 4 * 3.0)
    took(folder, BCAST, 2.0, 2)
    assert remaining([LATENCY, BCAST], folder) == pytest.approx(2 * 3.0 + 2 * 1.0)
