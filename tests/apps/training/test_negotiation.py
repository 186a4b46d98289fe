"""Ranks negotiate and send in the same order, however their clocks and gradients go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.runtime.phases import Phases
from omb_py.apps.training import Training
from omb_py.apps.training.fusion import plan_of
from omb_py.apps.training.schedules import (
    HEADER_WORDS,
    RECORD_WORDS,
    Negotiated,
    length_of,
    words_of,
)
from tests.helpers.properties import examples

SECONDS = 60
"""After which ranks that wait for each other are taken for blocked."""


class Sent:
    """Parcels that only remember what was sent, and in which step."""

    def __init__(self) -> None:
        self.all: list[tuple[int, int]] = []

    def begin(self) -> None:
        pass

    def send(self, begin: int, end: int) -> None:
        self.all.append((begin, end))

    def complete(self) -> None:
        self.all.append((-1, -1))


class Together:
    """What ranks, which are threads here, say in a cycle: the minimum of it counts."""

    def __init__(self, ranks: int) -> None:
        self.barrier = Barrier(ranks, timeout=SECONDS)
        self.said = [0] * ranks


class Least:
    """A collective of threads instead of `Cached`."""

    def __init__(self, together: Together, rank: int) -> None:
        self._together = together
        self._rank = rank
        self.cycles = 0

    def begin(self) -> None:
        pass

    def step(self) -> None:
        pass

    def cycle(self, agreed: int, ready: int) -> int:
        self.cycles += 1
        self._together.said[self._rank] = ready
        self._together.barrier.wait()
        minimum = min(self._together.said)
        self._together.barrier.wait()
        return minimum


@examples(50)
@given(st.data(), st.integers(1, 4), st.integers(1, 12), st.integers(0, 40))
def test_ranks_that_negotiate_make_the_same_calls(
    data: st.DataObject, ranks: int, gradients: int, fusion: int
) -> None:
    steps = 3
    chances = steps * gradients
    chosen = [
        data.draw(st.lists(st.booleans(), min_size=chances, max_size=chances)) for _ in range(ranks)
    ]
    pause = data.draw(st.sampled_from([0.0, 1e-4]))
    together = Together(ranks)
    training = Training(fusion=fusion, negotiation="cached")

    def train(rank: int) -> tuple[list[tuple[int, int]], int]:
        sent, negotiation = Sent(), Least(together, rank)
        schedule = Negotiated(
            cast(Any, sent),
            [4 * (place % 3 + 1) for place in range(gradients)],
            lambda sizes: plan_of(training, sizes),
            cast(Any, negotiation),
            pause,
            Phases(),
        )
        schedule.begin()
        chances = iter(chosen[rank])
        for _ in range(steps):
            for arrived in range(1, gradients + 1):
                if next(chances):
                    sleep(5 * pause)
                    schedule.advance(arrived)
            schedule.finish()
        return sent.all, negotiation.cycles

    with ThreadPoolExecutor(ranks) as pool:
        found = list(pool.map(train, range(ranks)))
    assert all(one == found[0] for one in found)
    sent = [place for begin, end in found[0][0] for place in range(begin, end)]
    assert sent == list(range(gradients)) * steps


@pytest.mark.parametrize("arrived", [2, 5])
def test_missed_cycles_end_with_agreement(arrived: int) -> None:
    negotiation = Least(Together(1), 0)
    sizes = [4] * 5
    schedule = Negotiated(
        cast(Any, Sent()),
        sizes,
        lambda some: plan_of(Training(), some),
        cast(Any, negotiation),
        1e-3,
        Phases(),
    )
    schedule.begin()
    sleep(0.02)
    schedule.advance(arrived)
    if arrived == len(sizes):
        assert negotiation.cycles == 1
        sleep(0.01)
        schedule.advance(arrived)
        assert negotiation.cycles == 1  # other ranks may be in the next step
    else:
        assert negotiation.cycles > 1
    schedule.finish()


@pytest.mark.parametrize(
    ("gradients", "words"), [(0, 1), (61, 1), (62, 2), (161, 3), (391, 7), (4008, 63)]
)
def test_bit_vector_has_status_and_gradient_bits(gradients: int, words: int) -> None:
    assert words_of(gradients) == words


@given(st.integers(0, 5000))
def test_lists_of_requests_have_few_lengths(records: int) -> None:
    words = length_of(records) - HEADER_WORDS
    held = words // RECORD_WORDS
    assert words % RECORD_WORDS == 0
    assert held >= records
    assert held & (held - 1) == 0
    assert held < 2 * records or held == records
