"""What to bear in mind about a model, from where and how its rows were measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from omb_py.modelling.costs import collective_of

MOST_NAMED = 12
"""Benchmarks or numbers of ranks that are named before a list is cut short."""


def notes(rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A sentence for each reason to distrust predictions."""
    found = []
    hosts = set(rows["hosts"].dropna().tolist())
    if hosts == {1}:
        found.append(
            "All ranks ran on one host: nothing here says what a network costs, and predictions "
            "for more ranks are for ranks on one host."
        )
    elif 1 in hosts:
        mixed = rows[rows["benchmark"].map(collective_of).notna()]
        if mixed.groupby("benchmark")["hosts"].nunique().gt(1).any():
            found.append(
                "Some ranks ran on one host and some on several: memory and network have different "
                "costs, and one formula cannot have both; choose with --where hosts=N."
            )
    if shared := oversubscribed(rows, runs):
        found.append(
            f"On {shortened(shared)} ranks there were more ranks than cores: these times measure "
            "how the system shares cores out, and what is fitted to them predicts no machine with "
            "enough."
        )
    means = rows[rows["statistic"] == "mean"]["benchmark"].drop_duplicates().tolist()
    if means:
        found.append(
            f"Values of {shortened(means)} are means: one preemption of a rank can make one many "
            "times too long."
        )
    if rows["ranks"].eq(1).any() and rows["benchmark"].map(collective_of).notna().any():
        found.append("A collective of one rank communicates nothing: such rows are left out.")
    return found


def left_out(wrong: int, unknown: pd.DataFrame) -> list[str]:
    """A sentence for each kind of rows that no curve is fitted to."""
    found = []
    if wrong:
        rows, are = ("row", "is") if wrong == 1 else ("rows", "are")
        found.append(f"{wrong} {rows} whose data was wrong {are} left out.")
    if len(unknown):
        names = shortened(unknown["benchmark"].drop_duplicates().tolist())
        found.append(
            f"Rows of {names} do not say their number of ranks and are left out: give it with "
            "--assume ranks=N."
        )
    return found


def shortened(words: Sequence[object]) -> str:
    """A list, cut short."""
    return ", ".join(map(str, words[:MOST_NAMED])) + (" ..." if len(words) > MOST_NAMED else "")


def oversubscribed(rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> list[int]:
    """The numbers of ranks of runs that had more ranks on a host than logical cores."""
    crowded = {run for run, data in runs.items() if is_crowded(data)}
    return sorted({int(number) for number in rows[rows["run"].isin(crowded)]["ranks"].dropna()})


def is_crowded(data: Mapping[str, str]) -> bool:
    """Whether a run's metadata says that ranks shared cores.

    >>> is_crowded({"hosts": "vm:4", "processor": "AMD EPYC, 2 logical cores"})
    True
    """
    cores = re.search(r"(\d+) logical cores?", data.get("processor", ""))
    ranks = [int(number) for number in re.findall(r":(\d+)(?=\s|,|$)", data.get("hosts", ""))]
    return cores is not None and bool(ranks) and max(ranks) > int(cores[1])
