"""Faults of some seeds: the run ends in time and says why, its rows stay, the next start goes on.

``python -m tests.chaos`` takes more of them.
"""

from __future__ import annotations

import pytest

from tests.chaos.faults import Kind, draw
from tests.chaos.injection import CannotInjectError, inject
from tests.hosts.jobs import OPEN_MPI

FIRST = 100 if OPEN_MPI else 0
"""Each library takes seeds of its own, and `make test` other kinds of faults on each."""

NOW, LATER = 4, 20
"""How many seeds `make test` takes of each library, and how many more `make test-rest` does."""

SEEDS = range(FIRST, FIRST + NOW + LATER)


def with_layers(on_hosts: bool) -> pytest.MarkDecorator:
    """Parameters of seeds; all but the first ones are no part of `make test`."""
    seeds = [seed for seed in SEEDS if (draw(seed).kind is Kind.NETWORK_LOST) is on_hosts]
    marks = {seed: [pytest.mark.exhaustive] if seed >= FIRST + NOW else [] for seed in seeds}
    return pytest.mark.parametrize(
        "seed", [pytest.param(seed, marks=marks[seed]) for seed in seeds]
    )


@pytest.mark.long
@pytest.mark.usefixtures("mpi")
@with_layers(on_hosts=False)
def test_a_fault_loses_nothing(seed: int) -> None:
    try:
        outcome = inject(draw(seed))
    except CannotInjectError as error:
        pytest.skip(str(error))
    assert outcome.losses == (), outcome


@pytest.mark.usefixtures("mpi", "can_make_hosts")
@with_layers(on_hosts=True)
def test_a_lost_network_loses_nothing(seed: int) -> None:
    test_a_fault_loses_nothing(seed)
