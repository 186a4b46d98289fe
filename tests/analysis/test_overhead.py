"""Overheads over launches: an interval that the next launch does not exclude."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from omb_py.analysis.listing import sheets as listed
from omb_py.analysis.overhead import FEWEST, across, over_launches, sheets
from omb_py.analysis.table import of_rows
from omb_py.core.errors import UsageError
from tests.helpers.refusals import missing, refuses

RUNS = {f"run{number}": {"mpi_library": "MPICH Version: 5.0.2"} for number in range(20)}


def launch(number: int, added: float, ratio: float, **values: Any) -> dict[str, Any]:
    """A row of a launch whose own interval is narrow."""
    usual: dict[str, Any] = {"run": f"run{number}", "benchmark": "allreduce", "ranks": 2}
    usual |= {"bytes": 1024, "binding": "buffer", "base": "native", "thread_level": "single"}
    usual |= {"added_us": added, "added_low_us": 0.99 * added, "added_high_us": 1.01 * added}
    usual |= {"ratio": ratio, "ratio_low": 0.99 * ratio, "ratio_high": 1.01 * ratio}
    return usual | {"median_us": 0.8, "base_us": 0.3, "rounds": 30, "buffer": "numpy"} | values


def combined(*rows: dict[str, Any]) -> pd.DataFrame:
    return over_launches(of_rows(list(rows), RUNS).overhead)


def two_states(points: int, launches: int, slow: float) -> list[dict[str, Any]]:
    """Launches in which native takes 0.33 us, or 1.2 us with a chance of ``slow``, within 3 %."""
    drawn = np.random.default_rng(12)
    found = []
    for point in range(points):
        for number in range(launches):
            native = (1.2 if drawn.random() < slow else 0.33) * drawn.normal(1, 0.01)
            added = 0.46 * drawn.normal(1, 0.01)
            found.append(launch(number, added, 1 + added / native, bytes=point))
    return found


@pytest.mark.parametrize("launches", [6, 8, 12, 20])
@pytest.mark.parametrize("slow", [0.1, 0.3, 0.43])
def test_interval_of_two_states_covers_the_truth(launches: int, slow: float) -> None:
    points = combined(*two_states(400, launches, slow))
    # the quicker state is the more frequent one, and the ratio is higher there
    quick = 1 + 0.46 / 0.33 * (1 + np.random.default_rng(1).normal(0, 0.01 * 2**0.5, 10**5))
    truth = np.quantile(quick, 1 - 0.5 / (1 - slow))
    covered = (points["ratio_low"] <= truth) & (truth <= points["ratio_high"])
    assert covered.mean() > 0.93
    assert ((points["added_low_us"] <= 0.46) & (points["added_high_us"] >= 0.46)).mean() > 0.93


def test_interval_of_one_launch_excludes_the_other_state() -> None:
    rows = two_states(200, 1, 0.43)
    covered = [row["ratio_low"] <= 1 + 0.46 / 0.33 <= row["ratio_high"] for row in rows]
    assert np.mean(covered) < 0.6


def test_range_holds_every_launch() -> None:
    (point,) = combined(*(launch(n, 0.4 + n / 100, 2 + n) for n in range(7))).to_dict("records")
    assert (point["launches"], point["ratio"]) == (7, 5)
    assert point["added_us"] == pytest.approx(0.43)
    assert (point["added_min_us"], point["added_max_us"]) == (0.4, 0.46)
    assert (point["ratio_low"], point["ratio_high"]) == (2, 8)
    assert point["added_own_us"] == pytest.approx(0.02 * 0.43)


def test_bindings_stand_next_to_each_other_with_their_ratios() -> None:
    times = (("native", 0.3, 1.0), ("buffer", 0.8, 2.6), ("pickle", 9.0, 30.0))
    rows = [
        launch(0, 0.5, ratio, binding=name, median_us=time, bytes=size)
        for size in (1, 1024)
        for name, time, ratio in times
        if (size, name) != (1024, "pickle")
    ]
    found = of_rows(rows, RUNS).overhead
    (sheet,) = across(found)
    assert sheet.columns == ("size", "native (us)", "buffer (us)", "ratio", "pickle (us)", "ratio")
    assert sheet.rows[0] == ("1 B", "0.300", "0.800", "2.60", "9.000", "30.00")
    assert sheet.rows[1][3:] == ("2.60", "-", "-")
    with refuses(UsageError, "--base pickle native"):
        list(across(found, "pickle"))


def test_too_few_launches_have_a_range_only() -> None:
    rows = [launch(number, 0.4 + number / 100, 2.4) for number in range(FEWEST - 1)]
    (point,) = combined(*rows).to_dict("records")
    assert np.isnan(point["added_low_us"])
    assert (point["added_min_us"], point["added_max_us"]) == (0.4, 0.44)
    (table,) = sheets(of_rows(rows, RUNS).overhead)
    assert not missing("5 launches too few --launches 6", table.remarks[-1])


def test_single_launch_keeps_its_own_interval() -> None:
    rows = [launch(0, 0.4, 2.4)]
    (point,) = combined(*rows).to_dict("records")
    assert (point["launches"], point["ratio_low"]) == (1, 0.99 * 2.4)
    assert not list(sheets(of_rows(rows, RUNS).overhead))


def test_thread_levels_are_not_launches_of_one_another() -> None:
    rows = [
        launch(n, 0.5, ratio, thread_level=level)
        for n, (level, ratio) in enumerate([("single", 2.9), ("multiple", 1.4)] * 2)
    ]
    assert combined(*rows)["ratio"].tolist() == [2.9, 1.4]
    heads = [table.above for table in sheets(of_rows(rows, RUNS).overhead)]
    assert [text.partition("; ")[0] for text in heads] == [
        "thread level single",
        "thread level multiple",
    ]


def test_sentence_begins_with_what_is_added() -> None:
    rows = [launch(number, 0.4 + number / 100, 1.3 + number) for number in range(8)]
    (table,) = sheets(of_rows(rows, RUNS).overhead)
    assert table.remarks[0].startswith("Added by buffer at 1 KiB: 0.435 us, 0.400 to 0.470 over 8")
    assert table.columns.index("added (us)") < table.columns.index("ratio")


def test_show_lists_launches_and_their_interval() -> None:
    rows = [launch(number, 0.4, 1.3 + number) for number in range(8)]
    titles = [table.title for table in listed(of_rows(rows, RUNS))]
    assert titles == ["allreduce", "Overhead of allreduce over 8 launches"]
    assert len(list(listed(of_rows(rows, RUNS), columns=["ratio"]))) == 1
