"""Which units make a collective slow, from halves of all units that were measured at once.

Half of the units take part in one collective and the others in a second one, at the same time, and
again and again with other halves drawn at random. A slow unit makes each half slow that it is in,
so the logarithms of the halves' ratios follow it; those of a slow link follow both of its ends
where they are in one half. Units and pairs are taken out one by one, the largest correlation first
(matching pursuit: S. Mallat and Z. Zhang, IEEE Transactions on Signal Processing 41, 1993). The
number of halves that it takes grows with the logarithm of the units, as in group testing (R.
Dorfman, Annals of Mathematical Statistics 14, 1943).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from omb_py.analysis.pairs.findings import ALARMS, FEWEST_UNITS, UNIT_FACTOR, quantile
from omb_py.core.dataclass import dataclass
from omb_py.core.text.words import count

MOST_FOUND = 8
"""Slow units and links that are taken out at most."""

MOST_CORRELATED = 0.99
"""A correlation that chance alone reaches where the tests are too few to find anything."""

SIMULATED_UNITS = 64
SIMULATIONS = 2000
"""Limits for few units are simulated, since their halves resemble each other."""

TOGETHER = 1 / 8
"""Part of the tests in which both ends of a link must be in one half for it to be judged."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Halves:
    """Halves of units and the seconds that each took.

    ``sides`` has a row for each test: 1 for units of the first half, -1 for those of the second, 0
    for one that rested. ``seconds`` has the first and the second half's time of each test.
    """

    names: tuple[str, ...]
    sides: tuple[tuple[int, ...], ...]
    seconds: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Culprit:
    """Units, one or two with a slow link between them, whose halves take ``factor`` times as
    long."""

    names: tuple[str, ...]
    factor: float

    @property
    def text(self) -> str:
        """A sentence without its end."""
        what = " and ".join(self.names)
        halves = f"halves with both {what}" if len(self.names) > 1 else f"halves with {what}"
        return f"{halves} take {self.factor:.2f} times as long"


def culprits(halves: Halves) -> list[Culprit]:
    """The slow units and links, largest factor first."""
    sides = np.array(halves.sides, float)
    logarithms = np.log(np.array(halves.seconds))
    if len(halves.names) < FEWEST_UNITS:
        return []
    found = [
        Culprit(tuple(halves.names[unit] for unit in units), float(np.exp(factor)))
        for units, factor in taken_out(sides, logarithms)
    ]
    return sorted(found, key=lambda one: -one.factor)


def taken_out(sides: Numbers, logarithms: Numbers) -> Iterator[tuple[tuple[int, ...], float]]:
    """Units of culprits and the logarithms of their factors, in the order of correlation."""
    left = logarithms[:, 0] - logarithms[:, 1]
    of_units, of_pairs = limits(sides)
    together = sides.T @ sides
    for _ in range(MOST_FOUND):
        unit, fits_unit = best_unit(sides, left)
        pair, fits_pair = best_pair(together, sides, left)
        several = fits_pair > fits_unit
        if (fits_pair < of_pairs) if several else (fits_unit < of_units):
            return
        units = pair if several else (unit,)
        effect = sides[:, units].mean(axis=1)
        size = float(effect @ left / (effect @ effect))
        if size < np.log(UNIT_FACTOR):
            return
        left = left - size * effect
        if several and both_slow(effect, logarithms, size):
            yield from (((one,), size) for one in units)
        else:
            yield units, size


def best_unit(sides: Numbers, ratios: Numbers) -> tuple[int, float]:
    """The unit that the ratios follow most, and its correlation with them."""
    fits = sides.T @ ratios / np.sqrt((sides**2).sum(axis=0) * (ratios @ ratios))
    unit = int(fits.argmax())
    return unit, float(fits[unit])


def best_pair(together: Numbers, sides: Numbers, ratios: Numbers) -> tuple[tuple[int, int], float]:
    """The pair that the ratios follow most where it is in one half, and its correlation."""
    sums = sides.T @ ratios
    best, found = 0.0, (0, 1)
    counts = together.diagonal()
    for unit in range(len(sums) - 1):
        others = slice(unit + 1, None)
        effects = (counts[unit] + counts[others] + 2 * together[unit, others]) / 4
        enough = effects >= TOGETHER * len(sides)
        scale = np.sqrt(np.where(enough, effects, np.inf) * (ratios @ ratios))
        fits = (sums[unit] + sums[others]) / 2 / scale
        place = int(fits.argmax())
        if fits[place] > best:
            best, found = float(fits[place]), (unit, unit + 1 + place)
    return found, best


def both_slow(effect: Numbers, logarithms: Numbers, size: float) -> bool:
    """Whether two units are slow each by itself, so that both halves are where each has one.

    A slow link between them makes neither half slow then.
    """
    apart, one_half = effect == 0, effect != 0
    if not apart.any():
        return False
    fast = float(np.median(logarithms[one_half].min(axis=1)))
    return float(np.median(logarithms[apart])) - fast > size / 2


def limits(sides: Numbers) -> tuple[float, float]:
    """The correlations that units and pairs reach by chance in half of `ALARMS` each."""
    tests, units = sides.shape
    if units > SIMULATED_UNITS:
        pairs = units * (units - 1) // 2
        of_units, of_pairs = (quantile(ALARMS / 2 / number) for number in (units, pairs))
        return float(of_units / np.sqrt(tests)), float(of_pairs / np.sqrt(tests))
    chance = np.random.default_rng(units)
    noise = chance.standard_normal((SIMULATIONS, tests))
    noise /= np.linalg.norm(noise, axis=1)[:, None]
    first, second = np.triu_indices(units, 1)
    effects = np.concatenate([sides.T, (sides[:, first] + sides[:, second]).T / 2])
    sizes = (effects**2).sum(axis=1)
    enough = sizes >= TOGETHER * tests
    fits = noise @ (effects / np.sqrt(np.where(enough, sizes, np.inf))[:, None]).T
    largest = fits[:, :units].max(axis=1), fits[:, units:].max(axis=1)
    of_units, of_pairs = np.quantile(largest, 1 - ALARMS / 2, axis=1)
    return float(of_units), float(of_pairs)


def needed(halves: Halves) -> float | None:
    """How many times as long halves with a slow unit would have to take for it to be found.

    None where the tests are too few to find any.
    """
    sides = np.array(halves.sides, float)
    logarithms = np.log(np.array(halves.seconds))
    limit, _ = limits(sides)
    if limit > MOST_CORRELATED:
        return None
    noise = np.linalg.norm(logarithms[:, 0] - logarithms[:, 1])
    units = np.linalg.norm(sides, axis=0).min()
    return max(UNIT_FACTOR, float(np.exp(noise / units * limit / np.sqrt(1 - limit**2))))


def sentences(halves: Halves) -> Sequence[str]:
    """What is slow, in words, or that nothing is and what could have been found."""
    if len(halves.names) < FEWEST_UNITS:
        return [f"{FEWEST_UNITS} or more are needed to tell which of them is slow"]
    factor = needed(halves)
    if factor is None:
        return [f"{count(len(halves.sides), 'test')} cannot show which of them is slow"]
    found = culprits(halves)
    return [f"slow: {one.text}" for one in found] or [
        "no half is slow because of one of its members: such halves would have to take "
        f"{factor:.2f} times as long"
    ]
