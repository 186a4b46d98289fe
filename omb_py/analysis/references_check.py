"""Results beside the references of their points: which values are worse than allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from omb_py.analysis.conclusion import Conclusion, conclude
from omb_py.analysis.failures import RESULTS_OF, Beyond, Failure
from omb_py.analysis.judging import check_part, rows_to_judge
from omb_py.analysis.points import (
    TELLING,
    Cells,
    caption_part,
    cells,
    common,
    distinctions,
    label,
    plain_values,
    points_of,
    several_hosts,
)
from omb_py.analysis.references import ABOUT, LIMITS, POINT, PUBLISHED, from_csv, load, made
from omb_py.analysis.table import Source, convert_types, results_of
from omb_py.analysis.values import BUS, HOST, same_ends, value_column, with_unit
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import is_time, size_text
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import IDENTITY, SOFTWARE

PASS, LOW, HIGH = JUDGED = "pass", "low", "high"
NO_LIMIT = "no limit"
"""The verdict of a value whose reference states no limits: only their ratio is shown."""

NOT_MEASURED = "not measured"
NOT_COMPARED = "not compared"
"""The verdict if it is unknown whether a value was measured as its published reference was."""

TOLERANCE = 0.15
"""By how much a value may be worse where a site's own reference states no tolerance: what CSCS
allows most of its own (eth-cscs/cscs-reframe-tests, checks/microbenchmarks/mpi/osu/osu_run.py)."""

HOST_BUFFERS = ("numpy", "bytearray")
"""Buffers that are always in host memory."""

MAX_SOURCES = 5
"""Sources of references that a table names."""

MAX_FAILING = 10
"""Hosts or files that fail that a sentence names."""

MAX_PASSING = 40
"""Values that pass, of several hosts or files, that a table for people has."""

COLUMNS = (
    *(RESULTS_OF, *ABOUT[:2], *POINT, "unit", "expected", "low", "high"),
    *("value", "statistic", "runs", "ratio", "verdict", "fails", *ABOUT[2:]),
)
"""Columns of what `check` finds."""


@dataclass(frozen=True)
class Checked:
    """References beside what was measured.

    ``lines`` has a row for each reference and point of it, with `COLUMNS`: ``low`` and ``high`` are
    the ends of what is allowed, in ``unit``, both missing if a reference states no limits;
    ``fails`` tells whether a value is worse than that. Points of several hosts, or of files that
    are kept apart, have a row each. ``tolerance`` is that of references without limits, None if
    they are not judged. ``remarks`` are sentences, ``wrong`` failures of data that was wrong.
    ``unclear`` names points that may have one of several references.
    """

    name: str
    lines: pd.DataFrame
    tolerance: float | None
    remarks: tuple[str, ...]
    wrong: tuple[Failure, ...]
    unclear: tuple[str, ...] = ()

    @property
    def measured(self) -> pd.DataFrame:
        """The lines whose value was compared with a reference."""
        return self.lines[~self.lines["verdict"].isin([NOT_MEASURED, NOT_COMPARED])]

    @property
    def failures(self) -> list[Failure]:
        """A sentence for each value that is worse than allowed, and its point."""
        failing = self.lines[self.lines["fails"]]
        points = cells(failing[[*POINT, RESULTS_OF]])
        return [
            Failure(
                f"{self.label(row)}: {with_unit(row['value'], row['unit'])}, allowed is "
                f"{allowed(row)}{conditions_of(row)}",
                (
                    Beyond(
                        point,
                        row["high" if is_time(row["unit"]) else "low"],
                        row["unit"],
                        "busbw_GBps" if row["unit"] == BUS else row["statistic"],
                    ),
                ),
            )
            for row, point in zip(failing.to_dict("records"), points, strict=True)
        ]

    @property
    def points(self) -> list[Cells]:
        """What the rows of each value that was compared with a reference have in common."""
        return cells(self.measured[[*POINT, RESULTS_OF]])

    def label(self, row: Mapping[Any, Any]) -> str:
        """Return the name of a line: its benchmark, what tells it from others, and its size."""
        names = [*telling(self.lines), "bytes"]
        return label([row[name] for name in names], names)

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion with all `failures`."""
        return self.conclude(self.failures)

    def conclude(self, failed: Sequence[Failure], lost: Sequence[str] = ()) -> Conclusion:
        """Conclude with the failures that stand, those of `failures` or what is left of them.

        ``lost`` names results that could not be read (`Results.lost`).
        """
        asked = self.lines[self.lines[["low", "high"]].notna().any(axis=1)]
        labels = {
            verdict: [self.label(row) for row in members.to_dict("records")]
            for verdict, members in asked.groupby("verdict")
        }
        return conclude(
            int(asked["verdict"].isin(JUDGED).sum()),
            [*failed, *self.wrong],
            [*labels.get(NOT_COMPARED, []), *self.unclear, *lost],
            labels.get(NOT_MEASURED, []),
            what="value",
            held=f"as expected from {self.name}",
        )


