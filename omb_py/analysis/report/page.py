"""Results as one page that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import resources
from math import log2
from pathlib import Path
from typing import Any, TypeVar

import jinja2
import numpy as np
import pandas as pd
import vl_convert

from omb_py.analysis import anomalies, hosts, libraries, listing, references_check
from omb_py.analysis.across import verdicts_of
from omb_py.analysis.charts.figures import charts
from omb_py.analysis.charts.groups import Request
from omb_py.analysis.charts.hosts import host_charts
from omb_py.analysis.charts.spec import STYLE, Chart, Page
from omb_py.analysis.compare.summary import words_of
from omb_py.analysis.pairs.findings import verdicts
from omb_py.analysis.points import (
    SERIES,
    at_size,
    by,
    cells,
    distinctions,
    group_ids,
    label,
    points_of,
    several_hosts,
    sizes_of,
)
from omb_py.analysis.report.runs import origin, places
from omb_py.analysis.table import Source, results_of
from omb_py.analysis.values import ENDS, measured, spoilt, value_column
from omb_py.analysis.verdict import MARGIN, SLOWER, UNCLEAR
from omb_py.benchmarks import all_benchmarks
from omb_py.core import VERSION
from omb_py.core.errors import OmbError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, is_time, value_text
from omb_py.core.text.words import count, first_of, printable
from omb_py.results.columns import EXPERIMENT

ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`)]+")
"""An address in the drawing library: its authors' sites, which the page never opens. Names of XML
namespaces do not match, because no browser opens them."""

MAX_ROWS = 3000
"""Rows in all tables of a page; `omb-py show` prints the others."""

MOST_OPEN = 60
"""Rows of a table of libraries that is open on the first screen."""

POLICY = (
    "default-src 'none'; script-src {scripts} 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""The page's permissions in a browser: run the scripts with these hashes, compile the expressions
of our specifications (Vega), and send no request."""

Named = TypeVar("Named")

OTHERS = "other benchmarks"
"""The family of benchmarks that omb-py does not have."""

PAGES = (Page(), Page(width=8.5))
"""The pages of figures in a wide and in a narrow window, so that text is large enough to read."""

NAMES = ["run", "file", "benchmark", "suite", "mpi", "ranks"]
"""Columns that identify a row's run and machine."""


@dataclass(frozen=True)
class Section:
    """A part of the page: its heading, a sentence, and tables.

    Tables of a ``folded`` section are closed until a reader opens them, and so are those of
    ``families`` of benchmarks. ``cards`` are key numbers.
    """

    title: str
    words: str = ""
    tables: Sequence[Sheet] = ()
    folded: bool = False
    cards: Sequence[KeyNumber] = ()
    families: Mapping[str, Sequence[Sheet]] = field(default_factory=dict)


