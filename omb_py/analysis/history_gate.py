"""The gate of a history: whether the level of each series now is as good as its best one before.

A level is what a series has between two changes. The newest one is held against the best earlier
one, not against the last: a series that got 50 % slower, then 4 % faster, is still slower. A change
that was accepted is left behind by a date from which runs count (`history`'s ``since``).

Whatever cannot be judged is named, never passed over: series that are too short, series that ended,
and newest runs outside the noise that are too few to be a level of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from scipy.stats import median_abs_deviation, norm
from scipy.stats import t as student

from omb_py.analysis.conclusion import (
    MAX_REASONS,
    MOST_NAMED,
    Conclusion,
    conclude,
    within,
)
from omb_py.analysis.failures import Failure
from omb_py.analysis.history import (
    ENOUGH,
    LEAST_CHANGE,
    LEAST_DEVIATION,
    OUTLIER,
    P_VALUE,
    SHORTEST,
    WINDOW,
    History,
    Series,
    day,
)
from omb_py.analysis.verdict import chance, factor, variance_of_median
from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import slowdown, value_text
from omb_py.core.text.words import count


class Level(NamedTuple):
    """Runs from ``start`` to before ``stop``; ``times`` are larger where slower, without outliers.

    A bandwidth's times are its inverses.
    """

    start: int
    stop: int
    times: np.ndarray

    @property
    def median(self) -> float:
        """The middle of the times."""
        return float(np.median(self.times))


def conclusion(found: History, allowed: float) -> Conclusion:
    """Conclude on all series by a limit on how much slower they are now than at their best.

    A series fails by wrong data in its newest run, or by `verdict`. A series that ended is missing,
    one of fewer than `ENOUGH` runs undecided, as is a file without a date: its place is unknown,
    and one of the newest day that could not be read.
    Raises `UsageError` for a limit below the smallest change that is looked for.
    """
    if allowed < 1 + LEAST_CHANGE:
        raise UsageError(
            f"--fail-above: changes below {LEAST_CHANGE:.0%} are not looked for: allow "
            f"{LEAST_CHANGE:.0%} or more"
        )
    failed = list(map(Failure, found.wrong.values()))
    others = [one for one in (*found.series, *found.short) if one.name not in found.wrong]
    undecided, missing = [*(f"{file}: no date" for file in found.undated), *found.lost], []
    held = 0
    last = {one.name: times_of(one.dates) for one in (*found.series, *found.short)}
    over = ended(last)
    for one in others:
        if len(one.values) < ENOUGH:
            undecided.append(
                f"{one.name}: {count(len(one.values), 'run')} until {day(one.dates[-1])}, "
                f"{ENOUGH} are needed"
            )
        elif one.name in over:
            missing.append(f"{one.name}: no run since {day(one.dates[-1])}")
        else:
            holds, words = verdict(one, allowed)
            if holds:
                held += 1
            elif holds is None:
                undecided.append(words)
            else:
                failed.append(Failure(f"{words}, allowed is {factor(allowed)}"))
    judged = held + len(failed)
    # no bound is asked of a series: a slowdown that its noise hides is not excluded
    held_words = f"without a slowdown above {factor(allowed)}"
    return conclude(judged, failed, undecided, missing, what="series", held=held_words)


def verdict(one: Series, allowed: float) -> tuple[bool | None, str]:
    """Return whether the level now is at most ``allowed`` times slower than the best earlier one.

    None if that cannot be told; with words unless it holds.

    The newest runs are the level now if they are `apart` from the runs before, and a rank test
    gives that a chance of `P_VALUE` at most, which takes three of 51 runs or four of 28. Fewer may
    be one bad night: the level now is then theirs or that of the runs before, and it counts what
    both say. So one slow run is undecided, as is one fast run after a slow level.
    """
    newest = apart(one)
    levels = levels_of(one, len(one.values) - newest)
    *earlier, now = levels
    best = best_of(earlier)
    holds = compared(one, now, best, allowed, newest)
    if not newest:
        return holds, "" if holds else sentence(one, levels, best, allowed, holds)
    place = len(one.values) - newest
    few = Level(place, len(one.values), slowness(one)[place:])
    known = best_of([level for level in levels if level.stop - level.start >= SHORTEST])
    assert known is not None  # a series has `ENOUGH` runs
    if against(few.times, now.times) <= P_VALUE:
        holds = compared(one, few, known, allowed, newest)
        return holds, "" if holds else sentence(one, [*levels, few], known, allowed, holds)
    factor_now = few.median / known.median
    if holds is (factor_now <= allowed):
        return holds, "" if holds else sentence(one, levels, best, allowed, holds)
    runs = "run of" if newest == 1 else f"{newest} runs since"
    how = f"{factor(factor_now)} slower" if factor_now > allowed else within(allowed)
    return None, (
        f"{one.name}: the newest {runs} {day(one.dates[place])} {'is' if newest == 1 else 'are'} "
        f"{how} than {best_text(one, known)}, too few to judge"
    )


def compared(
    one: Series, level: Level, best: Level | None, allowed: float, newest: int
) -> bool | None:
    """Return whether a level is at most ``allowed`` times slower than the best one; None if unsure.

    It is slower if the medians are, by more than the noise: by Student's t, such medians of a level
    ``allowed`` times slower have a chance of `P_VALUE` at most. Where changes are was chosen by the
    same numbers, so that a chance of 5 % would find one in a hundred flat series slower. A rank
    test would need 20 runs. Without a ``best`` the level is the best itself.
    """
    if best is None or level.median <= best.median * allowed:
        return True
    excess = np.log(level.median / (best.median * allowed))
    p_value = chance_of(excess, one, newest, len(level.times), len(best.times))
    return False if p_value <= P_VALUE else None


def chance_of(shift: float, one: Series, newest: int, *runs: int) -> float:
    """Return the two-sided chance that medians of these numbers of ``runs`` differ by a logarithm.

    The deviation is that of all runs but the ``newest`` ones from the medians of their levels,
    since one level may have few. Runs beyond `OUTLIER` median absolute deviations count as much as
    those at it: a bad night must not hide the next one. That deviation itself is known too badly,
    from ten runs.
    """
    levels = np.split(np.log(slowness(one))[: len(one.values) - newest], one.starts[1:])
    from_median = np.concatenate([level - np.median(level) for level in levels])
    most = OUTLIER * max(median_abs_deviation(from_median, scale="normal"), LEAST_DEVIATION)
    degrees = max(1, len(from_median) - len(levels))
    deviation = np.sqrt((np.clip(from_median, -most, most) ** 2).sum() / degrees)
    variance = variance_of_median(np.array(runs)).sum()
    error = max(float(deviation), LEAST_DEVIATION) * np.sqrt(variance)
    return float(2 * student.sf(abs(shift) / error, degrees))


def against(own: np.ndarray, others: np.ndarray) -> float:
    """Return the P-value of the two-sided rank test of own times against others.

    Of the newest `WINDOW` others: they are nearest, and the exact distribution is then known.
    """
    differences = own[:, None] - others[None, -WINDOW:]
    least = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return float(chance(*differences.shape)[least])


def apart(one: Series) -> int:
    """Return how many of the newest runs are outside the noise of the level before them; 0 if none.

    At most `SHORTEST` - 1, for more make a change, and at most half of the level. Their median, of
    an even number the one nearer to the level, is as unlikely (`chance_of`) as a normal value
    beyond `OUTLIER`; the first of them is nearer to that median than to the level.
    """
    logs = np.log(slowness(one))[one.starts[-1] :]
    found, least = 0, float(2 * norm.sf(OUTLIER))
    for newest in range(1, min(SHORTEST - 1, len(logs) // 2) + 1):
        center = np.median(logs[:-newest])
        few = logs[-newest:] - center
        middle = np.sort(few)[(newest - 1) // 2 : newest // 2 + 1]
        shift = middle[np.abs(middle).argmin()]
        p_value = chance_of(shift, one, newest, newest, len(logs) - newest)
        nearer = abs(few[0] - shift) < abs(few[0])
        if p_value < least and nearer and len(set(np.sign(middle))) == 1:
            found, least = newest, p_value
    return found


def slowness(one: Series) -> np.ndarray:
    """Return the values of a series as times, a bandwidth's inverse."""
    return slowdown(one.values, one.point["unit"])


