"""Results as one page that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
import pandas as pd
import vl_convert

from omb_py.analysis import listing
from omb_py.analysis.bounds import Bounds, beside_bounds
from omb_py.analysis.charts.figures import Request, charts
from omb_py.analysis.charts.groups import COLUMNS, Choice
from omb_py.analysis.charts.spec import STYLE, Chart
from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.points import distinctions, label
from omb_py.analysis.report.anomalies import Anomaly, anomalies
from omb_py.analysis.report.comparison import comparison
from omb_py.analysis.report.key_numbers import key_numbers
from omb_py.analysis.report.runs import origin, places
from omb_py.analysis.sources import short_names
from omb_py.analysis.table import Results
from omb_py.analysis.values import value_column
from omb_py.core import VERSION
from omb_py.core.errors import OmbError, UsageError

if TYPE_CHECKING:
    from omb_py.analysis.samples import Series

ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`)]+")
"""An address in the library that draws: of its authors' sites, which the page never opens.
Names of XML namespaces, which no browser opens, are none."""

MAX_OF_A_KIND = 30
"""Anomalies of one kind that the page lists."""

MAX_ROWS = 3000
"""Rows in all tables of a page; `omb-py show` prints the others."""

POLICY = (
    "default-src 'none'; script-src {scripts} 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""What a browser lets the page do: run the scripts that these hashes name, of which Vega compiles
the expressions of our specifications, and no request."""

NAMES = ["run", "file", "suite", "mpi", "ranks"]
"""Columns that say of a row where it ran."""


