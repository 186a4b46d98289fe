"""Figures of results: which of them there are, and how each is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.figure import Figure

from omb_py.analysis.bounds import Bounds
from omb_py.analysis.plots import bars as figure_bars
from omb_py.analysis.plots import heat as figure_heat
from omb_py.analysis.plots import lines as figure_lines
from omb_py.analysis.plots import overhead as figure_overhead
from omb_py.analysis.plots import pairs as figure_pairs
from omb_py.analysis.plots import samples as figure_samples
from omb_py.analysis.plots import winner as figure_winner
from omb_py.analysis.plots.bars import BarChart, bar_charts
from omb_py.analysis.plots.charts import Chart, rank_charts, size_charts
from omb_py.analysis.plots.groups import plain
from omb_py.analysis.plots.heat import HeatMap, Ratio, heat_maps
from omb_py.analysis.plots.overhead import Overhead, overheads
from omb_py.analysis.plots.pairs import PairMap, pair_maps
from omb_py.analysis.plots.samples import SamplePlot
from omb_py.analysis.plots.style import Page, apply_style
from omb_py.analysis.plots.winner import WinnerMap, winner_maps
from omb_py.analysis.select import convert
from omb_py.analysis.table import Results, of_rows, record_of
from omb_py.analysis.values import QUANTITIES, measured
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.words import first_of
from omb_py.results.row import OverheadRow, PairRow, Row

KINDS = ("auto", "size", "ranks", "heat", "winner", "overhead", "parts", "pairs")

UNITS = ("decimal", "binary")

Picture = Chart | HeatMap | WinnerMap | BarChart | Overhead | PairMap | SamplePlot

NOTHING = {
    "auto": "there is nothing to draw in these files",
    "size": "no benchmark here has two message sizes: --kind parts draws single numbers",
    "ranks": "no benchmark here ran on two numbers of ranks: give files of several jobs, "
    "or say what one had with --assume ranks=N",
    "heat": "no benchmark here has two message sizes and two numbers of ranks for a heat map: "
    "--lines names another column for its rows",
    "winner": "no benchmark here has two configurations at one message size and number of ranks: "
    "--lines names the columns that tell them apart, as in library_algorithm",
    "overhead": "there are no results of 'omb-py overhead' in these files",
    "pairs": "there are no results of 'omb-py pairs' in these files",
    "parts": "every benchmark here has several message sizes: --kind size draws those",
}


@dataclass(frozen=True)
class Request:
    """What to draw: the options of ``omb-py plot``.

    ``kind`` is one of `KINDS`; ``lines`` are the columns that tell lines apart, None for all that
    differ; ``sizes`` the message sizes to keep, none for all (a few over ranks); ``bounds`` are
    drawn beside values over message sizes.
    """

    kind: str = "auto"
    lines: tuple[str, ...] | None = None
    sizes: tuple[int, ...] = ()
    value: str = "auto"
    statistic: str = "auto"
    ratio: Ratio | None = None
    bounds: Bounds | None = None


def figures(
    source: Results | pd.DataFrame,
    kind: str = "auto",
    *,
    lines: Sequence[str] | None = None,
    sizes: Sequence[int | str] = (),
    value: str = "auto",
    statistic: str = "auto",
    ratio: str | None = None,
    units: str = "decimal",
    width: str | float = 17.5,
    theme: str = "light",
) -> dict[str, Figure]:
    """Matplotlib figures by the names that their files would have.

    ``source`` is what `omb_py.analysis.table.load` read, or the rows of one of its tables. The
    other arguments are the options of ``omb-py plot``. Raises `UsageError` for arguments that mean
    nothing and `OmbError` when there is nothing to draw.
    """
    if units not in UNITS:
        raise UsageError(f"there are no units {units!r}: choose from {', '.join(UNITS)}")
    request = Request(
        kind,
        None if lines is None else tuple(lines),
        message_sizes(str(size) for size in sizes),
        value,
        statistic,
        None if ratio is None else Ratio.parsed(ratio),
    )
    page = Page.parsed(width, theme)
    return {
        name: draw(picture, units == "binary", page)
        for name, picture in pictures(as_results(source), request).items()
    }


def as_results(source: Results | pd.DataFrame) -> Results:
    """Rows of one table as results that have no others; columns that it lacks are empty."""
    if isinstance(source, Results):
        return source
    none = of_rows([], {})
    kind = {Row: "rows", OverheadRow: "overhead", PairRow: "pairs"}[record_of(source.columns)]
    columns = getattr(none, kind).columns
    missing = [name for name in columns if name not in source.columns]
    return replace(none, **{kind: source.reindex(columns=[*source.columns, *missing])})


def message_sizes(texts: Iterator[str]) -> tuple[int, ...]:
    """Message sizes from ``8``, ``64K`` and the like; raises `UsageError` for other words."""
    return tuple(int(convert("bytes", text.strip())) for text in texts)


def pictures(results: Results, request: Request) -> dict[str, Picture]:
    """What to draw, by name. Raises `OmbError` when that is nothing, and says why."""
    if request.kind not in KINDS:
        raise UsageError(f"there is no kind {request.kind!r}: choose from {', '.join(KINDS)}")
    if request.ratio and request.kind not in ("auto", "heat"):
        raise UsageError(f"--ratio makes a heat map, not --kind {request.kind}")
    found: dict[str, Picture] = {}
    for picture in every(results, request):
        name, count = picture.name, 1
        while name in found:
            count += 1
            name = f"{picture.name}-{count}"
        found[name] = picture
    if not found:
        if request.kind not in ("auto", "overhead", "pairs") or request.value != "auto":
            measured(results.rows, request.value, request.statistic)
        if request.ratio:
            ratio = request.ratio
            raise OmbError(
                f"no benchmark here has both {ratio.column}={ratio.above} and {ratio.below} "
                "at two message sizes with all other columns alike"
            )
        raise OmbError(NOTHING[request.kind])
    return found


def left_out(results: Results, request: Request, found: Mapping[str, Picture]) -> Iterator[str]:
    """A sentence for what no picture shows, of the rows and benchmarks there are."""
    rows = of_sizes(results, request.sizes)
    column = QUANTITIES[request.value].column
    if column and (without := int(rows[column].isna().sum())):
        yield f"{without} of {len(rows)} rows have no {request.value} ({column}) and are left out"
    drawn_names = [picture.name for picture in found.values()]
    if any(name.partition("-")[0] == "benchmarks" for name in drawn_names):
        return
    if missing := [
        str(name)
        for name in rows["benchmark"].dropna().unique()
        if not any(f"{drawn}-".startswith(f"{plain(str(name))}-") for drawn in drawn_names)
    ]:
        yield f"not drawn with these options: {first_of(missing)}"


def every(results: Results, request: Request) -> Iterator[Picture]:
    """All pictures of the kinds that are asked for; ``auto`` is all but maps."""
    rows = of_sizes(results, request.sizes)
    choice = (request.lines, request.value, request.statistic)
    if request.ratio or request.kind == "heat":
        yield from heat_maps(rows, *choice, request.ratio)
        return
    if request.kind == "winner":
        yield from winner_maps(rows, *choice)
    if request.kind in ("auto", "size"):
        yield from size_charts(rows, *choice, request.bounds)
    if request.kind in ("auto", "ranks"):
        yield from rank_charts(rows, *choice, bool(request.sizes))
    if request.kind in ("auto", "parts"):
        yield from bar_charts(unscaled(rows) if request.kind == "auto" else rows, *choice)
    if request.kind in ("auto", "overhead"):
        yield from overheads(results.overhead, next(iter(request.sizes), None))
    if request.kind in ("auto", "pairs"):
        pairs = results.pairs
        sizes = request.sizes or pairs["bytes"].unique()
        yield from pair_maps(pairs[pairs["bytes"].isin(sizes)])


def unscaled(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of benchmarks that a figure over ranks does not show already."""
    ranks = rows[rows["part"].isna()].groupby("benchmark")["ranks"].nunique()
    return rows[~rows["benchmark"].isin(ranks[ranks > 1].index) | rows["part"].notna()]


