"""Which algorithm a library should take at which size: its own choice unless another is proved.

Options of a point (a function, ranks and a message size) are compared with the library as it is,
`DEFAULT`, with the variables of its user, by values of launches that took turns: by the rank test
of `verdict`, adjusted for all comparisons. An option counts if it is faster beyond noise and by a
gain that was asked for.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from omb_py.algorithms import DEFAULT, Algorithm
from omb_py.algorithms.rules import Rule
from omb_py.analysis.values import value_column
from omb_py.analysis.verdict import (
    FASTER,
    SLOWER,
    UNCLEAR,
    Interval,
    adjusted,
    by_runs,
    factor,
    verdicts,
)
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import size_text, value_text

KEPT = "kept"
"""The library with a file without rules: what it does wherever no rule holds."""

RULES = "rules"
"""The library with the rules."""

OWN_WORD = "own "
"""How the names of omb-py's own algorithms begin, which no library can choose."""

GAIN = 0.05
"""The part by which an algorithm has to be faster by default."""


class Place(NamedTuple):
    """A function, a number of ranks, and a message size in bytes, 0 for none."""

    function: str
    ranks: int
    size: int

    @property
    def text(self) -> str:
        """The point in words."""
        size = f" {size_text(self.size)}" if self.size else ""
        return f"{self.function}{size} on {self.ranks} ranks"


Values: TypeAlias = Mapping[Place, Mapping[str, np.ndarray]]
"""Microseconds of each launch, by option."""


@dataclass(frozen=True)
class Compared:
    """An option against another at a point: the ratio of times, its interval and verdict."""

    ratio: float
    low: float
    high: float
    verdict: str

    @property
    def gain(self) -> float:
        """The part by which the other one takes longer."""
        return 1 / self.ratio - 1

    @property
    def text(self) -> str:
        """How many times faster or slower, with the interval."""
        if math.isnan(self.low):
            return f"{factor(1 / self.ratio)} as fast, too few launches"
        return (
            f"{factor(1 / self.ratio)} as fast ({factor(1 / self.high)} to {factor(1 / self.low)})"
        )


@dataclass(frozen=True)
class Chosen:
    """What a point gets: the word of an algorithm, or `KEPT`, and how its options compare.

    ``best`` is the option of the least time. ``lost`` is true if neither the library without rules
    nor any algorithm is as fast there as the library as it is.
    """

    place: Place
    default_us: float
    word: str
    best: str
    of_best: Compared
    of_kept: Compared | None
    lost: bool = False


