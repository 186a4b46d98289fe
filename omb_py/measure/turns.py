"""Loops that take turns in rounds, and the ratios of what they take.

The machine's slow and fast minutes then fall on all loops alike, and ratios within a round are
free of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence

from omb_py.core.calls.loop import Loop
from omb_py.core.statistics import BUSY, median_interval, percentile
from omb_py.measure.sampling import SETTLING, Report, run_counted


def turns(rounds: int, members: int) -> Iterator[tuple[int, int]]:
    """Yield the round and the member whose turn it is; a round begins with the next member.

    >>> list(turns(2, 2))
    [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    for number in range(rounds):
        for place in range(members):
            yield number, (number + place) % members


def take_turns(
    loops: Sequence[Loop],
    rounds: int,
    block: int,
    meet: Callable[[], object],
    report: Report | None,
    leave: Callable[[], object] = lambda: None,
) -> list[array[float]]:
    """Run ``block`` iterations of each loop in each round; the seconds of each loop.

    Collective: `SETTLING` iterations, left out, come before each block, ``meet`` before them, and
    ``leave`` after the block.
    """
    seconds = [array("d") for _ in loops]
    length = SETTLING + block
    for number, chosen in turns(rounds, len(loops)):
        meet()
        seconds[chosen].extend(run_counted(loops[chosen], number * length, SETTLING, block, report))
        leave()
    return seconds


def block_percentiles(samples: Sequence[float], block: int, percent: float) -> list[float]:
    """Return a percentile of each run of ``block`` samples."""
    return [
        percentile(sorted(samples[start : start + block]), percent)
        for start in range(0, len(samples), block)
    ]


def with_interval(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Return the median of some values and its 95 % interval, which needs six of them."""
    ordered = sorted(values)
    low, high = median_interval(ordered) or (None, None)
    return percentile(ordered, 50), low, high


def busy(spreads: Sequence[float]) -> str | None:
    """Return a sentence if the rounds' ratios differ much, ``spreads`` being those of all rows."""
    if not spreads or (spread := percentile(sorted(spreads), 50)) <= BUSY:
        return None
    return (
        f"the ratios of the rounds differ by {spread:.0%} (standard deviation, median over the "
        "rows): the machine was busy; repeat this when it is not, or raise --rounds and -i"
    )
