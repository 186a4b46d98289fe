"""Results as one page that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jinja2
import pandas as pd
import plotly.offline

from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.grouping import (
    Points,
    distinguishing_columns,
    overhead_values,
    points_of,
    values_of,
)
from omb_py.analysis.report.anomalies import SEVERITIES, Anomaly, anomalies
from omb_py.analysis.report.comparison import Comparison, comparison, join
from omb_py.analysis.report.data import in_script, page_data
from omb_py.analysis.report.highlights import MAX_CARDS, cards
from omb_py.analysis.report.runs import places
from omb_py.analysis.table import Results
from omb_py.analysis.values import label
from omb_py.core import VERSION
from omb_py.core.errors import OmbError

SCRIPTS = (
    "report_format.js",
    "report_curves.js",
    "report_tables.js",
    "report_plot.js",
    "report_pointer.js",
    "report_ratios.js",
    "report.js",
)
"""Our own scripts, which are one on the page."""

MAX_OF_A_KIND = 30
"""Anomalies of one kind that the page lists."""

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
"""What a browser lets the page do: run the scripts that these hashes name, and no request."""


@dataclass(frozen=True)
class Finding:
    """An anomaly for the page: how its line was measured, and the columns that name it."""

    text: str
    benchmark: str
    how: str
    where: dict[str, Any]


@dataclass(frozen=True)
class Findings:
    """Anomalies of one kind; ``left_out`` counts those beyond `MAX_OF_A_KIND`."""

    kind: str
    severity: str
    count: int
    listed: tuple[Finding, ...]
    left_out: int


def report(
    results: Results,
    base: Results | None = None,
    title: str | None = None,
    statistic: str = "auto",
    launch_spread: float | None = None,
) -> str:
    """The HTML page about results, compared with ``base`` if that is given.

    ``statistic`` is the number of a row, as in `value_column`; ``launch_spread`` what launches
    differ by, as in `compare`. Raises `OmbError` where no row has a number, `UsageError` where it
    is not clear what to compare with what.
    """
    table = (
        None
        if base is None
        else compare(base.rows, results.rows, statistic=statistic, launch_spread=launch_spread)
    )
    base = None  # its rows may be many, and nothing more is needed of them
    values = values_of(results.rows, statistic)
    added = overhead_values(results.overhead)
    if values.empty and added.empty:
        raise OmbError("there is no row with a number: measure something first")
    measured = None if values.empty else points_of(values)
    found = anomalies(values, results.runs, measured, results.rows)
    every = [part for part in (values, added) if not part.empty]
    points = (
        measured
        if measured and added.empty
        else points_of(pd.concat(every, ignore_index=True) if len(every) > 1 else every[0])
    )
    points = points if table is None else join(points, table)
    statistics = values.groupby("benchmark")["statistic"].first().to_dict()
    return render(
        results=results,
        title=title or "MPI performance from Python",
        values=values,
        data=page_data(points, statistics),
        compared=None if table is None else comparison(table),
        findings=findings(found, points),
    )


def findings(found: Iterable[Anomaly], points: Points) -> list[Findings]:
    """Anomalies by kind, the most severe first."""
    kinds: dict[tuple[str, str], list[Anomaly]] = {}
    for anomaly in found:
        kinds.setdefault((anomaly.severity, anomaly.kind), []).append(anomaly)
    names = {
        name: distinguishing_columns(lines) for name, lines in points.series.groupby("benchmark")
    }
    order = sorted(kinds.items(), key=lambda item: SEVERITIES.index(item[0][0]))
    return [
        Findings(
            kind=kind,
            severity=severity,
            count=len(members),
            listed=tuple(
                finding(anomaly, names.get(anomaly.where.get("benchmark"), []))
                for anomaly in members[:MAX_OF_A_KIND]
            ),
            left_out=max(0, len(members) - MAX_OF_A_KIND),
        )
        for (severity, kind), members in order
    ]


def finding(anomaly: Anomaly, names: Iterable[str]) -> Finding:
    """An anomaly for the page."""
    there = [name for name in names if name in anomaly.where]
    return Finding(
        text=anomaly.text,
        benchmark=str(anomaly.where.get("benchmark", "")),
        how=label([anomaly.where[name] for name in there], there),
        where=dict(anomaly.where),
    )


def render(
    *,
    results: Results,
    title: str,
    values: pd.DataFrame,
    data: Mapping[str, Any],
    compared: Comparison | None,
    findings: list[Findings],
) -> str:
    """The page as text."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["compact"] = lambda value: json.dumps(value, default=str)
    ours = f'"use strict";\n(() => {{\n{"".join(map(template, SCRIPTS))}}})();\n'
    drawing = in_element(plotly.offline.get_plotlyjs())
    hashes = " ".join(f"'sha256-{digest(script)}'" for script in (ours, drawing))
    return environment.from_string(template("report.html.j2")).render(
        title=title,
        version=VERSION,
        policy=POLICY.format(scripts=hashes),
        style=template("report.css"),
        script=ours,
        plotly=drawing,
        data=in_script(data),
        counts={
            "rows": len(results.rows) + len(results.overhead),
            "benchmarks": len(data["benchmarks"]),
            "runs": int(results.rows["run"].nunique() + results.overhead["run"].nunique()),
            "files": len({*results.rows["file"].unique(), *results.overhead["file"].unique()}),
        },
        failed=int((results.rows["validation"] == "Fail").sum()),
        cards=cards(values, MAX_CARDS - (compared is not None)) if len(values) else [],
        comparison=compared,
        findings=findings,
        places=places(pd.concat([results.rows[NAMES], results.overhead[NAMES]]), results.runs),
    )


NAMES = ["run", "file", "suite", "mpi", "ranks"]
"""Columns that say of a row where it ran."""


def template(name: str) -> str:
    """A file of the folder ``templates``."""
    return (resources.files("omb_py.analysis.report") / "templates" / name).read_text(
        encoding="utf-8"
    )


def in_element(script: str) -> str:
    """A script that can stand in a ``script`` element.

    Raises `OmbError` where it cannot, which says that it is not the library it should be.
    """
    if any(mark in script.lower() for mark in ("</script", "<!--")):
        raise OmbError("plotly's script cannot stand in a page: install another version of plotly")
    return script


def digest(script: str) -> str:
    """A script's SHA-256 as a Content Security Policy has it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
