"""One table of a sweep's experiments that have a title: what was asked, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from omb_py.analysis.points import by, distinctions, label
from omb_py.analysis.table import load, tables_of
from omb_py.analysis.values import FAULTS, faults, spoilt, with_values
from omb_py.core.text.tables import Sheet, content_of, plain
from omb_py.core.text.units import size_text, value_text
from omb_py.core.text.words import count
from omb_py.results.application import ApplicationRow
from omb_py.sweeps.files import write_atomically
from omb_py.sweeps.folder import NO_SIZE, Folder
from omb_py.sweeps.points import SweepPlan, SweepPoint, possible
from omb_py.sweeps.sweep_job import SweepJob

NAME = "table.csv"
"""The table's file in the folder of the sweep."""

TOTAL = "total"
"""The part of a benchmark's rows that is the sum of its other parts."""

UNLIKE = ("part", "group", "congestor")
"""Columns in which the rows of one launch differ at one size."""

MEASURED = ("value", "unit", "size", *FAULTS, *UNLIKE)
"""Columns of the measured rows."""

MEANS = "Values are means, as native OMB prints them; of several launches the median."


def write(job: SweepJob) -> str:
    """Write the table of a sweep into its folder as CSV; return it as text.

    Empty where no experiment with a title has a point. Raises `OmbError` when the file cannot be
    written.
    """
    experiments = [*planned(job)]
    rows = pd.DataFrame(rows_of(job, experiments))
    if not len(rows):
        return ""
    rows = rows.astype({"bytes": "Int64"})
    left_out = dict.fromkeys(
        f"{title}: {one.describe()}" for title, alone in experiments for one in alone.left_out
    )
    write_atomically(job.root / NAME, str(content_of(rows.drop(columns="apart"), "csv", {})))
    reasons = {
        why: f"({n})" for n, why in enumerate(dict.fromkeys(filter(None, rows["missing"])), 1)
    }
    cells = [cells_of(row, reasons) for row in rows.to_dict("records")]
    names = [name for name in cells[0] if name != "with" or rows["apart"].any()]
    made = tuple(tuple(row[name] for name in names) for row in cells)
    remarks = (MEANS, *(f"{mark} {why}" for why, mark in reasons.items()), *left_out)
    title = f"{job.sweep.name} on {job.machine.name}"
    return plain([Sheet(title, tuple(names), made, remarks, names.index("size"))], ())


def cells_of(row: dict[Any, Any], reasons: Mapping[str, str]) -> dict[str, str]:
    """Return a row's cells by the heads of their columns; ``reasons`` has a mark for
    each reason why a value is missing."""
    value = "-" if pd.isna(row["value"]) else value_text(row["value"], row["unit"])
    return {
        "": row["title"],
        "benchmark": ": ".join(filter(None, (row["benchmark"], row["component"]))),
        "buffer, binding": f"{row['buffer']}, {row['binding']}",
        "with": row["apart"],
        "size": "-" if pd.isna(row["bytes"]) else size_text(row["bytes"]),
        "nodes": str(row["nodes"]),
        "ranks": str(row["ranks"]) if not row["part"] else f"{row['ranks']} ({row['part']})",
        "measured": " ".join(filter(None, (value, reasons.get(row["missing"])))),
    }


def planned(job: SweepJob) -> Iterator[tuple[str, SweepPlan]]:
    """Yield the title of each experiment that has one, and its points of the first launch."""
    for experiment in job.sweep.experiments:
        if experiment.title:
            alone = job.sweep.model_copy(update={"experiments": (experiment,), "launches": 1})
            yield experiment.title, possible(alone, job.machine)


def rows_of(
    job: SweepJob, experiments: Sequence[tuple[str, SweepPlan]]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each message size of each point: what was asked, and what was measured.

    Points are those that were planned, measured or not, unlike `points_of` rows. ``missing`` is the
    reason where a value, or that of a launch, is missing. ``apart`` are the
    ``options`` that distinguish a point from others of its title and benchmark.
    """
    folder = Folder(job.root)
    alike: dict[tuple[str, str], list[SweepPoint]] = {}
    for title, alone in experiments:
        for point in alone.points:
            alike.setdefault((title, point.benchmark), []).append(point)
    for title, alone in experiments:
        for point in alone.points:
            launches = [
                replace(point, launch=number) for number in range(1, job.sweep.launches + 1)
            ]
            values = measured(folder, launches)
            last = folder.state(point).last
            why = (last.said or last.outcome) if last else "not measured yet"
            others = [set(options_of(one)) for one in alike[title, point.benchmark]]
            apart = [word for word in options_of(point) if not all(word in one for one in others)]
            for size in point.sizes or (NO_SIZE,):
                for component, own in components(values, size):
                    right, wrong = own[~spoilt(own)], faults(own).dropna()
                    if len(wrong):
                        why = f"{wrong.iloc[0]} in {count(len(wrong), 'launch')}"
                    yield {
                        "title": title,
                        "benchmark": point.benchmark,
                        "component": component,
                        "buffer": point.buffer,
                        "binding": point.binding,
                        "options": " ".join(options_of(point)),
                        "apart": ", ".join(apart),
                        "bytes": size if point.sizes else None,
                        "nodes": point.nodes,
                        "ranks": point.ranks,
                        "part": point.part,
                        "value": right["value"].median() if len(right) else None,
                        "unit": right["unit"].iloc[0] if len(right) else "",
                        "runs": len(right),
                        "missing": "" if 0 < len(right) == len(own) else why,
                    }


def options_of(point: SweepPoint) -> list[str]:
    """Return the words of a point that other columns of the table lack, each different for another
    value."""
    words = [f"algorithm={point.library_algorithm}"] if point.library_algorithm else []
    words += [f"{one.name}={str(one.value).lower()}" for one in point.settings]
    words += [f"{name}={value}" for name, value in point.environment]
    return [*words, f"{point.ranks_per_node} ranks a node"] if point.part else words


def components(values: pd.DataFrame, size: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and the rows of each number that a benchmark has at a size.

    If there is a row of the whole, without a part, or a total of the parts, other parts are left
    out. Parts without a total, groups of ranks and congestors are a number each; a single number
    has no name.
    """
    here = values[values["size"] == size]
    for whole in (here["part"].isna(), here["part"] == TOTAL):
        if whole.any():
            here = here[whole]
            break
    names = distinctions(here, UNLIKE)
    for key, own in by(here, names):
        yield label(key, names), own


def measured(folder: Folder, launches: Sequence[SweepPoint]) -> pd.DataFrame:
    """Return the rows of a point's launches with a number, of an application its time: `MEASURED`.

    ``size`` is in bytes.
    """
    files = [path for path in map(folder.csv, launches) if path.exists()]
    if not files:
        return pd.DataFrame(columns=MEASURED)
    if launches[0].is_application:
        rows = tables_of(files, {})[0][ApplicationRow]
        own = {"value": 1e6 * rows["time_s"], "unit": "us", "validation": rows["check"]}
        whole = rows["part"].isna() & (rows["time_s"] > 0)
        return rows.assign(size=NO_SIZE, **own).reindex(columns=MEASURED)[whole]
    rows = with_values(load(files).rows, "mean")  # wrong data has no value, and is counted
    rows = rows[(rows["value"] > 0) | spoilt(rows)]
    return rows.assign(size=rows["bytes"].fillna(NO_SIZE))[[*MEASURED]]
