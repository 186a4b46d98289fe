"""Results as one page that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import jinja2
import numpy as np
import pandas as pd
import vl_convert

from omb_py.analysis import anomalies, listing, references
from omb_py.analysis.charts.figures import charts
from omb_py.analysis.charts.groups import Request
from omb_py.analysis.charts.spec import STYLE, Chart
from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.compare.summary import line, remarks, sentences, titles
from omb_py.analysis.report.key_numbers import KeyNumber, key_numbers
from omb_py.analysis.report.runs import origin, places
from omb_py.analysis.table import Results
from omb_py.analysis.values import value_column
from omb_py.analysis.verdict import FASTER, SLOWER
from omb_py.core import VERSION
from omb_py.core.errors import OmbError
from omb_py.core.text.tables import Sheet

ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`)]+")
"""An address in the drawing library: its authors' sites, which the page never opens. Names of XML
namespaces do not match, because no browser opens them."""

MAX_ROWS = 3000
"""Rows in all tables of a page; `omb-py show` prints the others."""

MAX_CHANGES = 100
"""Points that changed which the page lists; `omb-py compare` prints all."""

POLICY = (
    "default-src 'none'; script-src {scripts} 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""The page's permissions in a browser: run the scripts with these hashes, compile the expressions
of our specifications (Vega), and send no request."""

NAMES = ["run", "file", "benchmark", "suite", "mpi", "ranks"]
"""Columns that identify a row's run and machine."""


@dataclass(frozen=True)
class Section:
    """A part of the page: its heading, a sentence, and tables.

    Tables of a ``folded`` section are closed until a reader opens them; ``cards`` are key numbers.
    """

    title: str
    words: str = ""
    tables: Sequence[Sheet] = ()
    folded: bool = False
    cards: Sequence[KeyNumber] = ()


def report(
    results: Results,
    base: Results | None = None,
    title: str | None = None,
    statistic: str = "auto",
    launch_spread: float | None = None,
    expected: tuple[str, pd.DataFrame] | None = None,
) -> str:
    """Return the HTML page about results, compared with ``base`` if that is given.

    ``statistic`` is the number of a row, as in `value_column`; ``launch_spread`` is the spread of
    launches, as in `compare`; ``expected`` is a system's name and its references
    (`references.load`).

    Raises `OmbError` if no row has a number, `UsageError` if the pairs to compare are ambiguous.
    """
    compared = None
    if base is not None:
        options: Any = {"statistic": statistic, "launch_spread": launch_spread}
        called = ("the base", "Compared with the base")
        compared = compare(base.rows, results.rows, names=called, **options)
    base = None  # its rows may be many, and nothing more is needed of them
    values = value_column(results.rows, statistic)
    if values.empty and results.overhead.empty and results.pairs.empty:
        raise OmbError("there is no row with a number: measure something first")
    request = Request(statistic=statistic)
    drawn = list(charts(results, request).values())
    rows = pd.concat([table[NAMES] for table in (results.rows, results.overhead, results.pairs)])
    odd = anomalies.anomalies(values, results.runs, results.rows)
    verdicts = [] if compared is None else list(sentences(compared).values())
    checked = None
    if expected is not None:
        name, known = expected
        checked = references.check(results.rows, known, name, statistic=statistic)
    parts = []
    if len(values):
        words = "A longer bar is better: a lower latency, a higher bandwidth or rate."
        parts.append(Section("Key numbers", words, cards=key_numbers(values)))
    if compared is not None:
        words = ". ".join([*verdicts, *remarks(compared)])
        changed = changes(compared)
        parts.append(Section("Comparison", f"{words}.", [changed] if changed.rows else []))
    if checked is not None:
        words = ". ".join([checked.summary, *checked.remarks])
        parts.append(Section("Expected values", f"{words}.", [references.sheet(checked)]))
        verdicts.append(checked.summary)
    trust = anomalies.trust(odd, values, results.runs, results.rows)
    found = list(anomalies.sheets(odd, values))
    parts.append(Section("Findings", trust, found, folded=True))
    parts += [Section("Figures")] * bool(drawn)
    limit = max(10, MAX_ROWS // max(1, rows["benchmark"].nunique()))
    tables = list(listing.sheets(results, limit=limit))
    parts.append(Section("Tables", "", tables, folded=True))
    ran, shared = places(rows, results.runs)
    parts.append(Section("What ran where", "", [sheet for sheet in (ran, shared) if sheet.rows]))
    return rendered(
        parts,
        drawn,
        title=title or "MPI performance from Python",
        failed=sum(one.severity == "error" for one in odd),
        lead=". ".join([*verdicts, trust]),
        origin=origin(rows, results.runs),
    )


def rendered(sections: Sequence[Section], drawn: Sequence[Chart], **values: Any) -> str:
    """Return the page of some sections and charts, with ``values`` of its template."""
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
        sections=sections,
        figures=[chart.title for chart in drawn],
        version=VERSION,
        policy=POLICY.format(scripts=" ".join(f"'sha256-{digest(one)}'" for one in scripts)),
        style=template("report.css"),
        scripts=scripts,
        data=packed({"figures": figures, "dark": dict(zip(*colors, strict=True))}),
        **values,
    )


def changes(compared: pd.DataFrame) -> Sheet:
    """Return the points that became slower or faster, the largest change first, as `compare` has
    them."""
    rows = compared[compared["verdict"].isin([SLOWER, FASTER])]
    rows = rows.sort_values("slowdown", key=lambda factor: -np.log(factor).abs(), kind="stable")
    names = titles(compared)
    listed = [line(row, names[row["pair"]]) for row in rows.to_dict("records")[:MAX_CHANGES]]
    return Sheet(
        "Points that changed",
        ("point", "size", "base", "now", "ratio", "95 % interval", "verdict"),
        tuple(listed),
        (f"and {len(rows) - MAX_CHANGES:,} more",) * (len(rows) > MAX_CHANGES),
    )


def packed(data: object) -> str:
    """Return JSON as base64 of gzip: figures repeat each other, and no text is markup in it."""
    text = json.dumps(data, separators=(",", ":"), default=str)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def template(name: str) -> str:
    """Return a file of the folder ``templates``."""
    return (resources.files("omb_py.analysis.report") / "templates" / name).read_text("utf-8")


@cache
def drawing_library() -> str:
    """Return Vega as vl-convert has it, after its licence and without other addresses."""
    library = vl_convert.javascript_bundle(None)  # type: ignore[arg-type]
    return ADDRESS.sub("", f"/*\n{template('vega.txt')}*/\n{library}")


def digest(script: str) -> str:
    """Return a script's SHA-256 as a Content Security Policy has it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
