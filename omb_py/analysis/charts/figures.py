"""Choice of the charts of results, and of their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from altair import VConcatChart

from omb_py.analysis.charts.bars import bar_charts, overheads
from omb_py.analysis.charts.groups import Request, plain, with_conditions
from omb_py.analysis.charts.hosts import host_charts
from omb_py.analysis.charts.lines import rank_charts, size_charts
from omb_py.analysis.charts.maps import pair_maps
from omb_py.analysis.charts.spec import FORMATS, Chart, Page
from omb_py.analysis.select import convert
from omb_py.analysis.table import Results, Source, results_of
from omb_py.analysis.values import QUANTITIES, measured
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.files import refuse_existing
from omb_py.core.text.files import write as write_file
from omb_py.core.text.words import first_of

NOTHING = {
    "auto": "there is nothing to draw in these files",
    "size": "no benchmark here has two message sizes: --kind parts draws single numbers",
    "ranks": "no benchmark here ran on two numbers of ranks: give files of several jobs, "
    "or say what one had with --assume ranks=N",
    "overhead": "there are no results of 'omb-py overhead' in these files",
    "parts": "every benchmark here has several message sizes: --kind size draws those",
    "pairs": "there are no results of 'omb-py pairs' in these files",
    "hosts": "there are fewer than three hosts to compare in these files",
}
KINDS = tuple(NOTHING)


def requested(sizes: Iterable[int | str] = (), **options: Any) -> Request:
    """Return the request of ``omb-py plot``'s options; raises `UsageError` for an invalid size."""
    numbers = tuple(int(convert("bytes", str(size).strip())) for size in sizes)
    return Request(sizes=numbers, **options)


def figures(
    source: Source,
    kind: str = "auto",
    *,
    sizes: Sequence[int | str] = (),
    lines: Sequence[str] | None = None,
    value: str = "auto",
    statistic: str = "auto",
    width: str | float = 17.5,
    theme: str = "light",
) -> dict[str, Any]:
    """Return Altair charts by the names of their files.

    ``source`` are files or folders, results of `load` or `run`, or a table of their rows. The other
    arguments are the options of ``omb-py plot``.
    Raises `UsageError` for invalid arguments and `OmbError` when there is nothing to draw.
    """
    request = requested(sizes, kind=kind, lines=lines, value=value, statistic=statistic)
    page = Page.parsed(width, theme)
    found = charts(results_of(source), request)
    drawn = {name: one.specification(page, captioned=True) for name, one in found.items()}
    return {name: VConcatChart.from_dict(one, validate=False) for name, one in drawn.items()}


def charts(results: Results, request: Request) -> dict[str, Chart]:
    """Return the charts to draw, by name. Raises `OmbError` with the reason if there are none."""
    if request.kind not in KINDS:
        raise UsageError(f"there is no kind {request.kind!r}: choose from {', '.join(KINDS)}")
    if found := by_name(every(results, request)):
        return found
    if request.kind not in ("auto", "overhead", "pairs", "hosts") or request.value != "auto":
        measured(results.rows, request.value, request.statistic)
    raise OmbError(NOTHING[request.kind])


def by_name(every: Iterable[Chart]) -> dict[str, Chart]:
    """Return charts by their names, with a number if several have the same."""
    found: dict[str, Chart] = {}
    for chart in every:
        again = (f"{chart.name}-{number}" for number in range(2, len(found) + 3))
        found[next(name for name in (chart.name, *again) if name not in found)] = chart
    return found