def check(
    source: Source,
    expected: str | Path | pd.DataFrame,
    system: str | None = None,
    tolerance: float | None = None,
    statistic: str = "auto",
) -> Checked:
    """Compare results with expected values, from a file or of a system that omb-py knows.

    ``source`` are files or folders, results of `omb_py.load` or `run`, or a table of their rows.
    ``expected`` and ``system`` are as in `load` here; ``expected`` may be a table of references,
    or one that `load` returned with its name.

    A value is `LOW` or `HIGH` outside of what its reference allows, else `PASS`. It fails if that
    is the worse side: above for a latency, below for a bandwidth or rate. A reference without a
    limit on the worse side allows ``tolerance`` there; if that is None, `TOLERANCE` for a site's
    own, while a published one is not judged (`NO_LIMIT`). ``statistic`` is that of `value_column`,
    chosen for each series; repeated runs count by their median. If rows are of several hosts, or of
    files that are kept apart, each of them is judged (`told_apart`). Rows whose data was wrong are
    not judged, and fail.
    """
    check_part("tolerance", tolerance, zero=True)
    results = results_of(source)
    rows, references = results.comparable, expected
    if not isinstance(references, pd.DataFrame):
        references = load(str(expected), system)
        system = system or Path(str(expected)).stem
    elif {*LIMITS} - {*references}:
        cells_of = partial(from_csv, references.to_csv(index=False))
        references = made(cells_of, "the table", False, system)
    published = PUBLISHED in references and bool(references[PUBLISHED].all())
    held = TOLERANCE if tolerance is None and not published else tolerance
    rows = rows if RESULTS_OF in rows else told_apart(rows)
    right, wrong = rows_to_judge(rows)
    values = value_column(right, statistic, (RESULTS_OF, *IDENTITY))
    columns = [*POINT, RESULTS_OF, "statistic", "unit"]
    places = values["placement"].map(same_ends, na_action="ignore").astype(object)
    on_host = places.isna() & values["buffer"].isin(HOST_BUFFERS)
    values["placement"] = places.mask(on_host, HOST)
    points = points_of(values.assign(bus=values["busbw_GBps"]), columns, ["bus"])
    known, there = cells(references), cells(points)
    pairs, unclear, remarks = matched(known, there)
    unsure, why = not_compared(known, there)
    remarks += why
    lines = [judged(known[place], there[at], held) for place, at in pairs]
    measured = plain_values(rows[RESULTS_OF])
    for place, of in not_measured(len(known), measured, there, pairs):
        unknown = any(at == place and of in (None, whose) for at, whose in unsure)
        line = judged(known[place], None, held, NOT_COMPARED if unknown else NOT_MEASURED)
        lines.append(line | ({} if of is None else {RESULTS_OF: of}))
    frame = pd.DataFrame(lines, columns=list(COLUMNS))
    frame = frame.assign(**{column: convert_types(frame[column], column) for column in POINT})
    remarks += without_limits(references, tolerance, held)
    if others := len(there) - len({at for _, at in pairs} | set(unclear)):
        remarks.append(f"{count(others, 'measured point')} without a reference")
    failing = frame.loc[frame["fails"], RESULTS_OF].dropna().unique()
    if len(failing):
        every = int(frame[RESULTS_OF].nunique())
        of = "hosts" if several_hosts(rows) else "files"
        remarks.append(
            f"{len(failing)} of {every} {of} failed: {first_of([*failing], MAX_FAILING)}"
        )
    names = [*telling(frame), "bytes"]
    named = [label([there[at].get(name) for name in names], names) for at in unclear]
    named += results.lost
    return Checked(system or "", frame, held, tuple(remarks), tuple(wrong), tuple(named))


def without_limits(
    references: pd.DataFrame, asked: float | None, held: float | None
) -> Iterator[str]:
    """Yield a sentence about references that state no limits, unless a tolerance was ``asked``."""
    number = int(references[["low", "high"]].isna().all(axis=1).sum())
    if number and asked is None:
        what = f"{count(number, 'reference')} without limits"
        if held is None:
            yield f"{what}: only the ratio is shown; --tolerance P% states a limit"
        else:
            yield f"{what}: judged with {held:.0%} on the worse side; --tolerance P% states another"


def not_measured(
    references: int,
    results: Sequence[str | None],
    points: Sequence[Cells],
    pairs: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, str | None]]:
    """Yield the place of each reference with what lacks a point of it: hosts, or a file, of all
    ``results``; None if no point is of the reference."""
    every = dict.fromkeys(results)
    having: dict[int, set[str | None]] = {}
    for place, at in pairs:
        having.setdefault(place, set()).add(points[at].get(RESULTS_OF))
    for place in range(references):
        if place not in having:
            yield place, None
        else:
            yield from ((place, of) for of in every if of not in having[place])