def levels_of(one: Series, stop: int) -> list[Level]:
    """Return the levels of a series before the run at ``stop``."""
    times, odd = slowness(one), set(one.outliers)
    ends = [*one.starts[1:], stop]
    return [
        Level(a, b, times[[place for place in range(a, b) if place not in odd]])
        for a, b in zip(one.starts, ends, strict=True)
    ]


def best_of(levels: Sequence[Level]) -> Level | None:
    """Return the fastest level, None without any."""
    return min(levels, key=lambda level: level.median, default=None)


def sentence(
    one: Series, levels: Sequence[Level], best: Level | None, allowed: float, holds: bool | None
) -> str:
    """Return how much slower the last of the levels is than the best one, and since when."""
    now = levels[-1]
    assert best is not None  # without one, every level holds
    begun = now.start
    for level in reversed(levels):
        if level.median <= best.median * allowed:
            break
        begun = level.start
    text = (
        f"{one.name}: {value_of(one, now)} against {best_text(one, best)}, "
        f"{factor(now.median / best.median)} slower since {day(one.dates[begun])}"
    )
    return text if holds is False else f"{text}, within the noise"


def best_text(one: Series, best: Level) -> str:
    """Return the best level in words: its median and its time."""
    first, last = one.dates[best.start], one.dates[best.stop - 1]
    return f"{value_of(one, best)} ({day(first)} to {day(last)})"