def every(results: Results, request: Request) -> Iterator[Chart]:
    """Yield all charts of the requested kinds.

    Each benchmark by itself decides between medians and means; rows without such numbers are left
    out.
    """
    rows, kind = of_sizes(results, request.sizes), request.kind
    try:
        rows = measured(rows, request.value, request.statistic)
    except UsageError:  # other kinds may have something to draw
        rows = rows.iloc[:0]
    rows = with_conditions(rows, results.runs)
    if kind in ("auto", "size"):
        yield from size_charts(rows, request)
    if kind in ("auto", "ranks"):
        yield from rank_charts(rows, request)
    if kind == "auto":  # what a figure over ranks shows needs no bars
        ranks = rows[rows["part"].isna()].groupby("benchmark")["ranks"].nunique()
        rows = rows[~rows["benchmark"].isin(ranks[ranks > 1].index) | rows["part"].notna()]
    if kind in ("auto", "parts"):
        yield from bar_charts(rows, request)
    if kind in ("auto", "overhead"):
        yield from overheads(with_conditions(results.overhead, results.runs), request)
    if kind in ("auto", "pairs"):
        yield from pair_maps(results.pairs, request)
    if kind == "hosts":
        yield from host_charts(results, of_sizes(results, request.sizes), request.statistic)


def of_sizes(results: Results, sizes: Sequence[int]) -> pd.DataFrame:
    """Return rows of these message sizes and those that have none; all if none are named.

    Raises `UsageError` for a size that no row has.
    """
    rows = results.rows
    others = (results.overhead, results.pairs)
    there = set(rows["bytes"].dropna()).union(*(other["bytes"].dropna() for other in others))
    if missing := [size for size in sizes if size not in there]:
        raise UsageError(f"no row has a message size of {missing[0]} bytes")
    return rows[rows["bytes"].isin(sizes) | rows["bytes"].isna()] if sizes else rows


def left_out(results: Results, request: Request, names: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for rows and benchmarks that no chart of these ``names`` shows."""
    rows = of_sizes(results, request.sizes)
    value = request.value
    column = QUANTITIES[value].column
    if column and (without := int(rows[column].isna().sum())):
        yield f"{without} of {len(rows)} rows have no {value} ({column}) and are left out"
    drawn = [f"{name}-" for name in names]
    if any(name.startswith(("benchmarks-", "hosts-")) for name in drawn):
        return
    benchmarks = [str(name) for name in rows["benchmark"].dropna().unique()]
    missing = [one for one in benchmarks if not any(n.startswith(f"{plain(one)}-") for n in drawn)]
    if missing:
        yield f"not drawn with these options: {first_of(missing)}"


def targets(
    names: Sequence[str], output: str | None, formats: Sequence[str]
) -> dict[Path, tuple[str, str]]:
    """Return the figure and the format of each file to write.

    ``output`` is a folder, or a file for exactly one figure; None is the current folder, for
    20 figures at most. ``formats`` may be empty: that of the file, else PNG. Raises `UsageError`
    for more figures, several figures or formats in one file, or a suffix that is no format.
    """
    if output is None and len(names) > 20:
        raise UsageError(
            f"{len(names)} figures are too many for this folder: name one with -o DIR, or choose "
            "figures with --where and --kind"
        )
    path = Path(output or ".")
    suffix = path.suffix.lower().removeprefix(".")
    if output is None or output.endswith("/") or path.is_dir() or not suffix:
        forms = formats or ["png"]
        return {path / f"{name}.{form}": (name, form) for name in names for form in forms}
    if suffix not in FORMATS:
        raise UsageError(f"{path}: a figure is {', '.join(FORMATS)}; a folder's name ends with /")
    if list(formats) not in ([], [suffix]):
        raise UsageError(f"{path} is one file, not {' and '.join(formats)}: name a folder")
    if len(names) > 1:
        shown = ", ".join(names[:4]) + ", ..." * (len(names) > 4)
        raise UsageError(
            f"{len(names)} figures ({shown}) do not go into one file: name a folder, "
            "or choose one with --where and --kind"
        )
    return {path: (names[0], suffix)}


def write(
    found: Mapping[str, Chart],
    output: str | None,
    formats: Sequence[str],
    page: Page | None = None,
    force: bool = False,
) -> Iterator[Path]:
    """Write charts to their `targets`; yields each file that is written.

    Folders are made. Raises `UsageError`, before anything is written, when a file is there and not
    ``force``, `OmbError` when one cannot be written.
    """
    files = targets(list(found), output, formats)
    refuse_existing(files, force)
    for path, (name, form) in files.items():
        write_file(path, found[name].image(form, page))
        yield path
