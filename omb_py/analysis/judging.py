"""The rows that may be judged: those whose data was right; the others fail, by name.

The other parts of what may be judged are decided where rows are read and get their value: a file is
read once (`table.load`), and its statistic is chosen for each series (`values.with_values`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from omb_py.analysis.conclusion import FAILED
from omb_py.analysis.failures import Failure
from omb_py.analysis.points import at_sizes
from omb_py.analysis.values import data_wrong
from omb_py.core.errors import OmbError
from omb_py.core.text.words import count, first_of


class WrongDataError(OmbError):
    """An error: there is nothing to judge, because the data of the rows was wrong."""

    exit_code = FAILED


def refuse_wrong(*tables: pd.DataFrame) -> None:
    """Raise `WrongDataError` for the first rows whose data was wrong, where no others are left."""
    for reason in (one.reason for table in tables for one in rows_to_judge(table)[1]):
        raise WrongDataError(f"nothing to compare: {reason}")


def rows_to_judge(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[Failure]]:
    """Return the rows whose data was right, and a failure for each file and benchmark with others.

    Data is wrong where its check failed: column ``validation`` is ``Fail``. A time of it is the
    time of another operation, so it is compared with nothing, and no check passes over it.
    """
    wrong = data_wrong(rows)
    found = [Failure(f"{where}: {what}", on_top=True) for where, _, what in wrong_data(rows)]
    return rows[~wrong], found


def wrong_data(rows: pd.DataFrame) -> Iterator[tuple[str, int | None, str]]:
    """Yield file, first line and a sentence for the rows of each benchmark whose data was wrong."""
    wrong = rows[data_wrong(rows)]
    files = wrong["file"].astype(object).fillna("results")
    several = "host_names" in rows and rows["host_names"].nunique() > 1
    for (file, name), members in wrong.groupby([files, "benchmark"], sort=False):
        at = at_sizes(members["bytes"].dropna().unique())
        line = members["line"].min()
        hosts = members["host_names"].dropna().unique() if several else []
        on = f" on {first_of(list(hosts))}" if len(hosts) else ""
        rows_text = count(len(members), "row")
        text = f"{name}{at}{on}: the data was wrong (validation Fail) in {rows_text}"
        yield str(file), None if pd.isna(line) else int(float(line)), text
