"""Hosts of a gate on busy machines: noise makes no slow host and no classes of hosts."""

from __future__ import annotations

import numpy as np

from omb_py.analysis.gate.judging import Judgement, judge
from omb_py.analysis.gate.limits import Point
from omb_py.analysis.gate.points import Record, points

HOSTS = tuple(f"n{number}" for number in range(1, 13))


def named(found: Judgement) -> list[str]:
    """Return the hosts that fail."""
    return [one.hosts[0] for one in found.slow]


def turns(noise: float, number: int = 8) -> np.ndarray:
    """Return costs of equal hosts in some turns."""
    return np.random.default_rng(1).normal(0, noise, (len(HOSTS), number))


def test_slow_host_is_named_by_fastest_iterations_where_medians_are_noisy() -> None:
    median, fastest = turns(1.0), turns(0.02)
    fastest[6] += np.log(2)
    records = [
        Record("p", (host,), median[place, turn], fastest=fastest[place, turn])
        for place, host in enumerate(HOSTS)
        for turn in range(8)
    ]
    (slow,) = judge(points(records)).slow
    assert (slow.hosts, slow.point) == (("n7",), "p, fastest")


def test_limit_of_few_hosts_with_many_turns_comes_of_the_turns() -> None:
    costs = turns(0.1)
    costs[6] += np.log(1.5)
    assert named(judge([Point("p", HOSTS, costs)])) == ["n7"]


def test_hosts_that_are_fast_in_some_turns_are_no_classes() -> None:
    costs = np.zeros((12, 3))
    costs[4:] = np.log(10)
    assert len(judge([Point("p", HOSTS, costs)]).classes) == 1
    costs[4:, 0] = 0.0
    assert not judge([Point("p", HOSTS, costs)]).classes


def test_host_without_turn_that_measured_again_is_only_suspected() -> None:
    costs = turns(0.01)
    costs[6] += np.log(2)
    found = judge([Point("p", HOSTS, costs)], confirm=True)
    assert (named(found), [one.hosts for one in found.suspected]) == ([], [("n7",)])
    again = Point("p", HOSTS, costs, again=3)
    assert named(judge([again], confirm=True)) == ["n7"]


def test_halves_of_unlike_numbers_of_ranks_in_a_file_are_one_point() -> None:
    import pandas as pd

    from omb_py.analysis.gate.records import records_of

    rows = [
        {"benchmark": "allreduce", "bytes": 8, "ranks": len(hosts.split()), "split": "halves"}
        | {"host_names": hosts, "value": 1.0, "unit": "us", "group": "0"}
        | {"spread_low": 0.9, "spread_high": 2.0}
        for hosts in ("a b c", "d e", "a d", "b c e")
    ]
    assert {one.point for one in records_of(pd.DataFrame(rows))} == {"allreduce 8 B in halves"}


def test_times_of_two_kinds_in_single_turns_make_no_slow_host() -> None:
    noise = np.random.default_rng(2)
    fleets = [np.log(3) * (noise.random((12, 8)) < 0.35) for _ in range(50)]
    assert [named(judge([Point("p", HOSTS, costs + turns(0.05))])) for costs in fleets] == [[]] * 50
