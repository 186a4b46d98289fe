"""A replay of a profile: which calls it makes, and its check."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.replay import (
    Made,
    Recorded,
    ReplayPlan,
    calls_per_second,
    compare,
    disagreement,
    message_of,
    plan_of,
    rank_profile,
)
from omb_py.core.errors import UsageError
from omb_py.results.readers import source_of
from omb_py.tracing.profile import store
from omb_py.tracing.profile.mpitrace import parse, read_file
from omb_py.tracing.profile.profile import CallStats, RankProfile
from omb_py.tracing.profile.store import load
from omb_py.tracing.records.layout import size_bin
from tests import ROOT
from tests.helpers.properties import examples
from tests.helpers.refusals import refuses
from tests.tracing.made_records import MadeRecord
from tests.tracing.profile.made_profiles import MS, made_run

DATA = ROOT / "tests" / "data" / "mpitrace"
OF_CPUS, OF_GPUS = DATA / "thetagpu-cpu-16ranks.txt", DATA / "thetagpu-gpu-8ranks.txt"
FILES = st.sampled_from([OF_CPUS, OF_GPUS])


def made_calls(routine: str, calls: int, average: float) -> CallStats:
    bin = size_bin(ceil(average))
    return CallStats(routine, None, None, bin, None, calls, calls * average, 1.0)


@given(st.binary(max_size=500), FILES, st.integers(0, 4000), st.floats(0, 3))
@examples(300)
def test_any_bytes_fail_in_a_sentence(noise: bytes, path: Path, cut: int, scale: float) -> None:
    content = path.read_bytes()
    for text in (noise, content[:cut] + noise + content[cut:], noise + content[cut:]):
        try:
            member = parse(source_of("profile", text), "profile").member
            plan = plan_of(member, scale, ())
        except UsageError as error:
            assert re.search("nothing to replay|is no profile|no rank", str(error))
        else:
            assert plan.items


NAMES = ["Allreduce", "Bcast", "Send", "Isend", "Sendrecv", "Barrier", "Wait"]
ANY_CALLS = st.builds(
    made_calls,
    st.sampled_from([f"MPI_{name}" for name in NAMES]),
    st.integers(1, 3000),
    st.one_of(st.floats(0, 40), st.floats(0, 1e6)).map(lambda size: round(size, 1)),
)


def planned(calls: list[CallStats], scale: float) -> ReplayPlan | None:
    try:
        return plan_of(RankProfile(0, cells=tuple(calls)), scale, ())
    except UsageError:
        return None


@given(st.lists(ANY_CALLS, max_size=8), st.floats(0, 2))
@examples(200)
def test_each_size_is_called_in_proportion(calls: list[CallStats], scale: float) -> None:
    plan = planned(calls, scale)
    if plan is None:
        assert all(one.routine == "MPI_Wait" for one in calls)
        return
    for item in plan.items:
        assert item.calls >= 1
        assert abs(item.calls - max(1, scale * item.recorded.calls)) <= 0.5
    kept = [one for one in calls if one.routine != "MPI_Wait"]
    assert sum(item.recorded.calls for item in plan.items) == sum(one.calls for one in kept)
    left_out = sum(calls.calls for _, calls in plan.left_out)
    assert left_out == sum(one.calls for one in calls if one.routine == "MPI_Wait")


@given(st.lists(ANY_CALLS, max_size=8))
@examples(100)
def test_no_two_items_share_a_tally(calls: list[CallStats]) -> None:
    plan = planned(calls, 1.0)
    keys = [(item.function, item.nbytes) for item in plan.items] if plan else []
    assert len(set(keys)) == len(keys)


@given(st.lists(ANY_CALLS, min_size=1, max_size=6))
@examples(100)
def test_calls_are_spread_evenly(calls: list[CallStats]) -> None:
    plan = planned(calls, 0.05)
    if plan is None:
        return
    order = plan.order
    assert len(order) == sum(item.calls for item in plan.items)
    made = [0] * len(plan.items)
    for place, index in enumerate(order, 1):
        made[index] += 1
        due = plan.items[index].calls * place / len(order)
        assert abs(made[index] - due) <= 1 + len(plan.items) / 2


@pytest.mark.parametrize(
    ("function", "nbytes", "message"),
    [
        ("bcast", 470.2, ("int8", 470)),
        ("allreduce", 8.0, ("int64", 1)),
        ("allreduce", 40.0, ("float32", 10)),
        ("allreduce", 5642.8, ("float32", 1411)),
        ("allreduce", 25.0, ("int8", 25)),
        ("allreduce", 7.9, ("int64", 1)),
        ("sendrecv", 200.0, ("int8", 100)),
        ("gatherv", 0.0, ("int8", 0)),
    ],
)
def test_sizes_are_whole_elements(function: str, nbytes: float, message: tuple[str, int]) -> None:
    assert message_of(function, nbytes) == message


def test_a_routine_can_be_left_out_by_its_name() -> None:
    plan = plan_of(read_file(str(OF_CPUS)).member, 0.01, ("MPI_Allreduce", "gather"))
    assert {item.function for item in plan.items} == {"bcast", "gatherv", "allgather"}
    left_out = {routine for routine, _ in plan.left_out}
    assert left_out == {f"MPI_{name}" for name in ("Allreduce", "Gather", "Comm_rank", "Comm_size")}


@pytest.mark.parametrize(
    ("scale", "leave_out", "words"),
    [(1.0, ("alltoall",), "no calls of it"), (1e6, (), "choose a smaller --scale")],
)
def test_unreplayable_refused(scale: float, leave_out: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan_of(read_file(str(OF_CPUS)).member, scale, leave_out)


def test_replay_of_a_folder_takes_its_first_rank(tmp_path: Path) -> None:
    whole = load([str(made_run(tmp_path))])
    first = rank_profile(str(tmp_path))
    assert (first.member, first.ranks) == (whole.members[0], 4)
    assert [one.value for one in first.spread] == pytest.approx([0.017, 0.020, 0.026])
    assert rank_profile(str(tmp_path / "rank-000000.record")) == first
    assert rank_profile(str(tmp_path / "rank-000001.record")).member.rank == 1
    assert rank_profile(str(OF_CPUS)).ranks == 16
    plan = plan_of(first.member, 1.0, ())
    assert [(item.function, item.nbytes, item.calls) for item in plan.items] == [
        ("isend", 100, 1),
        ("barrier", 0, 1),
        ("allreduce", 8, 3),
        ("allreduce", 4000, 1),
    ]


@pytest.mark.parametrize("path", ["rank-000000.record", "."])
def test_short_calls_keep_all_their_digits(tmp_path: Path, path: str) -> None:
    made = MadeRecord(tmp_path, 0, 1)
    for turn in range(3):
        made.call("MPI_Bcast", turn * MS, turn * MS + 30_000, nbytes=7 + turn)
    made.finish(10 * MS)
    made.file.close()
    store.write(load([str(tmp_path)]), tmp_path)
    member = rank_profile(str(tmp_path / path)).member
    assert member.communication_s == pytest.approx(90e-6, rel=1e-9)
    assert [item.recorded.average for item in plan_of(member, 1.0, ()).items] == [7.5, 9.0]


def test_the_sum_over_ranks_is_no_ranks_profile(tmp_path: Path) -> None:
    store.write(load([str(made_run(tmp_path))]), tmp_path)
    with refuses(UsageError, "profile.txt written people"):
        rank_profile(str(tmp_path / "profile.txt"))


def test_its_number_is_that_of_calls_in_a_second() -> None:
    made = 1166 + 9  # and each of the other sizes once
    problem = Recorded(str(OF_GPUS), scale=0.1)
    assert sum(item.calls for item in problem.plan(rank_profile(problem.file)).items) == made
    assert calls_per_second(problem, 2.0) == made / 2


def made_of(problem: Recorded, ranks: int) -> list[Made]:
    plan = problem.plan(rank_profile(problem.file))
    return [Made(dict(plan.tallies(rank, ranks)), ()) for rank in range(ranks)]


def test_the_check_passes_where_all_calls_were_made() -> None:
    problem = Recorded(str(OF_CPUS))
    assert compare(problem, made_of(problem, 3), None).passed


def missing(made: Made) -> Made:
    key = ("allreduce", 8)
    return replace(made, tallies={**made.tallies, key: made.tallies[key] - 1})


def added(made: Made) -> Made:
    return replace(made, tallies={**made.tallies, ("bcast", 9): 1})


@pytest.mark.parametrize("change", [missing, added])
def test_check_fails_with_a_wrong_number_of_calls(change: Callable[[Made], Made]) -> None:
    problem = Recorded(str(OF_CPUS))
    made = made_of(problem, 3)
    check = compare(problem, [*made[:2], change(made[2])], None)
    assert not check.passed
    assert check.difference == 1
    assert "rank 2 made" in check.text


def test_the_check_fails_where_data_arrived_wrong() -> None:
    problem = Recorded(str(OF_CPUS))
    made = made_of(problem, 3)
    check = compare(problem, [*made[:2], replace(made[2], faults=("rank 2, offset 0",))], None)
    assert (check.passed, check.text) == (False, "rank 2, offset 0")


def test_of_calls_between_two_ranks_each_side_makes_its_own() -> None:
    plan = plan_of(RankProfile(0, cells=(made_calls("MPI_Isend", 10, 5.0),)), 1.0, ())
    sender: dict[tuple[str, float], int] = {("isend", 5): 10, ("waitall", 0): 10}
    receiver: dict[tuple[str, float], int] = {("irecv", 5): 10, ("waitall", 0): 10}
    assert [dict(plan.tallies(rank, 3)) for rank in range(3)] == [sender, receiver, {}]
    assert disagreement(plan, [sender, receiver, {}]) == (0, "")
    assert disagreement(plan, [receiver, receiver, {}])[0] == 20
