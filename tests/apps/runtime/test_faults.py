"""Which ranks fail and when, who has what is left of their state, and what is told of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps import APPLICATIONS
from omb_py.apps.runtime.faults import (
    CALLS,
    Failure,
    Fault,
    Survival,
    due,
    holders,
    partner,
    schedule,
    survival_parts,
)
from omb_py.core.errors import SharedError, UsageError
from omb_py.options.application import application_parameters, parse_application

SEEDS = st.integers(0, 1000)


@given(SEEDS, st.integers(2, 12), st.integers(1, 50), st.data())
def test_different_ranks_fail_in_their_turn_and_never_rank_0(
    seed: int, ranks: int, steps: int, data: st.DataObject
) -> None:
    faults = data.draw(st.integers(1, ranks - 1))
    found = schedule(seed, faults, ranks, steps)
    assert found == schedule(seed, faults, ranks, steps)
    failing = [one.rank for one in found]
    assert len({*failing}) == faults
    assert all(0 < rank < ranks for rank in failing)
    when = [one.step for one in found]
    assert when == sorted(when)
    assert all(0 <= step < steps for step in when)
    assert faults > steps or len({*when}) == faults
    assert all(0 <= one.call < CALLS for one in found)


def test_rank_0_has_to_stay() -> None:
    with pytest.raises(UsageError, match="--faults 4: of 4 ranks at most 3 can fail"):
        schedule(1, 4, 4, 20)
    with pytest.raises(UsageError, match="of 1 rank at most 0 can fail"):
        schedule(1, 1, 1, 20)


def test_a_rank_fails_when_those_before_it_have_and_the_step_is_its_own() -> None:
    faults = (Fault(2, 3, 0), Fault(7, 1, 2), Fault(7, 2, 1))
    assert due(faults, 3, 2, failed=0) == faults[0]
    assert due(faults, 3, 1, failed=0) is None
    assert due(faults, 1, 7, failed=0) is None
    assert due(faults, 1, 7, failed=1) == faults[1]
    assert due(faults, 2, 7, failed=1) == faults[2]
    assert due(faults, 0, 7, failed=1) is None


@given(st.integers(2, 12), st.data())
def test_one_failed_rank_of_any_number_loses_nothing(ranks: int, data: st.DataObject) -> None:
    failed = data.draw(st.integers(0, ranks - 1))
    has = {old: new for new, old in enumerate(one for one in range(ranks) if one != failed)}
    found = holders(ranks, has, partitioned=True)
    assert [found[rank] for rank in has] == [*has.values()]
    assert found[failed] == has[partner(failed, ranks)]


def test_ranks_that_failed_with_their_partners_are_named() -> None:
    apart = {0: 0, 2: 1, 4: 2}
    assert holders(5, apart, partitioned=True) == (0, 1, 1, 2, 2)
    with pytest.raises(SharedError, match="ranks 1 and 2 failed between two checkpoints"):
        holders(4, {0: 0, 3: 1}, partitioned=True)
    assert holders(4, {0: 0}, partitioned=False) == (0, 0, 0, 0)


def test_what_is_told_adds_up() -> None:
    failures = [
        Failure((2,), 3, 4, 3, 3, 0.5, {"detection": 0.1, "shrink": 0.2}),
        Failure((1, 3), 7, 3, 1, 1, 0.25, {"shrink": 0.05}),
    ]
    found = Survival(failures, [0.01, 0.03, 0.02], 3 << 20)
    parts = {one.name: one for one in survival_parts(found, 10, 3.0, [1.0, 2.0, 1.5])}
    assert parts["Failure 1: step"].value == 4
    assert parts["Failure 2: step"].unit == "of 10, ranks 1, 3 failed"
    assert parts["Failure 1: detection"].seconds == 0.1
    assert parts["Failure 1: time to recover"].seconds == pytest.approx(0.3)
    assert parts["All failures: time to recover"].seconds == pytest.approx(0.35)
    lost = parts["All failures: lost work"]
    assert (lost.seconds, lost.value) == (0.75, 4)
    assert parts["Checkpoints"].value == 3
    assert (parts["Checkpoint, each"].seconds, parts["Checkpoint, each"].value) == (0.02, 3)
    assert parts["Added by failures"].value == 100
    alone = [one.name for one in survival_parts(Survival(failures[:1], [0.01]), 10, 3.0, [])]
    assert not {"All failures: time to recover", "Without failures"} & {*alone}


def test_only_some_applications_survive() -> None:
    survivors = {
        name
        for name in APPLICATIONS.builtin()
        if "faults" in {one.name for one in application_parameters(APPLICATIONS.load(name))}
    }
    assert survivors == {"halo", "train"}


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("halo", "--recover respawn", "--recover is for --faults"),
        ("train", "--checkpoint-every 2", "--checkpoint-every is for --faults"),
        ("train", "--faults 1 --strategy hybrid", "leave out --strategy hybrid"),
        ("train", "--faults 1 --hierarchical", "leave out --hierarchical"),
        ("train", "--faults 1 --test parallel", "leave out --test parallel"),
        ("train", "--faults 1 --loader files", "leave out --loader files"),
    ],
)
def test_what_has_no_meaning_is_refused(name: str, words: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_application(APPLICATIONS.load(name), words.split())
