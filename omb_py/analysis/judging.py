"""The rows that may be judged: the others, whose data was wrong or whose job was stopped, fail.

The other parts of what may be judged are decided where rows are read and get their value: a file is
read once (`table.load`), and its statistic is chosen for each series (`values.with_values`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from omb_py.analysis.conclusion import FAILED
from omb_py.analysis.failures import Failure
from omb_py.analysis.points import at_sizes
from omb_py.analysis.values import faults, spoilt
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.words import count, first_of


class WrongDataError(OmbError):
    """An error: there is nothing to judge, because the data of the rows was wrong."""

    exit_code = FAILED


def check_part(name: str, value: float | None, zero: bool = False) -> None:
    """Raise `UsageError` for an argument that is no part of 1; ``zero`` may be one."""
    if (value == 0 and zero) or value is None:
        return
    if not (isinstance(value, int | float) and 0 < value < 1):
        raise UsageError(f"{name} is {value!r}: choose from 0 to 1, as 0.05 for 5 %")


def refuse_wrong(*tables: pd.DataFrame) -> None:
    """Raise `WrongDataError` for the first rows whose data was wrong, where no others are left."""
    for reason in (one.reason for table in tables for one in rows_to_judge(table)[1]):
        raise WrongDataError(f"nothing to compare: {reason}")


def rows_to_judge(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[Failure]]:
    """Return the rows that are not `spoilt`, and a failure for each file and benchmark with others.

    The time of wrong data is that of another operation, and the time of a job that was stopped is
    that of its pause: they are compared with nothing, and no check passes over them.
    """
    wrong = spoilt(rows)
    found = [Failure(f"{where}: {what}", on_top=True) for where, _, what in wrong_data(rows)]
    return rows[~wrong], found


def wrong_data(rows: pd.DataFrame) -> Iterator[tuple[str, int | None, str]]:
    """Yield file, first line and a sentence for the `spoilt` rows of each benchmark."""
    wrong = rows[spoilt(rows)]
    why = faults(wrong)
    files = wrong["file"].astype(object).fillna("results")
    several = "host_names" in rows and rows["host_names"].nunique() > 1
    for (file, name, reason), members in wrong.groupby([files, "benchmark", why], sort=False):
        at = at_sizes(members["bytes"].dropna().unique())
        line = members["line"].min()
        hosts = members["host_names"].dropna().unique() if several else []
        on = f" on {first_of(list(hosts))}" if len(hosts) else ""
        text = f"{name}{at}{on}: {reason} in {count(len(members), 'row')}"
        yield str(file), None if pd.isna(line) else int(float(line)), text