def report(
    results: Results,
    base: Results | None = None,
    title: str | None = None,
    statistic: str = "auto",
    launch_spread: float | None = None,
    lines: Sequence[str] = (),
    bounds: Bounds | None = None,
    samples: Sequence[Series] = (),
) -> str:
    """The HTML page about results, compared with ``base`` if that is given.

    ``statistic`` is the number of a row, as in `value_column`; ``launch_spread`` what launches
    differ by, as in `compare`; ``lines`` the columns that distinguish the lines of a figure at
    first, as in ``binding`` or ``file``; ``bounds`` are what the host can do, ``samples`` single
    iterations to show.

    Raises `OmbError` where no row has a number, `UsageError` where it is not clear what to compare
    with what, or for a column that lines do not have.
    """
    results, lines = by_file(results, lines)
    compared = None
    if base is not None:
        options: Any = {"statistic": statistic, "launch_spread": launch_spread}
        compared = compare(base.rows, results.rows, **options)
    base = None  # its rows may be many, and nothing more is needed of them
    values = value_column(results.rows, statistic)
    if values.empty and results.overhead.empty and results.pairs.empty:
        raise OmbError("there is no row with a number: measure something first")
    request = Request(choice=Choice(lines or None, statistic=statistic), bounds=bounds)
    drawn = [*charts(results, request).values(), *charts_of_samples(samples)]
    found = findings(anomalies(values, results.runs, results.rows), values)
    tables = (results.rows, results.overhead, results.pairs)
    rows = pd.concat([table[NAMES] for table in tables])
    benchmarks = sum(table["benchmark"].nunique() for table in tables)
    ran, shared = places(rows, results.runs)
    figures = [
        {"title": chart.title, "words": chart.words, "spec": chart.specification()}
        for chart in drawn
    ]
    colors = (themed.values() for themed in STYLE["colors"].values())  # of a light page, and a dark
    scripts = (drawing_library(), template("report.js"))
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(template("report.html.j2")).render(
        title=title or "MPI performance from Python",
        version=VERSION,
        policy=POLICY.format(scripts=" ".join(f"'sha256-{digest(one)}'" for one in scripts)),
        style=template("report.css"),
        scripts=scripts,
        data=packed({"figures": figures, "dark": dict(zip(*colors, strict=True))}),
        figures=[chart.title for chart in drawn],
        counts={
            "rows": len(rows),
            "benchmarks": benchmarks,
            "runs": rows["run"].nunique(),
            "files": rows["file"].nunique(),
        },
        failed=int((results.rows["validation"] == "Fail").sum()),
        origin=origin(rows, results.runs),
        key_numbers=key_numbers(values, lines, compared),
        comparison=None if compared is None else comparison(compared),
        bounded=None if bounds is None else beside_bounds(results.rows, bounds),
        findings=found,
        trust=trust(found),
        tables=list(listing.sheets(results, limit=max(10, MAX_ROWS // max(1, benchmarks)))),
        places=ran,
        shared=shared,
    )


def charts_of_samples(series: Sequence[Series]) -> Iterator[Chart]:
    """Single iterations, as points and as distribution."""
    from omb_py.analysis.charts.samples import sample_charts

    for kind in ("samples", "ecdf") if series else ():
        yield from sample_charts(series, kind).values()


def by_file(results: Results, lines: Sequence[str]) -> tuple[Results, tuple[str, ...]]:
    """Results whose every row has a ``source`` if ``file`` is one of the lines; their columns."""
    if "file" in lines:
        rows = results.rows
        names = rows["file"].map(short_names(rows["file"].dropna().unique()))
        results = replace(results, rows=rows.assign(source=rows["source"].fillna(names)))
    columns = tuple("source" if name == "file" else name for name in lines)
    for name in columns:
        if name not in COLUMNS:
            known = ", ".join("file" if title == "source" else title for title in COLUMNS)
            raise UsageError(f"--lines {name}: there is no such column: choose from {known}")
    return results, columns


def findings(found: Iterable[Anomaly], values: pd.DataFrame) -> list[dict[str, Any]]:
    """Anomalies by kind, the most severe first; ``values`` are all rows with numbers.

    Of each kind its ``severity``, ``count``, the first `MAX_OF_A_KIND` with the words for how
    their line was measured as ``listed``, and how many are ``left_out``.
    """
    kinds: dict[tuple[str, str], list[Anomaly]] = {}
    for anomaly in found:
        kinds.setdefault((anomaly.severity, anomaly.kind), []).append(anomaly)
    telling = {name: distinctions(rows) for name, rows in values.groupby("benchmark")}

    def how(where: Mapping[str, object]) -> str:
        names = [name for name in telling.get(where.get("benchmark"), []) if name in where]
        return label([where[name] for name in names], names)

    return [
        {"severity": severity, "kind": kind, "count": len(members)}
        | {"listed": [(one, how(one.where)) for one in members[:MAX_OF_A_KIND]]}
        | {"left_out": max(0, len(members) - MAX_OF_A_KIND)}
        for (severity, kind), members in kinds.items()
    ]


def packed(data: object) -> str:
    """JSON as base64 of gzip: figures repeat each other, and no text of a file is markup in it."""
    text = json.dumps(data, separators=(",", ":"), default=str)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def trust(findings: Sequence[Mapping[str, Any]]) -> str:
    """What findings mean for all numbers, in a sentence."""
    for severity, meaning in (("error", "are wrong"), ("warning", "may mislead")):
        named = [
            f"{one['kind']} ({one['count']})" for one in findings if one["severity"] == severity
        ]
        if named:
            return f"Some numbers {meaning}: {', '.join(named)}."
    return "No finding speaks against the numbers."


def template(name: str) -> str:
    """A file of the folder ``templates``."""
    return (resources.files("omb_py.analysis.report") / "templates" / name).read_text("utf-8")


@cache
def drawing_library() -> str:
    """Vega as vl-convert has it, after its licence and without addresses of other places."""
    library = vl_convert.javascript_bundle(None)  # type: ignore[arg-type]
    return ADDRESS.sub("", f"/*\n{template('vega.txt')}*/\n{library}")


def digest(script: str) -> str:
    """A script's SHA-256 as a Content Security Policy has it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
