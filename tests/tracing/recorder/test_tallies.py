"""What is counted is told once, whatever is put together or forgotten on the way."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from omb_py.tracing.recorder import tallies
from omb_py.tracing.recorder.tallies import Tallies, remember
from omb_py.tracing.records.layout import size_bin

Made = list[tuple[int, int, int, int, int, int]]

calls = st.tuples(
    st.integers(1, 3),  # routine
    st.integers(0, 2),  # communicator
    st.integers(-1, 4),  # peer
    st.integers(-1, 5000),  # bytes
    st.integers(0, 2),  # site
    st.integers(1, 1 << 40),  # ns
)


def in_the_world(communicator: int, peer: int) -> int:
    """Communicator 2 has the ranks of the world the other way round."""
    return peer if peer < 0 or communicator != 2 else 4 - peer


@given(st.lists(calls, max_size=60), st.integers(1, 8))
def test_cells_have_every_call_however_few_tallies_are_kept(made: Made, most: int) -> None:
    found = Tallies(in_the_world, 1)
    with patch.object(tallies, "MAX_TALLIES", most):
        for one in made:
            found.count(*one)
    expected: dict[tuple[int, ...], list[int]] = {}
    for routine, communicator, peer, nbytes, site, ns in made:
        world = in_the_world(communicator, peer)
        cell = expected.setdefault((routine, communicator, world, size_bin(nbytes), site), [])
        cell.append(ns)
    assert {cell[:5]: cell[8:] for cell in found.cells()} == {
        key: (sum(taken), min(taken), max(taken)) for key, taken in expected.items()
    }
    assert Counter({cell[:5]: cell[6] for cell in found.cells()}) == Counter(
        {key: len(taken) for key, taken in expected.items()}
    )
    assert sum(cell[7] for cell in found.cells()) == sum(max(0, one[3]) for one in made)


@given(st.lists(calls, max_size=20), st.lists(calls, max_size=20), st.lists(calls, max_size=20))
def test_what_is_counted_during_a_pause_is_forgotten(
    before: Made, during: Made, after: Made
) -> None:
    paused, whole = Tallies(in_the_world, 1), Tallies(in_the_world, 1)
    for one in before:
        paused.count(*one)
    paused.pause()
    told = sorted(paused.cells())
    for one in during:
        paused.count(*one)
    assert sorted(paused.cells()) == told
    paused.resume()
    for one in before + after:
        whole.count(*one)
    for one in after:
        paused.count(*one)
    assert sorted(paused.cells()) == sorted(whole.cells())


def test_ticks_may_be_seconds() -> None:
    found = Tallies(in_the_world, 1e9)
    for seconds in (0.5, 0.25, 2.0):
        found.count(1, 0, 0, 8, 0, seconds)
    ((*_, calls, nbytes, ns, minimum, maximum),) = found.cells()
    assert (calls, nbytes, ns, minimum, maximum) == (3, 24, 2_750_000_000, 250_000_000, 2 * 10**9)


def test_a_cache_does_not_lead_to_a_tally_that_was_put_together() -> None:
    found = Tallies(in_the_world, 1)
    cache = found.cache()
    remember(cache, found.tally(1, 0, 3, 8), 0, 3, 8)
    assert cache[0][3][8] is found.tally(1, 0, 3, 8)
    remember(cache, found.tally(1, 0, 3, 9), 0, 3, "no number")
    assert list(cache[0][3]) == [8]
    with patch.object(tallies, "MAX_TALLIES", 2):
        found.tally(1, 0, 3, 10)
    assert not cache
