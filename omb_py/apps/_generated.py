"""Input that is generated where it is needed, and is the same however it is divided."""

from __future__ import annotations

from typing import Any


def random_numbers(seed: tuple[int, ...], begin: int, end: int) -> Any:
    """Numbers ``begin`` to ``end`` of an endless row of random ones, float64 from 0 to 1.

    NumPy's PCG64 takes one step for each and can skip any number of them.
    """
    import numpy as np

    generator = np.random.PCG64(seed)
    generator.advance(begin)
    return np.random.Generator(generator).random(end - begin)