def values_of(rows: pd.DataFrame, statistic: str = "auto") -> Values:
    """Return the times of launches by point and option: the label, else the algorithm."""
    found: dict[Place, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    frame = value_column(rows, statistic)
    option = frame["variant"].fillna(frame["library_algorithm"]).fillna(DEFAULT)
    sizes = frame["bytes"].fillna(0)
    for name, ranks, size, word, value in zip(
        frame["benchmark"], frame["ranks"], sizes, option, frame["value"], strict=True
    ):
        found[Place(str(name), int(ranks), int(size))][str(word)].append(float(value))
    return {
        place: {word: np.array(values) for word, values in options.items()}
        for place, options in sorted(found.items())
    }


def compared(
    values: Values, base: str | Callable[[Place], str | None] = DEFAULT
) -> dict[Place, dict[str, Compared]]:
    """Return how each option of each point compares with ``base``, adjusted for all of them."""
    keys: list[tuple[Place, str]] = []
    found: list[Interval] = []
    for place, options in values.items():
        first = base if isinstance(base, str) else base(place)
        for word, times in options.items() if first in options else ():
            if word != first:
                keys.append((place, word))
                found.append(by_runs(options[str(first)][None, :], times[None, :]))
    if not keys:
        return {}
    together = Interval(*(np.concatenate(column) for column in zip(*found, strict=True)))
    p_values = pd.Series(together.p_value)
    p_adjusted = adjusted(p_values, pd.Series(0, p_values.index)).to_numpy()
    result: dict[Place, dict[str, Compared]] = defaultdict(dict)
    words = verdicts(together, p_adjusted)
    columns = (together.ratio, together.low, together.high, words)
    for (place, word), ratio, low, high, verdict in zip(keys, *columns, strict=True):
        result[place][word] = Compared(float(ratio), float(low), float(high), str(verdict))
    return dict(result)


def choices(values: Values, gain: float = GAIN) -> list[Chosen]:
    """Return the choice of each point.

    Of algorithms that are nearly as fast, one goes on from the size before.
    """
    all_compared = compared(values)
    found: list[Chosen] = []
    before: Chosen | None = None
    for place, options in values.items():
        of_options = {
            word: one
            for word, one in all_compared.get(place, {}).items()
            if not word.startswith(OWN_WORD)
        }
        if not of_options:
            continue
        goes_on = before is not None and before.place[:2] == place[:2]
        last = before.word if before is not None and goes_on else KEPT
        word, lost = choice_of(of_options, gain, last)
        best = min(of_options, key=lambda one: of_options[one].ratio)
        before = Chosen(
            place,
            float(np.median(options[DEFAULT])),
            word,
            best,
            of_options[best],
            of_options.get(KEPT),
            lost,
        )
        found.append(before)
    return found


def without(chosen: Iterable[Chosen], removed: Collection[Place]) -> list[Chosen]:
    """Return choices with those of some points taken back; all others stay as they were proved."""
    return [replace(one, word=KEPT) if one.place in removed else one for one in chosen]


def choice_of(options: Mapping[str, Compared], gain: float, last: str) -> tuple[str, bool]:
    """Return the choice among options of a point, and whether it is slower than the default.

    ``last`` is that of the size before.
    """
    kept = options.get(KEPT)
    faster = {
        word: one for word, one in options.items() if one.verdict == FASTER and one.gain >= gain
    }
    if faster:
        limit = min(one.ratio for one in faster.values()) * (1 + gain)
        alike = [word for word, one in faster.items() if one.ratio <= limit]
        for word in (KEPT, last):
            if word in alike:
                return word, False
        return min(alike, key=lambda word: faster[word].ratio), False
    if kept is None or kept.verdict != SLOWER or kept.ratio <= 1 + gain:
        return KEPT, False
    as_fast = {word: one for word, one in options.items() if one.ratio <= 1 + gain}
    if last in as_fast:
        return last, False
    return min(options, key=lambda word: options[word].ratio), not as_fast


class Boundary(NamedTuple):
    """Where one choice ends and the next begins: bytes, and the measured sizes around it.

    ``crossing`` is true if both take equally long there, by interpolation.
    """

    function: str
    ranks: int
    at: int
    before: int
    behind: int
    crossing: bool

    @property
    def text(self) -> str:
        """The boundary as a sentence without its end."""
        between = f"{size_text(self.before)} and {size_text(self.behind)}"
        where = f"{self.function} on {self.ranks} ranks: {self.at} bytes"
        if self.crossing:
            return f"{where}, where both take equally long by interpolation between {between}"
        return f"{where}, the next measured size: between {between} nothing was measured"


def rules_of(
    chosen: Sequence[Chosen], values: Values, algorithm: Callable[[str, str], Algorithm]
) -> tuple[list[Rule], list[Boundary]]:
    """Return the rules of choices, ranges of sizes merged, and where one passes into another.

    ``algorithm`` finds one by function and word. Beyond the measured sizes, and on other numbers of
    ranks, there is no rule.
    """
    rules: list[Rule] = []
    boundaries: list[Boundary] = []
    groups: dict[tuple[str, int], list[Chosen]] = defaultdict(list)
    for one in chosen:
        groups[one.place.function, one.place.ranks].append(one)
    for (function, ranks), members in groups.items():
        first = members[0].place.size
        for one, following in [*pairwise(members), (members[-1], None)]:
            if following is not None and following.word == one.word:
                continue
            last, start = one.place.size, one.place.size + 1
            if following is not None:
                border = boundary(one, following, values)
                boundaries.append(border)
                last, start = border.at - 1, border.at
                if one.word != KEPT and following.word == KEPT and not border.crossing:
                    last = one.place.size
            if one.word != KEPT:
                found = algorithm(function, one.word)
                rules.append(Rule(function, ranks, first, last, found))
            first = start
    return rules, boundaries


def boundary(one: Chosen, following: Chosen, values: Values) -> Boundary:
    """Return where the choices of two sizes that follow each other take equally long.

    Times are lines between measured sizes on logarithms. Where they do not cross, the choice of a
    size holds from it on.
    """
    a, b = one.place, following.place
    logs = [
        math.log(median_of(values, place, one.word) / median_of(values, place, following.word))
        for place in (a, b)
    ]
    if logs[0] < 0 < logs[1] and a.size > 0:
        part = logs[0] / (logs[0] - logs[1])
        at = round(math.exp(math.log(a.size) + part * math.log(b.size / a.size)))
        return Boundary(*a[:2], min(max(at, a.size + 1), b.size), a.size, b.size, True)
    at = a.size + 1 if following.word == KEPT else b.size
    return Boundary(*a[:2], at, a.size, b.size, False)


def median_of(values: Values, place: Place, word: str) -> float:
    """Return the median microseconds of a choice at a point; of the library's own if it has none.

    An algorithm that cannot be used at a size takes for ever there.
    """
    options = values[place]
    if word == KEPT and KEPT not in options:
        word = DEFAULT
    return float(np.median(options[word])) if word in options else math.inf


@dataclass(frozen=True)
class Proved:
    """A point measured with rules in force: against the library as it is, and its algorithm alone.

    ``word`` is the algorithm that a rule names there, `KEPT` for none.
    """

    place: Place
    word: str
    default_us: float
    rules_us: float
    of_rules: Compared
    against_forced: Compared | None

    @property
    def is_obeyed(self) -> bool | None:
        """Return whether the library takes the algorithm of a rule; None if times do not tell."""
        if self.word == KEPT or self.against_forced is None:
            return None
        one = self.against_forced
        if one.verdict not in (SLOWER, FASTER) or abs(math.log(one.ratio)) <= math.log1p(GAIN):
            return True if one.verdict != UNCLEAR else None
        # unlike the algorithm, and like the library's own choice
        return None if self.of_rules.verdict in (SLOWER, FASTER) else False

    def outcome(self, gain: float) -> str:
        """Return what the rules do at this point, in a word or two."""
        if self.of_rules.verdict == UNCLEAR:
            return "cannot tell"
        if self.of_rules.verdict == SLOWER and self.of_rules.ratio > 1 + gain:
            return "slower"
        if self.of_rules.verdict == FASTER and self.of_rules.gain >= gain:
            return "faster"
        return "not obeyed" if self.is_obeyed is False else "no difference"


def proofs(values: Values, word: Callable[[Place], str]) -> list[Proved]:
    """Return each point with rules in force; ``word`` finds the algorithm that they name there."""
    against_default = compared(values)
    forced = compared(values, word)
    return [
        Proved(
            place,
            word(place),
            float(np.median(options[DEFAULT])),
            float(np.median(options[RULES])),
            against_default[place][RULES],
            forced.get(place, {}).get(RULES),
        )
        for place, options in values.items()
        if {DEFAULT, RULES} <= {*options}
    ]


def choice_sheet(chosen: Iterable[Chosen]) -> Sheet:
    """Return the table of what each point gets before it is proved."""
    lines = [
        (
            *where(one.place),
            value_text(one.default_us, "us"),
            one.best,
            one.of_best.text,
            one.word + (" (slower than the default)" if one.lost else ""),
        )
        for one in chosen
    ]
    columns = ("function", "ranks", "size", "default", "fastest", "beside default", "choice")
    return Sheet("Measured", columns, tuple(lines))


def own_sheet(values: Values) -> Sheet:
    """Return the table of omb-py's own algorithms beside the library."""
    lines = [
        (*where(place), word.removeprefix(OWN_WORD), one.text)
        for place, options in compared(values).items()
        for word, one in options.items()
        if word.startswith(OWN_WORD)
    ]
    columns = ("function", "ranks", "size", "algorithm", "beside default")
    remark = "No library can choose these: they are made of point-to-point messages."
    title = "For information: omb-py's own algorithms"
    return Sheet(title, columns, tuple(lines), (remark,))


def proof_sheet(proved: Iterable[Proved], removed: Collection[Place], gain: float) -> Sheet:
    """Return the table of what the rules do; ``removed`` points lost theirs for it."""
    lines = []
    for one in proved:
        choice = f"{KEPT} (rule {one.word} taken out)" if one.place in removed else one.word
        cells = [value_text(time, "us") for time in (one.default_us, one.rules_us)]
        lines.append((*where(one.place), *cells, one.of_rules.text, one.outcome(gain), choice))
    columns = (
        "function",
        "ranks",
        "size",
        "default",
        "rules",
        "beside default",
        "verdict",
        "choice",
    )
    return Sheet("Measured again, with the rules in force", columns, tuple(lines))


def where(place: Place) -> tuple[str, str, str]:
    """Return the cells of a point."""
    return place.function, str(place.ranks), size_text(place.size) if place.size else ""


def table(chosen: Iterable[Chosen], proved: Iterable[Proved], gain: float) -> pd.DataFrame:
    """Return a row for each point, for programs."""
    of_proof = {one.place: one for one in proved}
    return pd.DataFrame([*rows_of(chosen, of_proof, gain)])


def rows_of(
    chosen: Iterable[Chosen], proved: Mapping[Place, Proved], gain: float
) -> Iterator[dict[str, object]]:
    """Yield the cells of each point by their names."""
    for one in chosen:
        proof = proved.get(one.place)
        yield {
            "function": one.place.function,
            "ranks": one.place.ranks,
            "bytes": one.place.size,
            "default_us": one.default_us,
            "fastest": one.best,
            "fastest_ratio": one.of_best.ratio,
            "fastest_low": one.of_best.low,
            "fastest_high": one.of_best.high,
            "choice": one.word,
            "rules_us": proof and proof.rules_us,
            "rules_ratio": proof and proof.of_rules.ratio,
            "rules_low": proof and proof.of_rules.low,
            "rules_high": proof and proof.of_rules.high,
            "verdict": proof and proof.outcome(gain),
        }
