"""A model of communication: costs fitted to every curve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from omb_py.analysis.model.lines import MISFIT, NORMAL, Fit, Points, lines
from omb_py.analysis.points import distinctions, label
from omb_py.analysis.values import faults, travelling, value_column
from omb_py.benchmarks import all_benchmarks
from omb_py.core.errors import OmbError
from omb_py.core.text.units import is_time
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import CONFIGURATION, EXPERIMENT, IDENTITY
from omb_py.results.metadata import Runs, crowded_hosts


@cache
def collectives() -> frozenset[str]:
    """Return the benchmarks that communicate nothing on one rank."""
    return frozenset(
        one.name for one in all_benchmarks() if one.collective and "topology" not in one.options
    )


@dataclass(frozen=True)
class Curve:
    """A benchmark in one configuration, with the fits to its times in ranges of sizes.

    ``points`` are times in us: of the benchmark itself, or of one message if it prints a rate
    (``MB/s``, ``msg/s``). ``label`` distinguishes curves of the benchmark. ``hosts`` and ``window``
    are None if rows have none.
    """

    benchmark: str
    label: str
    ranks: int
    hosts: int | None
    window: int | None
    points: Points
    fits: tuple[Fit, ...]


@dataclass(frozen=True)
class Model:
    """All curves, those that could not be fitted with the reason, and notes.

    ``rows`` are the fitted rows, as `omb_py.analysis.values.value_column` gives them.
    """

    curves: tuple[Curve, ...]
    skipped: tuple[str, ...]
    notes: tuple[str, ...]
    rows: pd.DataFrame


def model(rows: pd.DataFrame, runs: Runs | None = None, statistic: str = "auto") -> Model:
    """Fit costs to benchmark rows (`omb_py.analysis.table.Results.rows`, and its ``runs``).

    Rows without a time, without a number of ranks or with `faults` are left out. Values are
    medians, with ``statistic`` ``auto`` if all rows of a series have them. Raises
    `OmbError` when no curve has two sizes.
    """
    wrong = faults(rows)
    right = rows[wrong.isna()]
    frame = value_column(right, statistic, IDENTITY).reset_index(drop=True)
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
        telling = distinctions(whole, [*CONFIGURATION, *EXPERIMENT])
        by = telling or ["benchmark"]
        for _, group in whole.groupby(by, dropna=False, observed=True, sort=False):
            name = label((group[column].iloc[0] for column in telling), telling)
            if fits := curve_of(group, name):
                found.append(fits)
            else:
                skipped.append(f"{benchmark} {name}".strip())
    if not found:
        raise OmbError("no curve has two message sizes: measure more")
    said = tuple(notes(frame, runs or {}, wrong, unknown))
    return Model(tuple(found), tuple(skipped), said, frame)


def with_times(frame: pd.DataFrame) -> pd.DataFrame:
    """Add ``time_us``, of a call or of one message, and its relative ``error``, NaN if unknown."""
    value = frame["value"]
    is_rate = frame["unit"] == "MB/s"
    of_message = (travelling(frame) / value).where(is_rate, 1e6 / value)
    time = value.where(is_time(frame["unit"]), of_message)
    error = (frame["high"] - frame["low"]) / (2 * NORMAL * value)
    return frame.assign(time_us=time, error=error)[time > 0]


def curve_of(group: pd.DataFrame, name: str) -> Curve | None:
    """Fit one curve; None if there is but one size.

    A row with a wide interval counts less, an error far below `MISFIT` as no error.
    """
    benchmark, ranks = str(group["benchmark"].iloc[0]), int(group["ranks"].iloc[0])
    group = group[group["bytes"].notna()]
    if group["bytes"].nunique() < 2 or (ranks == 1 and benchmark in collectives()):
        return None
    points = Points(
        group["bytes"].to_numpy(float),
        group["time_us"].to_numpy(float),
        1 + (np.nan_to_num(group["error"].to_numpy(float)) / MISFIT) ** 2,
    )
    hosts, window = (group[column].dropna() for column in ("hosts", "window"))
    return Curve(
        benchmark,
        name,
        ranks,
        int(hosts.iloc[0]) if len(hosts) else None,
        int(window.iloc[0]) if len(window) else None,
        points,
        lines(points),
    )


def notes(rows: pd.DataFrame, runs: Runs, wrong: pd.Series, unknown: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each reason to distrust the fits, and for rows that are left out.

    ``wrong`` has the `faults` of all rows; ``unknown`` are rows without a number of ranks.
    """
    if set(rows["hosts"].dropna().tolist()) == {1}:
        yield "All ranks ran on one host: nothing here says what a network costs."
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
    if (rows["ranks"].eq(1) & rows["benchmark"].isin(collectives())).any():
        yield "A collective of one rank communicates nothing: such rows are left out."
    for fault, number in wrong.value_counts(sort=False).items():
        whose = str(fault).removeprefix("the ").partition(" (")[0]
        yield f"{count(number, 'row')} whose {whose} {'is' if number == 1 else 'are'} left out."
    if names := unknown["benchmark"].drop_duplicates().tolist():
        yield (
            f"Rows of {first_of(names)} do not say their number of ranks and are left out: give it "
            "with --assume ranks=N."
        )
