"""Series as tables that a person reads, with what the predictions rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omb_py.analysis.scaling import PUBLISHED_RANKS
from omb_py.analysis.scaling.prediction import MAX_ERROR, Fit, band, fits_of, serial_fraction
from omb_py.analysis.scaling.series import PHASES, Point, Series, Spread
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, value_text

PUBLISHED = (
    "The paper of OMB-Py (N. Alnaasan et al., IPDPSW 2022) reports speed-ups of up to 106 on 224 "
    "cores over sequential programs: of other problems on other machines, so that nothing here is "
    "to be compared with it. What is over sequential programs here stands in a column of its own."
)


def sheets(every: Sequence[Series], ranks: int) -> Iterator[Sheet]:
    """Three tables for each series: its points, their phases, and predictions for so many ranks."""
    for series in every:
        yield of_points(series)
        yield of_phases(series)
        fits = fits_of(series)
        yield of_predictions(series, fits, ranks)


def notes(every: Sequence[Series], ranks: int) -> Iterator[str]:
    """What there is to say of all series together."""
    if ranks == PUBLISHED_RANKS and any(series.telling for series in every):
        yield PUBLISHED


def of_points(series: Series) -> Sheet:
    """What was measured on each number of ranks."""
    one = " (of one rank)" if series.scaling == "weak" else ""
    source = "Gustafson" if series.scaling == "weak" else "Karp-Flatt"
    oversubscribed = any(point.oversubscribed for point in series.points)
    remarks = [
        "Times and speed-ups: the median, and the minimum and maximum of the repeats. Speed-ups "
        "are over one rank, and over the sequential program."
    ]
    if oversubscribed:
        remarks.append(
            "* more threads than cores: ranks took turns, which says nothing of how it scales. "
            "Efficiency per core is of the cores that were there."
        )
    remarks += bounds(series)
    return Sheet(
        f"{series.application}: {series.problem}{one}; {series.name}",
        (
            "ranks",
            "cores",
            "time",
            "low to high",
            "speed-up",
            "low to high",
            "over sequential",
            "efficiency",
            "per core",
            f"serial ({source})",
        ),
        tuple(cells_of(point, series) for point in series.points),
        tuple(remarks),
        0,
    )


INDIVISIBLE = 0.75
"""A part stays sequential when on the most ranks it takes so much of its time on the fewest."""

NOTABLE = 0.05
"""The share of the time from which on a part or a phase is worth a remark."""

PASSING = ("Epoch ", "Later epochs", "First training", "Stage ")
"""How names of parts begin that are stretches of the whole, or of one rank, and not a kind of
work."""


def bounds(series: Series) -> Iterator[str]:
    """What stays sequential, and what bounds the speed-up on the most ranks."""
    first, last = series.points[0], series.points[-1]
    if series.scaling == "weak" or first is last or last.one_rank is None:
        return
    for name, seconds in last.parts.items():
        alone = first.parts.get(name, 0.0)
        share = seconds / last.seconds.value
        if name.startswith(PASSING) or seconds < INDIVISIBLE * alone or not alone:
            continue
        if share >= NOTABLE:
            yield (
                f"{name} stays sequential: {value_text(1e6 * alone, 'us')} on {first.ranks}, "
                f"{value_text(1e6 * seconds, 'us')} on {last.ranks} ranks, {percent(share)} of the "
                f"time there. With it no number of ranks is more than "
                f"{digits(last.one_rank / seconds)} times as fast as one."
            )
    shares = dict(zip(PHASES, last.shares, strict=True))
    computing = shares.pop("compute")
    most = max(shares, key=lambda name: shares[name])
    if shares[most] >= NOTABLE and computing > 0:
        possible = digits(last.one_rank / (computing * last.seconds.value))
        yield (
            f"On {last.ranks} ranks {percent(shares[most])} of the time is phase {most}, which "
            f"bounds the speed-up most; computing alone would be {possible} times as fast as one "
            "rank."
        )


def cells_of(point: Point, series: Series) -> tuple[str, ...]:
    """A row of the table of points."""
    speedup, seconds = point.speedup, point.seconds
    return (
        name_of(point),
        f"{min(point.cores, point.there)}",
        value_text(1e6 * seconds.value, "us"),
        f"{value_text(1e6 * seconds.low, 'us')} to {value_text(1e6 * seconds.high, 'us')}",
        digits(speedup.value) if speedup else "-",
        between(speedup) if speedup else "-",
        digits(point.sequential.value) if point.sequential else "-",
        percent(point.efficiency),
        percent(point.efficiency_of_cores),
        percent(serial_fraction(point, series.scaling)),
    )


def of_phases(series: Series) -> Sheet:
    """Which share of the time each phase takes on each number of ranks."""
    return Sheet(
        "Share of the time by phase",
        ("ranks", *(PHASES[place] for place in series.phases)),
        tuple(
            (name_of(point), *(percent(point.shares[place]) for place in series.phases))
            for point in series.points
        ),
        (),
        0,
    )


def name_of(point: Point) -> str:
    """A point's number of ranks, with a mark where they took turns."""
    return f"{point.ranks}{' *' if point.oversubscribed else ''}"


