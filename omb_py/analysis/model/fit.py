"""A model of communication: costs fitted to every curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.model import lines
from omb_py.analysis.model.costs import algorithms
from omb_py.analysis.model.lines import MISFIT, NORMAL, Fit, Points
from omb_py.analysis.points import distinctions, label
from omb_py.analysis.values import travelling, value_column
from omb_py.core.errors import OmbError
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import CONFIGURATION, EXPERIMENT
from omb_py.results.metadata import crowded_hosts

SAME_CURVE = tuple(name for name in EXPERIMENT if name not in ("ranks", "hosts", "pairs"))
"""Columns that, with `CONFIGURATION`, are equal for all times that one formula is fitted to."""

WHOLE_JOB = ("ranks", "hosts", "pairs")
"""More columns that distinguish curves if no formula is over the ranks."""


@dataclass(frozen=True)
class Curve:
    """A benchmark in one configuration, with the fits to its times.

    ``points`` are times in us: of the benchmark itself, or of one message if it prints a rate
    (``MB/s``, ``msg/s``). ``sized`` is false without message sizes; they are 0 in ``points``.
    ``lines`` are fits over sizes by number of ranks. ``formulas``, of a collective, are all fits
    over ranks in each range of sizes, the best one first. ``configuration`` is the value of each
    column of `CONFIGURATION`; ``label`` distinguishes curves of the benchmark.
    """

    benchmark: str
    configuration: Mapping[str, Any]
    label: str
    sized: bool
    points: Points
    lines: Mapping[int, tuple[Fit, ...]]
    formulas: tuple[tuple[Fit, ...], ...]


@dataclass(frozen=True)
class Model:
    """All curves, those that could not be fitted with the reason, and notes.

    ``rows`` are the fitted rows, as `omb_py.analysis.values.value_column` gives them.
    """

    curves: tuple[Curve, ...]
    skipped: tuple[str, ...]
    notes: tuple[str, ...]
    rows: pd.DataFrame


def model(
    rows: pd.DataFrame,
    runs: Mapping[str, Mapping[str, str]] | None = None,
    statistic: str = "auto",
) -> Model:
    """Fit costs to benchmark rows (`omb_py.analysis.table.Results.rows`, and its ``runs``).

    Rows without a time, without a number of ranks or whose data was wrong are left out. Values are
    medians, with ``statistic`` ``auto`` if all of a benchmark's rows have them. Raises
    `OmbError` when no curve has two sizes or two numbers of ranks.
    """
    right = rows[rows["validation"] != "Fail"]
    frame = value_column(right, statistic).reset_index(drop=True)
    if frame.empty:
        raise OmbError("there is no row of a benchmark: overheads and empty tables have no model")
    unknown = frame[frame["ranks"].isna()]
    frame = frame[frame["ranks"].notna()]
    if frame.empty:
        raise OmbError(
            "no row says its number of ranks, which native OMB does not print: give it with "
            "--assume ranks=N"
        )
    frame = with_times(frame)
    found, skipped = [], []
    for benchmark, whole in frame.groupby("benchmark", sort=False):
        columns = [*CONFIGURATION, *SAME_CURVE]
        if not algorithms(str(benchmark)):
            columns += WHOLE_JOB
        telling = distinctions(whole, columns)
        by = telling or ["benchmark"]
        for _, group in whole.groupby(by, dropna=False, observed=True, sort=False):
            name = label((group[column].iloc[0] for column in telling), telling)
            if fits := curve_of(group, name):
                found.append(fits)
            else:
                skipped.append(f"{benchmark} {name}".strip())
    if not found:
        raise OmbError("no curve has two message sizes or two numbers of ranks: measure more")
    said = tuple(notes(frame, runs or {}, len(rows) - len(right), unknown))
    return Model(tuple(found), tuple(skipped), said, frame)


def with_times(frame: pd.DataFrame) -> pd.DataFrame:
    """Add ``time_us``, of a call or of one message, and its relative ``error``, NaN if unknown."""
    value = frame["value"]
    is_rate = frame["unit"] == "MB/s"
    of_message = (travelling(frame) / value).where(is_rate, 1e6 / value)
    time = value.where(frame["unit"] == "us", of_message)
    error = (frame["high"] - frame["low"]) / (2 * NORMAL * value)
    return frame.assign(time_us=time, error=error)[time > 0]


def curve_of(group: pd.DataFrame, name: str) -> Curve | None:
    """Fit one curve; None if there is but one size and one number of ranks.

    A row with a wide interval counts less, an error far below `MISFIT` as no error.
    """
    benchmark = str(group["benchmark"].iloc[0])
    textbook = algorithms(benchmark)
    sized = bool(group["bytes"].notna().any())
    group = group[group["bytes"].notna()] if sized else group
    points = Points(
        group["ranks"].to_numpy(float),
        group["bytes"].fillna(0).to_numpy(float),
        group["time_us"].to_numpy(float),
        1 + (np.nan_to_num(group["error"].to_numpy(float)) / MISFIT) ** 2,
    )
    if textbook:
        points = points.where(points.ranks > 1)
    by_ranks = {
        int(number): points.where(points.ranks == number) for number in np.unique(points.ranks)
    }
    fitted = {
        number: lines.lines(part)
        for number, part in by_ranks.items()
        if len(np.unique(part.sizes)) > 1
    }
    several = textbook and len(by_ranks) > 1
    formulas = lines.formulas(points, textbook) if several else ()
    if not fitted and not formulas:
        return None
    return Curve(
        benchmark,
        {column: group[column].iloc[0] for column in CONFIGURATION},
        name,
        sized,
        points,
        fitted,
        formulas,
    )


def notes(
    rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]], wrong: int, unknown: pd.DataFrame
) -> Iterator[str]:
    """Yield a sentence for each reason to distrust the fits, and for rows that are left out.

    ``wrong`` is the number of rows with wrong data; ``unknown`` are rows without a number of ranks.
    """
    collective = rows["benchmark"].map(lambda name: bool(algorithms(name)))
    hosts = set(rows["hosts"].dropna().tolist())
    if hosts == {1}:
        yield "All ranks ran on one host: nothing here says what a network costs."
    elif 1 in hosts and rows[collective].groupby("benchmark")["hosts"].nunique().gt(1).any():
        yield (
            "Some ranks ran on one host and some on several: memory and network have different "
            "costs, and one formula cannot have both; choose with --where hosts=N."
        )
    crowded = [run for run, data in runs.items() if crowded_hosts(data)]
    if shared := sorted(set(rows[rows["run"].isin(crowded)]["ranks"].astype(int))):
        yield (
            f"On {first_of(shared)} ranks there were more ranks than cores: these times measure "
            "how the system shares cores out, and what is fitted to them predicts no machine with "
            "enough."
        )
    if means := rows[rows["statistic"] == "mean"]["benchmark"].drop_duplicates().tolist():
        yield (
            f"Values of {first_of(means)} are means: one preemption of a rank can make one many "
            "times too long."
        )
    if (rows["ranks"].eq(1) & collective).any():
        yield "A collective of one rank communicates nothing: such rows are left out."
    if wrong:
        are = "is" if wrong == 1 else "are"
        yield f"{count(wrong, 'row')} whose data was wrong {are} left out."
    if names := unknown["benchmark"].drop_duplicates().tolist():
        yield (
            f"Rows of {first_of(names)} do not say their number of ranks and are left out: give it "
            "with --assume ranks=N."
        )