def told_apart(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the column `RESULTS_OF`, by which a check tells apart what it judges.

    It has the names of a row's hosts if the rows are of several sets of hosts, and the file of rows
    that are kept apart by file (`label_sources`); else it is missing.
    """
    hosts = rows["host_names"]
    several = hosts.nunique(dropna=False) > 1
    of = hosts.where(hosts.notna() & several, rows["source"])
    return rows.assign(**{RESULTS_OF: of.astype(object).where(of.notna(), None)})


def grouped(points: Sequence[Cells]) -> dict[tuple[str, Any], list[int]]:
    """Return the places of points by their benchmark and size."""
    groups: dict[tuple[str, Any], list[int]] = {}
    for at, point in enumerate(points):
        groups.setdefault((point["benchmark"], point.get("bytes")), []).append(at)
    return groups


def matched(
    references: Sequence[Cells], points: Sequence[Cells]
) -> tuple[list[tuple[int, int]], list[int], list[str]]:
    """Return places of references with the place of a point of each, unclear points, and remarks.

    A column that a reference states and a point does not have is taken as the reference has it,
    but never of a published one (`not_known`). A point is unclear if its `nearest` references
    differ in a column that it does not have.
    """
    groups = grouped(points)
    found: dict[int, list[int]] = {}
    for place, reference in enumerate(references):
        for at in groups.get((reference["benchmark"], reference.get("bytes")), ()):
            if agree(reference, points[at]) and not not_known(reference, points[at]):
                found.setdefault(at, []).append(place)
    unclear: dict[int, set[str]] = {}
    assumed: set[str] = set()
    pairs = []
    for at, places in found.items():
        lacking = [column for column in POINT[2:] if column not in points[at]]
        best = nearest(references, places, lacking)
        chosen = [references[place] for place in best]
        differ = {name for name in lacking if len({one.get(name) for one in chosen}) > 1}
        if differ:
            unclear[at] = differ
        else:
            assumed |= {name for name in lacking if name in chosen[0]}
            pairs += [(place, at) for place in best]
    remarks = [
        f"points without {column} were not judged, since their references differ in it: add "
        f"--assume {column}=VALUE"
        for column in sorted(set().union(*unclear.values()))
    ]
    if assumed:
        columns = ", ".join(sorted(assumed))
        remarks.append(f"results without {columns}: taken as the references have them")
    return sorted(pairs), list(unclear), remarks


def nearest(
    references: Sequence[Cells], places: Sequence[int], lacking: Sequence[str]
) -> list[int]:
    """Return the places of the references that count among several of a point.

    They state fewest of the columns that it is ``lacking``, and of such ones most others.
    """

    def rank(place: int) -> tuple[int, int]:
        stated = sum(column in references[place] for column in POINT)
        return sum(column in references[place] for column in lacking), -stated

    best = min(map(rank, places))
    return [place for place in places if rank(place) == best]


def not_known(reference: Cells, point: Cells) -> list[str]:
    """Return the columns that a published reference states and a point of it does not have."""
    published = reference.get(PUBLISHED, False)
    return [n for n in POINT[2:] if published and n in reference and n not in point]


def not_compared(
    references: Sequence[Cells], points: Sequence[Cells]
) -> tuple[set[tuple[int, str | None]], list[str]]:
    """Return what is not compared with published references, and remarks that say why.

    The first are places of references, each with the hosts, or the file, of points that lack a
    column that the reference states.
    """
    groups = grouped(points)
    found: set[tuple[int, str | None]] = set()
    lacking: set[str] = set()
    other: set[tuple[str, Any]] = set()
    for place, reference in enumerate(references):
        if not reference.get(PUBLISHED):
            continue
        alike = groups.get((reference["benchmark"], reference.get("bytes")), [])
        for at in alike:
            if agree(reference, points[at]) and (columns := not_known(reference, points[at])):
                found.add((place, points[at].get(RESULTS_OF)))
                lacking.update(columns)
        differ = (differences(reference, points[at]) for at in alike)
        other |= min(differ, key=len, default=set())
    remarks = []
    if lacking:
        columns = sorted(lacking)
        options = " ".join(f"--assume {name}=VALUE" for name in columns)
        remarks.append(
            f"points without {', '.join(columns)} were not compared, since references state "
            f"{'it' if len(columns) == 1 else 'them'}: add {options}"
        )
    remarks += [
        f"references of {caption_part(name, value)} were not compared: results have other {name}"
        for name, value in sorted(other)
    ]
    return found, remarks


def differences(reference: Cells, point: Cells) -> set[tuple[str, Any]]:
    """Return the columns in which a point differs from a reference, with the reference's values."""
    names = (n for n in POINT[2:] if n in reference and n in point)
    return {(n, reference[n]) for n in names if point[n] != reference[n]}


def agree(reference: Cells, point: Cells) -> bool:
    """Return whether a reference may be of a point of its benchmark and size.

    One without a ``part`` is of the whole.
    """
    if reference.get("part") != point.get("part"):
        return False
    if reference["unit"] == BUS and "bus" not in point:
        return False
    if reference["unit"] not in (BUS, point["unit"]):
        return False
    return not differences(reference, point)


def judged(
    reference: Cells, point: Cells | None, tolerance: float | None, absent: str = NOT_MEASURED
) -> Cells:
    """Return a line of `check`: a reference, what was measured, and the verdict.

    Without a point the verdict is ``absent``.
    """
    less_is_better, expected = is_time(reference["unit"]), reference["value"]
    below, above = reference.get("low"), reference.get("high")
    if tolerance is not None and less_is_better:
        above = tolerance if above is None else above
    elif tolerance is not None:
        below = -tolerance if below is None else below
    line = {name: cell for name, cell in reference.items() if name not in LIMITS}
    line["expected"] = expected
    line["low"] = None if below is None else expected * (1 + below)
    line["high"] = None if above is None else expected * (1 + above)
    if point is None:
        return line | {"runs": 0, "verdict": absent, "fails": False}
    value = point["bus"] if reference["unit"] == BUS else point["value"]
    too_low = line["low"] is not None and value < line["low"]
    too_high = line["high"] is not None and value > line["high"]
    line |= {name: point[name] for name in (*POINT, RESULTS_OF) if name in point}
    line |= {name: point[name] for name in ("statistic", "runs")}
    line |= {"value": value, "ratio": value / expected}
    limited = line["low"] is not None or line["high"] is not None
    line["verdict"] = LOW if too_low else HIGH if too_high else PASS if limited else NO_LIMIT
    return line | {"fails": too_high if less_is_better else too_low}


def sheet(checked: Checked) -> Sheet:
    """Return the table of the checked points, for people."""
    lines = checked.lines
    there = checked.measured.drop(columns="source")
    names = telling(lines)
    passing = lines["verdict"] == PASS
    shown = lines
    if lines[RESULTS_OF].nunique() > 1 and passing.sum() > MAX_PASSING:
        shown = lines[~passing]
    hidden = len(lines) - len(shown)
    rows = [
        (
            label([row[name] for name in names], names),
            "-" if pd.isna(row["bytes"]) else size_text(row["bytes"]),
            with_unit(row["expected"], row["unit"]),
            allowed(row),
            "-" if pd.isna(row["value"]) else with_unit(row["value"], row["unit"]),
            "-" if pd.isna(row["ratio"]) else f"{row['ratio']:.3f}",
            str(row["verdict"]),
        )
        for row in shown.to_dict("records")
    ]
    said = list(sources(lines))
    return Sheet(
        f"Against {checked.name}",
        ("", "size", "expected", "allowed", "measured", "ratio", "verdict"),
        tuple(rows),
        (
            *said[:MAX_SOURCES],
            *[f"and {count(hidden, 'value')} that pass: -o FILE.csv has them"] * (hidden > 0),
        ),
        above=", ".join(common(there, {*names, *SOFTWARE})) if len(there) else "",
    )


def sources(lines: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each source of references and its conditions, with its benchmarks if
    there are several."""
    abouts = lines.groupby(list(ABOUT[1:]), dropna=False, sort=False)
    for about, members in abouts:
        words = ", ".join(str(one) for one in about if not pd.isna(one))
        of = f" of {', '.join(members['benchmark'].unique())}" if abouts.ngroups > 1 else ""
        if words:
            yield f"Reference{of}: {words}"


def telling(lines: pd.DataFrame) -> list[str]:
    """Return the benchmark and the columns in which lines differ, but for their size."""
    differ = [name for name in distinctions(lines, POINT) if lines[name].nunique() > 1]
    named = (name for name in TELLING if name in differ)
    of = [RESULTS_OF] * (lines[RESULTS_OF].nunique() > 0)
    return list(dict.fromkeys([*of, "benchmark", *named]))


def allowed(row: Mapping[Any, Any]) -> str:
    """Return the values that a reference allows, in words."""
    low, high = row["low"], row["high"]
    if pd.isna(low) and pd.isna(high):
        return "-"
    if pd.isna(low):
        return f"up to {with_unit(high, row['unit'])}"
    if pd.isna(high):
        return f"from {with_unit(low, row['unit'])}"
    return f"{with_unit(low, row['unit'])} to {with_unit(high, row['unit'])}"


def conditions_of(row: Mapping[Any, Any]) -> str:
    """Return the conditions of a reference in brackets."""
    return "" if pd.isna(row["conditions"]) else f" ({row['conditions']})"