def value_of(one: Series, level: Level) -> str:
    """Return the median of a level in the unit of the series."""
    unit = str(one.point["unit"])
    return value_text(slowdown(level.median, unit), unit)


def times_of(dates: Sequence[datetime]) -> np.ndarray:
    """Return dates in seconds."""
    return np.array(dates, "datetime64[s]").astype("int64")


def ended(dates: Mapping[str, np.ndarray]) -> set[str]:
    """Return the names of the series that ended: another one ran on without them (`without`).

    ``dates`` are the seconds of each series' runs, in their order.
    """
    alike: dict[bytes, list[str]] = {}
    for name, own in dates.items():
        alike.setdefault(own.tobytes(), []).append(name)
    different = [dates[names[0]] for names in alike.values()]
    found: set[str] = set()
    for own, names in zip(different, alike.values(), strict=True):
        if any(other[-1] > own[-1] and without(own, other) for other in different):
            found.update(names)
    return found


def without(own: np.ndarray, other: np.ndarray) -> bool:
    """Return whether a series ran on after the last run of its own one more than it usually does.

    Usual is what it ran from one run of the own one to the next, in the middle: nothing if both are
    measured together, one time if it always follows, six times if it is nightly and the own one
    weekly. A run shortly before the next own one belongs to that, for there is an order within a
    night. One that is much rarer tells something only if the own one was due before it.
    """
    own_step, step = typical(own), typical(other)
    if 0 < own_step < step / 2:
        return bool(other[-1] > own[-1] + own_step)
    together = own[:-1] >= other[0]
    firsts = np.searchsorted(other, own[:-1][together], "right")
    lasts = np.searchsorted(other, own[1:][together] - step / 2, "right")
    usual = np.median(np.maximum(lasts - firsts, 0)) if len(firsts) else 0
    return bool((other > own[-1]).sum() > usual)


def typical(dates: np.ndarray) -> float:
    """Return the median time between two runs, 0 for a single run."""
    return float(np.median(np.diff(dates))) if len(dates) > 1 else 0.0


def sheets(found: Conclusion, complete: bool = True) -> Iterator[Sheet]:
    """Yield tables of what failed and of what was not judged, by name.

    Unless ``complete``, without those whose names all stand in the lines of the conclusion.
    """
    for title, names, printed in (
        ("Slower than allowed", found.reasons, MAX_REASONS),
        ("Not judged", (*found.undecided, *found.missing), MOST_NAMED),
    ):
        if len(names) > (0 if complete else printed):
            yield Sheet(title, ("series",), tuple((name,) for name in names))
