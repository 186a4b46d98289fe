"""One table of a sweep's experiments that have a title: what was asked, and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from omb_py.analysis.table import load
from omb_py.analysis.values import value_column
from omb_py.core.text.tables import Sheet, content_of, plain
from omb_py.core.text.units import size_text, value_text
from omb_py.sweeps.batch import BatchJob
from omb_py.sweeps.files import write_atomically
from omb_py.sweeps.folder import NO_SIZE, Folder
from omb_py.sweeps.points import SweepPlan, SweepPoint, possible

NAME = "table.csv"
"""The table's file in the folder of the sweep."""

MEANS = "Values are means, as native OMB prints them; of several launches the median."


def write(job: BatchJob) -> str:
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
    write_atomically(job.root / NAME, str(content_of(rows, "csv", {})))
    cells = [
        (
            row["title"],
            row["benchmark"],
            f"{row['buffer']}, {row['binding']}",
            "-" if pd.isna(row["bytes"]) else size_text(row["bytes"]),
            str(row["nodes"]),
            str(row["ranks"]) if not row["part"] else f"{row['ranks']} ({row['part']})",
            row["missing"] if pd.isna(row["value"]) else value_text(row["value"], row["unit"]),
        )
        for row in rows.to_dict("records")
    ]
    columns = ("", "benchmark", "buffer, binding", "size", "nodes", "ranks", "measured")
    title = f"{job.sweep.name} on {job.machine.name}"
    return plain([Sheet(title, columns, tuple(cells), (MEANS, *left_out), left=3)], ())


def planned(job: BatchJob) -> Iterator[tuple[str, SweepPlan]]:
    """Yield the title of each experiment that has one, and its points of the first launch."""
    for experiment in job.sweep.experiments:
        if experiment.title:
            alone = job.sweep.model_copy(update={"experiments": (experiment,), "launches": 1})
            yield experiment.title, possible(alone, job.machine)


def rows_of(
    job: BatchJob, experiments: Iterable[tuple[str, SweepPlan]]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each message size of each point: what was asked, and what was measured.

    ``missing`` is the reason where there is no value.
    """
    folder = Folder(job.root)
    for title, alone in experiments:
        for point in alone.points:
            launches = [
                replace(point, launch=number) for number in range(1, job.sweep.launches + 1)
            ]
            values = measured(folder, launches)
            last = folder.state(point).last
            why = (last.said or last.outcome) if last else "not measured yet"
            for size in point.sizes or (NO_SIZE,):
                own = values[values["size"] == size] if len(values) else values
                yield {
                    "title": title,
                    "benchmark": point.benchmark,
                    "buffer": point.buffer,
                    "binding": point.binding,
                    "bytes": size if point.sizes else None,
                    "nodes": point.nodes,
                    "ranks": point.ranks,
                    "part": point.part,
                    "value": own["value"].median() if len(own) else None,
                    "unit": own["unit"].iloc[0] if len(own) else "",
                    "runs": len(own),
                    "missing": "" if len(own) else why,
                }


def measured(folder: Folder, launches: Sequence[SweepPoint]) -> pd.DataFrame:
    """Return value, unit and size in bytes of all rows of a point's launches."""
    files = [path for path in map(folder.csv, launches) if path.exists()]
    if not files:
        return pd.DataFrame()
    rows = value_column(load(files).rows, "mean")
    return rows.assign(size=rows["bytes"].fillna(NO_SIZE))[["value", "unit", "size"]]
