"""Runs become points, and points of one kind a series."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.analysis.scaling.rows import Run
from omb_py.analysis.scaling.series import PHASES, Series, Spread, series_of
from omb_py.analysis.scaling.text import of_points
from omb_py.apps import divides_work
from omb_py.results.application import ApplicationRow
from tests.analysis.scaling.tables import ONE_RANK_S, row


def series(*rows: ApplicationRow) -> list[Series]:
    return series_of((Run(one, "MPICH 5.0.2") for one in rows), divides_work)


def test_points_come_in_the_order_of_their_ranks() -> None:
    (one,) = series(row(4, 3.0), row(1, 1.0), row(2, 1.5))
    assert [point.ranks for point in one.points] == [1, 2, 4]
    assert [point.efficiency for point in one.points] == [1.0, 0.75, 0.75]


@pytest.mark.parametrize(
    "other",
    [
        {"application": "pca"},
        {"problem": "rows=16"},
        {"scaling": "weak"},
        {"buffer": "cupy"},
        {"binding": "pickle"},
        {"threads": 2},
        {"variant": "tuned"},
    ],
    ids=str,
)
def test_what_is_not_alike_is_another_series(other: dict[str, Any]) -> None:
    assert len(series(row(1, 1.0), row(2, 1.5), row(2, 1.5, **other))) == 2


def test_libraries_are_told_apart() -> None:
    rows = [row(1, 1.0), row(2, 1.5)]
    runs = [Run(one, mpi) for one in rows for mpi in ("MPICH 5.0.2", "Open MPI 5.0.11")]
    assert [one.mpi for one in series_of(runs)] == ["MPICH 5.0.2", "Open MPI 5.0.11"]


def test_several_runs_on_as_many_ranks_are_their_median_and_extremes() -> None:
    (one,) = series(row(2, 1.5, 0.1), row(2, 1.8, 0.2), row(2, 1.6))
    (point,) = one.points
    assert point.runs == 3
    assert point.speedup == Spread(1.6, 1.5 / 1.1, 1.8 * 1.2)
    assert point.seconds.value == pytest.approx(ONE_RANK_S / 1.6)


def test_without_a_speedup_of_its_own_a_job_of_one_rank_is_compared_with() -> None:
    alone = row(1, None, time_s=8.0, time_low_s=7.0, time_high_s=9.0)
    both = row(2, None, time_s=5.0, time_low_s=4.0, time_high_s=6.0)
    (one,) = series(alone, both)
    assert one.points[0].speedup is None
    assert one.points[1].speedup == Spread(8 / 5, 7 / 6, 9 / 4)
    assert [point.ranks for point in one.telling] == [2]
    (weak,) = series(*(row(n, None, scaling="weak") for n in (1, 2)))
    assert weak.points[1].speedup == Spread(2, 2, 2)


def test_the_sequential_program_is_one_more_to_be_faster_than() -> None:
    over_sequential = [
        {
            "sequential_speedup": value,
            "sequential_speedup_low": value / 2,
            "sequential_speedup_high": value * 2,
        }
        for value in (2.0, 5.0)
    ]
    (one,) = series(row(1, 1.0, **over_sequential[0]), row(2, 2.0, **over_sequential[1]))
    assert [point.sequential for point in one.points] == [Spread(2, 1, 4), Spread(5, 2.5, 10)]
    assert one.over_sequential == 2.25
    (unknown,) = series(row(1, 1.0), row(2, 1.5))
    assert unknown.points[1].sequential is None
    assert unknown.over_sequential is None


def test_with_neither_there_is_no_speedup() -> None:
    (one,) = series(row(2, None), row(4, None))
    assert [point.speedup for point in one.points] == [None, None]
    assert one.telling == ()


def test_a_replay_has_no_speedup_for_each_rank_does_all_of_it() -> None:
    assert not divides_work("replay")
    assert divides_work("matmul")
    assert divides_work("of somebody who is not installed here")
    (one,) = series(*(row(n, None, application="replay") for n in (1, 2)))
    assert one.points[1].speedup is None


def test_ranks_that_share_cores_tell_nothing() -> None:
    rows = [row(n, n / 2, host_cores=2, nodes=nodes) for n, nodes in ((2, 1), (4, 1), (8, 4))]
    (one,) = series(*rows)
    assert [point.oversubscribed for point in one.points] == [False, True, False]
    assert [point.ranks for point in one.telling] == [2, 8]
    assert [point.efficiency for point in one.points] == [0.5, 0.5, 0.5]
    assert [point.efficiency_of_cores for point in one.points] == [0.5, 1.0, 0.5]


def test_threads_want_cores_too() -> None:
    (one,) = series(row(2, 1.5, host_cores=4, threads=4, cores=8))
    assert one.points[0].oversubscribed
    assert one.points[0].efficiency_of_cores == pytest.approx(1.5)


def test_shares_are_parts_of_a_rank_s_own_time() -> None:
    phases = {"compute_s": 1.0, "communicate_s": 2.0, "wait_s": 4.0, "load_s": 8.0}
    (one,) = series(row(2, 1.5, **phases, distribute_s=1.0))
    assert one.points[0].shares == (0.0625, 0.125, 0.25, 0.0625, 0.0, 0.5)
    assert [PHASES[place] for place in one.phases] == list(PHASES)
    (without,) = series(row(2, 1.5, compute_s=1.0))
    assert [PHASES[place] for place in without.phases] == list(PHASES[:-1])


def with_tests(ranks: int, speedup: float, testing: float) -> Run:
    """A training that tests for so long."""
    return Run(row(ranks, speedup), "", {"Testing": testing, "Epoch 1": 1.0})


def test_a_part_that_takes_as_long_on_more_ranks_stays_sequential() -> None:
    (series,) = series_of([with_tests(1, 1.0, 0.8), with_tests(4, 2.0, 0.7)])
    remarks = of_points(series).remarks
    (told,) = [remark for remark in remarks if "stays sequential" in remark]
    assert told.startswith("Testing stays sequential: 800 ms on 1, 700 ms on 4 ranks, 17.5 %")
    assert "no number of ranks is more than 11.4 times as fast" in told
    assert not any("Epoch" in remark for remark in remarks)


def test_a_part_that_is_divided_does_not() -> None:
    (series,) = series_of([with_tests(1, 1.0, 0.8), with_tests(4, 2.0, 0.3)])
    assert not any("stays sequential" in remark for remark in of_points(series).remarks)


def test_the_phase_that_bounds_the_speed_up_is_named() -> None:
    (series,) = series_of([with_tests(1, 1.0, 0.0), with_tests(4, 2.0, 0.0)])
    (told,) = [remark for remark in of_points(series).remarks if "bounds" in remark]
    assert told.startswith("On 4 ranks 25.0 % of the time is phase wait")
    assert "computing alone would be 2.67 times as fast" in told
