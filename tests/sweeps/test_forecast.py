"""What a plan says of its time, before anything is measured."""

from __future__ import annotations

import pytest

from omb_py.sweeps.forecast import guess
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.point_options import Setting, planned_sizes
from omb_py.sweeps.points import SweepPoint
from omb_py.sweeps.targets import parse_target, target

MACHINE = Machine(name="here", nodes=1, cores_per_node=2)
TAKEN = {"latency": 62.8, "bw": 34.1, "allreduce": 11.0, "alltoall": 7.7, "put_latency": 74.0}
"""Seconds of two ranks with -c and defaults, as `perf/checking.py` found on two busy cores."""


def guessed(name: str, *settings: tuple[str, bool | int | float]) -> float:
    """The guess for a benchmark's own sizes on two ranks."""
    chosen = tuple(Setting(*setting) for setting in settings)
    point = SweepPoint(name, "numpy", "buffer", 1, 2, (), chosen)
    options = parse_target(name, point.arguments(())[1:])
    sizes, _ = planned_sizes(target(name), options, None, 2)
    return guess(SweepPoint(name, "numpy", "buffer", 1, 2, sizes, chosen), MACHINE)


@pytest.mark.parametrize(("name", "seconds"), TAKEN.items())
def test_checking_data_is_counted(name: str, seconds: float) -> None:
    checked = guessed(name, ("validation", True))
    assert seconds / 4 < checked < seconds * 4
    assert checked > 4 * guessed(name)
    assert checked > guessed(name, ("validation", True), ("validation-warmup", 0))


def test_synchronised_files_are_counted() -> None:
    assert guessed("file_write") > guessed("file_write", ("no-file-sync", True)) + 1


def test_a_time_limit_of_a_size_limits_the_guess() -> None:
    assert guessed("allreduce", ("iterations", 10**9), ("max-time", 0.5)) < 60