def of_predictions(series: Series, fits: Sequence[Fit], ranks: int) -> Sheet:
    """What each law says of so many ranks; only remarks where none has a point."""
    rows = []
    over = series.over_sequential
    for one in fits:
        value, low, high = (float(numbers[0]) for numbers in one.speedup([ranks]))
        told = zip(one.law.parameters, one.spreads(), strict=True)
        rows.append(
            (
                one.law.name,
                one.law.formula,
                ", ".join(f"{name} = {parameter(spread)}" for name, spread in told),
                percent(one.error),
                digits(value) if one.describes else "-",
                f"{digits(low)} to {digits(high)}" if one.describes else "does not fit",
                digits(over * value) if one.describes and over else "-",
                percent(value / ranks) if one.describes else "-",
            )
        )
    describing = [one for one in fits if one.describes]
    if len(describing) > 1:
        low, high = (float(numbers[0]) for numbers in band(describing, [ranks]))
        span = f"{digits(low)} to {digits(high)}"
        rows.append(("any of them", "", "", "", "", span, "", ""))
    return Sheet(
        f"Prediction for {ranks} ranks with cores of their own",
        (
            "law",
            "",
            "fitted",
            "error",
            "speed-up",
            "low to high",
            "over sequential",
            "efficiency",
        ),
        tuple(rows),
        tuple(basis(series, fits, ranks)),
        3,
    )


def basis(series: Series, fits: Sequence[Fit], ranks: int) -> Iterator[str]:
    """What the predictions rest on, and how little that may be."""
    points = series.telling
    if not points:
        yield why_none(series)
        return
    on = ", ".join(str(point.ranks) for point in points)
    left_out = [str(point.ranks) for point in series.points if point.oversubscribed]
    text = f"Rests on the speed-up on {on} ranks"
    yield text + (f"; left out, for want of cores: {', '.join(left_out)}." if left_out else ".")
    if untested := [one.law.name for one in fits if len(points) <= len(one.law.parameters)]:
        yield (
            f"Taken on trust, for no more is measured than fitted: {'; '.join(untested)}. Measure "
            "on more numbers of ranks with cores of their own."
        )
    if not any(one.describes for one in fits):
        yield (
            "No law fits: their errors are greater than "
            f"{percent(MAX_ERROR)}, as of programs that are slower on several ranks than on one."
        )
        return
    beyond = ranks / max(point.ranks for point in points)
    if beyond > 1:
        yield (
            f"{digits(beyond, 2)} times the most ranks measured: a law knows nothing of networks, "
            "memory or load that come in between. Low to high is what the repeats' extremes make "
            "of it, no interval of confidence."
        )


def why_none(series: Series) -> str:
    """Why nothing can be predicted."""
    several = [point for point in series.points if point.ranks > 1]
    if not series.divides_work:
        return "Nothing to predict: its ranks do not divide what one rank would do."
    if not several:
        return "Nothing to predict from: measure it on 2 and more ranks."
    if not any(point.speedup for point in several):
        return "Nothing to predict from: no run has a speed-up, nor was one rank measured."
    return "Nothing to predict from: in all runs ranks shared cores."


def parameter(spread: Spread) -> str:
    """A parameter with its extremes, in percent of one rank's time."""
    return f"{percent(spread.value)} ({percent(spread.low)} to {percent(spread.high)})"


def between(spread: Spread) -> str:
    """The extremes of a number."""
    return f"{digits(spread.low)} to {digits(spread.high)}"


def percent(part: float | None) -> str:
    """A part in percent."""
    return "-" if part is None else f"{100 * part:.1f} %"
