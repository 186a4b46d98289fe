"""Threads that exchange messages at once: what keeps them apart, and how many there are."""

from __future__ import annotations

import pytest

from omb_py.benchmarks import Case, Plan, find_benchmark
from omb_py.bindings import calls_of
from omb_py.buffers.numpy import BUFFER
from omb_py.core.calls import Call
from omb_py.core.datatypes import find_types
from omb_py.core.errors import UsageError
from omb_py.options.parse import parse
from tests.helpers.plans import MemoryAlone
from tests.helpers.refusals import refuses

NAMES = ("latency_mt", "mbw_mr_mt", "sendrecv_mt")


def plan_of(name: str, words: str, rank: int = 0, ranks: int = 2) -> Plan:
    benchmark = find_benchmark(name)
    options = parse(benchmark, words.split())
    (datatype,) = find_types(["mpi_char"])
    return benchmark.plan(Case(rank, ranks, 64, datatype, 4, BUFFER, options, MemoryAlone()))


def calls_of_each(plan: Plan) -> list[list[Call]]:
    """The calls of each exchange."""
    return [
        [call for step in exchange.steps for call in calls_of(step)] for exchange in plan.iterations
    ]


def tags(call: Call) -> set[int]:
    return {call.tag} if call.peer is not None else {call.values[1], call.values[3]}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_no_two_exchanges_share_a_tag(name: str, rank: int) -> None:
    used = [set().union(*map(tags, calls)) for calls in calls_of_each(plan_of(name, "-t 4", rank))]
    assert len(set().union(*used)) == sum(map(len, used))


@pytest.mark.parametrize("name", ["latency_mt", "mbw_mr_mt"])
def test_both_sides_use_the_same_tags(name: str) -> None:
    first, second = (calls_of_each(plan_of(name, "-t 2:3", rank)) for rank in (0, 1))
    assert len(first) == len(second) == 6
    for sent, received in zip(first, second, strict=True):
        assert set().union(*map(tags, sent)) == set().union(*map(tags, received))


@pytest.mark.parametrize("name", NAMES)
def test_thread_comm_one_uses_the_communicator_of_the_binding(name: str) -> None:
    each = calls_of_each(plan_of(name, "-t 3"))
    assert {call.on for calls in each for call in calls} == {None}


@pytest.mark.parametrize("name", NAMES)
def test_thread_comm_each_gives_every_exchange_its_own(name: str) -> None:
    comms = [
        {call.on for call in calls}
        for calls in calls_of_each(plan_of(name, "-t 3 --thread-comm each"))
    ]
    assert all(len(one) == 1 for one in comms)
    assert len(set().union(*comms)) == 3
    assert None not in set().union(*comms)


def test_threads_of_each_side_are_those_of_the_option() -> None:
    assert [plan_of("mbw_mr_mt", "-t 2:3", rank).threads for rank in (0, 1)] == [2, 3]
    assert [plan_of("sendrecv_mt", "-t 3", rank, ranks=4).threads for rank in range(4)] == [3] * 4


def test_rate_counts_the_windows_of_all_sending_threads() -> None:
    assert plan_of("mbw_mr_mt", "-t 3:2").messages == 3 * 4


def test_ring_with_other_numbers_of_threads_refused() -> None:
    with refuses(UsageError, "-t 1:2 every rank -t 1:1"):
        plan_of("sendrecv_mt", "-t 1:2")
