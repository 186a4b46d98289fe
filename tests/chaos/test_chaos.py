"""Faults of some seeds: the run ends in time and says why, its rows stay, the next start goes on.

``python -m tests.chaos`` takes more of them.
"""

from __future__ import annotations

import pytest

from tests.chaos.faults import Kind, draw
from tests.chaos.injection import CannotInjectError, inject
from tests.chaos.processes import Process, children_of_ranks, ranks
from tests.hosts.jobs import OPEN_MPI

FIRST = 103 if OPEN_MPI else 0
"""Each library takes seeds of its own, and `make test` other kinds of faults on each."""

NOW, LATER = 4, 20
"""How many seeds `make test` takes of each library, and how many more `make test-rest` does."""

SEEDS = range(FIRST, FIRST + NOW + LATER)
ON_HOSTS = [seed for seed in SEEDS if draw(seed).kind is Kind.NETWORK_LOST]
ALONE = [seed for seed in SEEDS if seed not in ON_HOSTS]


def with_layers(seeds: list[int]) -> list[object]:
    """Parameters of seeds; all but the first ones are no part of `make test`."""
    later = [pytest.mark.exhaustive]
    return [pytest.param(seed, marks=later if seed >= FIRST + NOW else []) for seed in seeds]


def check(seed: int) -> None:
    try:
        outcome = inject(draw(seed))
    except CannotInjectError as error:
        pytest.skip(str(error))
    assert outcome.losses == (), outcome


@pytest.mark.long
@pytest.mark.usefixtures("mpi")
@pytest.mark.parametrize("seed", with_layers(ALONE))
def test_a_fault_loses_nothing(seed: int) -> None:
    check(seed)


@pytest.mark.usefixtures("mpi", "can_make_hosts")
@pytest.mark.parametrize("seed", with_layers(ON_HOSTS))
def test_a_lost_network_loses_nothing(seed: int) -> None:
    check(seed)


def test_what_a_rank_left_behind_is_no_rank() -> None:
    """Its watchdog outlives it for a moment, as a child of the first process."""
    launcher = Process(10, 1, "mpiexec", ranked=False, host="")
    proxy = Process(11, 10, "hydra_pmi_proxy", ranked=False, host="")
    rank = Process(12, 11, "omb-py", ranked=True, host="")
    watchdog = Process(13, 12, "omb-py", ranked=True, host="")
    orphan = Process(14, 1, "omb-py", ranked=True, host="")
    found = [launcher, proxy, rank, watchdog, orphan]
    assert ranks(found) == [rank]
    assert children_of_ranks(found) == [watchdog]


def test_a_seed_draws_the_same_fault_again() -> None:
    assert [draw(seed) for seed in SEEDS] == [draw(seed) for seed in SEEDS]


def test_consecutive_seeds_have_every_kind() -> None:
    assert {draw(seed).kind for seed in range(FIRST, FIRST + len(Kind))} == set(Kind)