def report(
    source: Source,
    title: str | None = None,
    statistic: str = "auto",
    expected: str | Path | pd.DataFrame | None = None,
    system: str | None = None,
) -> str:
    """Return an HTML page about results, which needs no other file.

    ``source`` are files or folders, results of `omb_py.load` or `run`, or a table of their rows.
    ``statistic`` of a row is ``auto``, ``median`` or ``mean``; ``expected`` and ``system`` are as
    in `check`. Raises `OmbError` if no row has a number.
    """
    results = results_of(source)
    values = value_column(results.rows, statistic)
    slow = hosts.slow_hosts(values)
    if slow.slow:
        results = replace(results, rows=hosts.apart(results.rows, slow.slow))
        values = value_column(results.rows, statistic)
    numbers = bool(len(values) or len(results.overhead) or len(results.pairs))
    if not numbers and not spoilt(results.rows).any():
        raise OmbError("there is no row with a number: measure something first")
    if expected is not None:  # a wrong name is found before the figures are drawn
        checked = references_check.check(results.rows, expected, system, statistic=statistic)
    drawn = list(charts(results, Request(statistic=statistic)).values()) if numbers else []
    if several_hosts(results.rows):
        drawn[:0] = host_charts(results, results.rows, statistic)
    rows = pd.concat([table[NAMES] for table in (results.rows, results.overhead, results.pairs)])
    odd = anomalies.anomalies(values, results.runs, results.rows)
    trust = anomalies.trust(odd, values, results.runs, results.rows)
    lead = [trust]
    parts = []
    if beside := libraries.beside(results.rows, statistic):
        table, of_libraries = beside
        words = "".join(f"{text}. " for text in of_libraries)
        folded = len(table.rows) > MOST_OPEN
        parts.append(Section(table.title, words, [replace(table, title="")], folded))
    if len(values):
        words = "A longer bar is better: a lower latency, a higher bandwidth or rate."
        parts.append(Section("Key numbers", words, cards=key_numbers(values)))
    if expected is not None:
        said = checked.conclusion.sentence
        words = ". ".join([said, *checked.remarks])
        parts.append(Section("Expected values", f"{words}.", [references_check.sheet(checked)]))
        lead.insert(0, said)
    if several_hosts(results.rows):
        words = "".join(f"{text}. " for text in slow.remarks)
        parts.append(Section("Who is slow", words, list(hosts.sheets(slow))))
        lead[:0] = [hosts.summary(slow)]
    if links := verdicts(cells(results.pairs)):
        parts.append(Section("Slow pairs", "".join(f"{text}. " for text in links)))
        lead[:0] = [text for text in links if ": slow: " in text][:1]
    odd_rows = list(anomalies.sheets(odd, values))
    parts.append(Section("Findings", trust, odd_rows, folded=True))
    parts += [Section("Figures")] * bool(drawn)
    limit = max(10, MAX_ROWS // max(1, rows["benchmark"].nunique()))
    same = listing.shared(results)
    tables = in_families((s.benchmark, s) for s in listing.sheets(results, limit=limit, said=same))
    words = f"The same in all rows that have it: {', '.join(same.values())}." if same else ""
    parts.append(Section("Tables", words, families=tables))
    ran, shared = places(rows, results.runs)
    parts.append(Section("What ran where", "", [sheet for sheet in (ran, shared) if sheet.rows]))
    return rendered(
        parts,
        drawn,
        title=title or "MPI performance from Python",
        failed=sum(one.kind == anomalies.FAILED for one in odd),
        wrong=sum(one.severity == "error" and one.kind != anomalies.FAILED for one in odd),
        lead=". ".join(lead),
        origin=origin(rows, results.runs),
    )


def rendered(sections: Sequence[Section], drawn: Sequence[Chart], **values: Any) -> str:
    """Return the page of some sections and charts, with ``values`` of its template."""
    figures = [
        {"title": one.title, "words": one.words, "specs": [*map(one.specification, PAGES)]}
        for one in drawn
    ]
    tables = [sheet for section in sections for own in section.families.values() for sheet in own]
    first = {sheet.title: sheet.keys[0] for sheet in tables if sheet.keys}
    shown = {key for sheet in tables for key in sheet.keys}
    colors = (themed.values() for themed in STYLE["colors"].values())  # of a light page, and a dark
    scripts = (drawing_library(), template("report.js"))
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.finalize = lambda value: printable(value) if type(value) is str else value
    return environment.from_string(template("report.html.j2")).render(
        sections=sections,
        figures=in_families((one.benchmark, (n, one.title)) for n, one in enumerate(drawn)),
        figure_of=partial(figure_of, drawn),
        row_of=lambda key, benchmark: key if key in shown else first.get(benchmark),
        version=VERSION,
        policy=POLICY.format(scripts=" ".join(f"'sha256-{digest(one)}'" for one in scripts)),
        style=template("report.css"),
        scripts=scripts,
        data=packed({"figures": figures, "dark": dict(zip(*colors, strict=True))}),
        **values,
    )


def in_families(named: Iterable[tuple[str, Named]]) -> dict[str, list[Named]]:
    """Group what is named by a benchmark, or by none, by families in the order of `omb-py list`."""
    families = {"": "several benchmarks"} | {one.name: one.family for one in all_benchmarks()}
    found: dict[str, list[Named]] = {name: [] for name in (*families.values(), OTHERS)}
    for name, one in named:
        found[families.get(name, OTHERS)].append(one)
    return {name: members for name, members in found.items() if members}


def figure_of(drawn: Sequence[Chart], benchmark: str, line: str) -> int | None:
    """Return the place of a benchmark's chart, if there is one, of the part that ``line`` names."""
    own = [place for place, chart in enumerate(drawn) if chart.benchmark == benchmark]
    parts = {place: drawn[place].title.partition(": ")[2] for place in own}
    return max(own, key=lambda place: len(parts[place]) * (parts[place] in line), default=None)


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


MAX_LINES = 5
"""Lines of one number."""

SMALL, LARGE = 8, 4 << 20

KNOWN = (
    ("Latency", "latency", SMALL),
    ("Bandwidth", "bw", LARGE),
    ("Message rate", "mbw_mr", SMALL),
    ("Allreduce", "allreduce", SMALL),
)
"""Numbers that people know: their name, benchmark and message size in bytes."""


@dataclass(frozen=True)
class Line:
    """A line's value in words, how well it is known, the length of its bar, 100 of the best, and
    the verdict on it against the best."""

    name: str
    value: str
    spread: str
    length: float
    verdict: str


@dataclass(frozen=True)
class KeyNumber:
    """A number that people know a machine by: up to `MAX_LINES` lines, best first."""

    title: str
    lines: tuple[Line, ...]
    verdict: str


def key_numbers(values: pd.DataFrame) -> list[KeyNumber]:
    """Return the numbers of `KNOWN` that rows have; if they have none, those of other
    benchmarks.

    ``values`` are rows with their numbers (`value_column`).
    """
    there = values["benchmark"].value_counts().index
    known: list[tuple[str, str, int | None]] = [item for item in KNOWN if item[1] in there]
    known = known or [(str(name), str(name), None) for name in there[: len(KNOWN)]]
    return [best_lines(name, size, values[values["benchmark"] == of]) for name, of, size in known]


def best_lines(name: str, size: int | None, frame: pd.DataFrame) -> KeyNumber:
    """Return the best lines of one benchmark, at ``size`` or the nearest that they have.

    Verdicts are those of `omb-py show --across`: all sizes of two lines are compared.
    """
    statistic = str(frame["statistic"].iloc[0])
    if name == "Message rate" and frame["messages_per_s"].notna().all():
        frame = measured(frame, "rate", statistic)
    unit = str(frame["unit"].iloc[0])
    lower = is_time(unit)
    whole = frame[frame["unit"] == unit]
    frame = at_nearest_size(whole, size or (SMALL if lower else LARGE))
    of_hosts = "host" if several_hosts(frame) else "run"
    frame = points_of(frame, [*(column for column in SERIES if column in frame), "bytes"])
    # no others than points of one experiment can be ranked: most lines, then most ranks
    groups = [part for _, part in frame.groupby(group_ids(frame[name] for name in EXPERIMENT))]
    frame = max(groups, key=lambda part: (len(part), part["ranks"].fillna(0).max()))
    frame = frame.sort_values("value", ascending=lower, kind="stable")
    named = distinctions(frame) or ["binding", "buffer", "mpi"]
    title = f"{name}{at_size(frame['bytes'].iloc[0])}"
    if not pd.isna(frame["ranks"].iloc[0]):
        title += f", {count(int(frame['ranks'].iloc[0]), 'rank')}"
    best, at = frame["value"].iloc[0], sizes_of(frame).iloc[0]
    shown = {label(point[named], named): point for _, point in frame.head(MAX_LINES).iterrows()}
    first, *others = shown
    experiment = whole.merge(frame[[*EXPERIMENT]].drop_duplicates())
    rows = {label(key, named): part for key, part in by(experiment, named)}
    verdicts = {
        other: verdicts_of(rows[first], rows[other], statistic).get(at, UNCLEAR) for other in others
    }
    proved = set(verdicts.values()) != {UNCLEAR}  # else it is said once
    lines = []
    for line, point in shown.items():
        ratio = max(best / point["value"], point["value"] / best)
        verdict = words_of(verdicts.get(line, ""), MARGIN) if proved else ""
        words = f"{digits(ratio)}x {verdict}" if verdict == SLOWER else verdict
        text = value_text(point["value"], unit)
        lines.append(Line(line, text, spread(point, of_hosts), 100 / ratio, words))
    return KeyNumber(title, tuple(lines), best_line(first, verdicts))


def best_line(first: str, verdicts: Mapping[str, str]) -> str:
    """Return in words whether ``verdicts`` on the other lines prove that the first is best."""
    unproved = [name for name, verdict in verdicts.items() if verdict != SLOWER]
    if not verdicts or not unproved:
        return "proved better than the lines below" if verdicts else first
    if set(verdicts.values()) == {UNCLEAR}:
        return "the best line is unclear: repeat the launches"
    return f"not proved better than {first_of(unproved, 1)}"


def at_nearest_size(frame: pd.DataFrame, wanted: int) -> pd.DataFrame:
    """Return the rows of the size nearest to the wanted one, by their ratio; all if none has a
    size."""
    sizes = pd.to_numeric(frame["bytes"]).astype("float64")
    if sizes.isna().all():
        return frame
    distance = (np.log2(sizes.clip(lower=0.5)) - log2(wanted)).abs()
    return frame[sizes == sizes[distance.idxmin()]]


def spread(point: pd.Series, of: str = "run") -> str:
    """Return the spread or the interval of a point's value in words, over its runs or hosts."""
    several = point["runs"] > 1
    low, high = (point[name] for name in (ENDS[2:] if several else ENDS[:2]))
    if pd.isna(low):
        return "one run, no interval known"
    words = f"{count(point['runs'], of)}:" if several else "95 % interval"
    ends = value_text(low, point["unit"]), value_text(high, point["unit"])
    if ends[0] == ends[1]:
        return f"{words} within {max(0.1, 100 * (high / low - 1)):.1f} %"
    return f"{words} {ends[0]} to {ends[1]}"