def of_sizes(results: Results, sizes: Sequence[int]) -> pd.DataFrame:
    """Rows of these message sizes and those that have none; all if none are named.

    Raises `UsageError` for a size that no row has.
    """
    rows = results.rows
    others = (results.overhead, results.pairs)
    there = set(rows["bytes"].dropna()).union(*(other["bytes"].dropna() for other in others))
    if missing := [size for size in sizes if size not in there]:
        raise UsageError(f"no row has a message size of {missing[0]} bytes")
    return rows[rows["bytes"].isin(sizes) | rows["bytes"].isna()] if sizes else rows


def draw(picture: Picture, binary: bool = False, page: Page | None = None) -> Figure:
    """The figure of a picture; ``binary`` for rates in MiB/s and GiB/s."""
    page = page or Page()
    with apply_style(page):
        match picture:
            case Chart():
                return figure_lines.draw(picture, binary, page)
            case HeatMap():
                return figure_heat.draw(picture, binary, page)
            case WinnerMap():
                return figure_winner.draw(picture, page)
            case BarChart():
                return figure_bars.draw(picture, binary, page)
            case Overhead():
                return figure_overhead.draw(picture, page)
            case PairMap():
                return figure_pairs.draw(picture, binary, page)
            case SamplePlot():
                return figure_samples.draw(picture, page)
