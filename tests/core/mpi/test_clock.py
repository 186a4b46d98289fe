"""Clocks of different ranks: what a comparison finds is right within the error that it states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.mpi.clock import Offset, clock_key, offset_of

DELAYS = st.floats(1e-7, 1e-2)


@given(st.floats(-1e6, 1e6), st.lists(st.tuples(DELAYS, DELAYS), min_size=1, max_size=50))
def test_the_error_bounds_the_difference(offset: float, delays: list[tuple[float, float]]) -> None:
    trips, time = [], 100.0
    for there, back in delays:
        trips.append((time, time + there + offset, time + there + back))
        time += there + back
    found = offset_of(trips)
    assert abs(found.seconds - offset) <= found.error + 1e-9
    assert found.error == pytest.approx(min(a + b for a, b in delays) / 2, abs=1e-9)


@given(st.floats(0, 1e5), st.floats(-1e4, 1e4), st.floats(-1e-5, 1e-5), st.floats(0, 1e3))
def test_time_is_back_from_root(time: float, seconds: float, drift: float, since: float) -> None:
    offset = Offset(seconds, 0.0, drift, reference=time - since)
    at_root = time + seconds + drift * since
    assert offset.local(at_root) == pytest.approx(time, abs=1e-6)


def test_this_process_shares_its_own_clock() -> None:
    assert clock_key() == clock_key() >= 0
