"""Random numbers are the same, whichever ranks generate them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.runtime.distribution import random_numbers


@given(st.lists(st.integers(0, 40), min_size=1), st.integers(0, 5))
def test_generated_numbers_do_not_depend_on_ranks(lengths: list[int], seed: int) -> None:
    ends = np.cumsum(lengths)
    parts = [
        random_numbers((seed,), end - length, end)
        for length, end in zip(lengths, map(int, ends), strict=True)
    ]
    whole = random_numbers((seed,), 0, int(ends[-1]))
    assert np.array_equal(np.concatenate(parts), whole)
    assert np.all((whole >= 0) & (whole < 1))


def test_generated_numbers_depend_on_the_seed() -> None:
    assert not np.array_equal(random_numbers((1,), 0, 9), random_numbers((2,), 0, 9))
