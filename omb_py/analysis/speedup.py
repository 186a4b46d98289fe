"""Applications over numbers of ranks: time, speed-up, efficiency and phases, from their tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.points import distinctions, label
from omb_py.analysis.select import no_column
from omb_py.analysis.select import where as matching
from omb_py.analysis.table import Paths, tables_of
from omb_py.analysis.verdict import FASTER, SLOWER, UNCLEAR, by_runs, enough, verdicts
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, share_text, value_text
from omb_py.results.application import KINDS, ApplicationRow
from omb_py.results.readers import Problem

POSITIVE = ("ranks", "nodes", "host_cores", "cores", "threads", "time_s", "time_low_s")

PHASES = ("compute", "communicate", "wait", "distribute", "other")
"""Parts of a rank's time, as `ApplicationRow` has them."""

SERIES = ("application", "problem", "scaling", "buffer", "binding", "threads", "mpi", "variant")
"""Columns in which the runs of one line agree; ranks come on top."""

ENDS = {"": "median", "_low": "min", "_high": "max"}
"""Ends of the names of a value's columns, and the statistic of several runs for each."""

RESULTS = frozenset(KINDS) - {*SERIES, "ranks", "nodes"}
"""Columns that are measured, not chosen."""

LOWER_IS_BETTER = ("_s", "_low_s", "_high_s", "difference")
"""Ends of the names of values whose minimum is best."""

REMARK = (
    "Times and speed-ups: the median, and the minimum and maximum of the repeats. Speed-ups are "
    "over one rank, and over the sequential program. Phases: parts of a rank's time."
)
SHARED_CORES = "* more threads than cores: ranks took turns, which says nothing of how it scales."


def load(paths: Paths, where: Iterable[str] = ()) -> tuple[pd.DataFrame, list[Problem]]:
    """Read files, and folders with all files below them.

    Returns a row for each run, with the columns of `ApplicationRow`, ``mpi``, and one for each
    option of its problem; and problems of what was left out. ``where`` chooses runs, also by
    options. Raises `OmbError` when a file cannot be read or nothing of an application is found,
    `UsageError` when no run is chosen.
    """
    frames, problems = [], []
    for path in [paths] if isinstance(paths, str | Path) else paths:
        read, _, found = tables_of([path], {})
        rows = read[ApplicationRow]
        rows = rows[rows["part"].isna()]
        right = are_right(rows)
        kept = right & (rows["check"] != "Fail")
        for row in rows[~kept].itertuples():
            why = f"the result of {row.application} was wrong"
            why = why if right[row.Index] else "a field is not what its column holds"
            found.append(Problem(str(row.file), int(row.line), f"{why}; left out"))
        problems += found
        if not kept.any():
            why = f"{found[0]}; " if found else ""
            raise OmbError(
                f"{why}{path} holds no results of applications: write them with "
                "omb-py APPLICATION --output FILE.csv"
            )
        frames.append(rows[kept])
    rows = pd.concat(frames).drop_duplicates("run", ignore_index=True)[[*KINDS, "mpi"]]
    options = pd.DataFrame(map(options_of, rows["problem"]), rows.index)
    frame = rows.join(options[[name for name in options if name not in rows]])
    for name in frame:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if numbers.notna().sum() == frame[name].notna().sum() > 0:
            kind = float if numbers.isna().any() else numbers.dtype.name.lower()
            frame[name] = numbers.astype(kind)
    return matching(frame, where, names_of(frame)), problems


def are_right(rows: pd.DataFrame) -> pd.Series:
    """Return whether the numbers that each run needs are above 0, its scaling and problem known."""
    right = rows["scaling"].isin(["strong", "weak"]) & rows["problem"].notna()
    for name in POSITIVE:
        right &= rows[name].gt(0).fillna(False).astype(bool)
    for end in ENDS:
        right &= rows["speedup"].isna() | rows[f"speedup{end}"].gt(0)
    return right


def names_of(runs: pd.DataFrame) -> list[str]:
    """Return columns and options that a run has a value of."""
    return [str(name) for name in runs if runs[name].notna().any()]


def options_of(problem: str) -> dict[str, str]:
    """Return the options of a problem; values with blanks are quoted."""
    try:
        words = shlex.split(problem)
    except ValueError:
        words = problem.split()
    pairs = (word.partition("=") for word in words)
    return {name: value for name, is_option, value in pairs if is_option}


def speedups(
    runs: pd.DataFrame, divides_work: Callable[[str], bool] = lambda application: True
) -> pd.DataFrame:
    """Return one row for each line (`series_of`) and number of ranks of the runs that `load` read.

    ``time_s`` is the median of the runs, ``time_low_s`` and ``time_high_s`` the minimum and maximum
    of all repeats within them, which rows of benchmarks do not have (`points_of`). ``speedup`` with
    its ends is relative to one rank: the one measured alternately within the job, else a job of one
    rank, for weak scaling times the ranks; missing if ranks do not divide the work of one
    (``divides_work`` of the application). ``sequential_speedup`` is relative to the sequential
    program, measured alternately, else its time divided by that of the ranks. ``efficiency`` is the
    speed-up divided by the ranks. ``oversubscribed``: ranks shared cores, so the time does not show
    the program's scaling. The `PHASES` are parts of a rank's time, together 1. ``line`` names the
    line among all.
    """
    frame = runs.assign(
        host_cores=runs["host_cores"] * runs["nodes"],
        **{name: runs[f"{name}_s"].fillna(0.0) for name in PHASES},
    )
    both = (
        (name, end) for name in ("time{}_s", "speedup{}", "sequential_speedup{}") for end in ENDS
    )
    columns = {name.format(end): (name.format(end), ENDS[end]) for name, end in both}
    columns |= {name: (name, "mean") for name in PHASES}
    columns |= {"cores": ("cores", "max"), "host_cores": ("host_cores", "min")}
    columns |= {"runs": ("run", "size"), "sequential_s": ("sequential_s", "median")}
    groups = frame.groupby([*SERIES, "nodes", "ranks"], dropna=False, sort=False)
    found = groups.agg(**columns).reset_index()
    found["oversubscribed"] = found["cores"] > found["host_cores"]
    total = found[list(PHASES)].sum(axis=1)
    found[list(PHASES)] = found[list(PHASES)].div(total.where(total > 0, 1.0), axis=0)
    sequential = (found.pop("sequential_s") / found["time_s"]).where(found["scaling"] == "strong")
    found["sequential_speedup"] = found["sequential_speedup"].fillna(sequential)
    times = [f"time{end}_s" for end in ENDS]
    one = found[found["ranks"] == 1][[*SERIES, *times]]
    one = found[[*SERIES]].merge(one, "left", on=list(SERIES))
    work = found["ranks"].where(found["scaling"] == "weak", 1)
    divides = found["application"].map(divides_work) & found["ranks"].gt(1)
    missing = found["speedup"].isna() & divides
    for end, other in zip(ENDS, ("", "_high", "_low"), strict=True):
        ratio = work * one[f"time{end}_s"] / found[f"time{other}_s"]
        found[f"speedup{end}"] = found[f"speedup{end}"].where(~missing, ratio)
    found["efficiency"] = found["speedup"] / found["ranks"]
    apart = distinctions(found, series_of(found)) or ["application"]
    found["line"] = [label(key, apart) for key in found[apart].itertuples(index=False)]
    return found.sort_values(["line", "ranks"], kind="stable", ignore_index=True)


def series_of(found: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns in which the runs of one line agree: `SERIES`.

    Of ranks that ran on several numbers of nodes, lines agree in these, too: medians of unlike
    placements are none of either.
    """
    return (*SERIES, "nodes") if found.duplicated([*SERIES, "ranks"]).any() else SERIES


def sheets(found: pd.DataFrame) -> Iterator[Sheet]:
    """Yield a table for each line of `speedups`."""
    heads = ("ranks", "time", "low to high", "speed-up", "low to high", "over sequential")
    names = [name for name in series_of(found) if name not in ("application", "problem")]
    for _, rows in found.groupby("line", sort=False):
        first = rows.iloc[0]
        how = label([first[name] for name in names], names)
        title = f"{first['application']}: {first['problem']}; {how}"
        remarks = (REMARK, SHARED_CORES) if rows["oversubscribed"].any() else (REMARK,)
        cells = tuple(cells_of(row) for row in rows.to_dict("records"))
        yield Sheet(title, (*heads, "efficiency", *PHASES), cells, remarks, 0)


def cells_of(row: dict[Any, Any]) -> tuple[str, ...]:
    """Return the cells of a number of ranks."""
    time, *times = (value_text(row[f"time{end}_s"] * 1e6, "us") for end in ENDS)
    speedup, *speedups = (digits(row[f"speedup{end}"]) for end in ENDS)
    return (
        f"{row['ranks']}{'*' if row['oversubscribed'] else ''}",
        time,
        " to ".join(times),
        speedup,
        "-" if "-" in speedups else " to ".join(speedups),
        digits(row["sequential_speedup"]),
        *("-" if pd.isna(row[n]) else share_text(row[n]) for n in ("efficiency", *PHASES)),
    )


def across(runs: pd.DataFrame, names: Sequence[str], value: str) -> Iterator[Sheet]:
    """Yield the medians of a value by application: a row for the rest, columns for ``names``.

    The last column names the best in a row if repeated runs show that it is better than the second
    (`best_of`). Raises `UsageError` for names that no run has.
    """
    known = names_of(runs)
    if unknown := [name for name in (*names, value) if name not in known]:
        raise no_column(unknown[0], known)
    if not pd.api.types.is_numeric_dtype(runs[value]):
        raise UsageError(f"{value!r} is no number: choose a value such as speedup or time_s")
    by_application = runs.groupby("application", sort=False)
    for title, part in [("applications", runs)] if "application" in names else by_application:
        rest = [str(name) for name in part if name not in (*RESULTS, *names, "problem")]
        rows = [name for name in rest if part[name].nunique(dropna=False) > 1] or ["application"]
        there = part[part[value].notna()]
        keys = [there[key].astype(object).where(there[key].notna(), "-") for key in (*rows, *names)]
        columns = list(range(len(rows), len(keys)))
        table = there[value].groupby(keys, sort=False).median().unstack(columns)
        runs = there[value].groupby(keys, sort=False).agg(list).unstack(columns)
        best = [
            best_of(row.dropna(), value.endswith(LOWER_IS_BETTER)) for _, row in runs.iterrows()
        ]
        lines = zip(table.index.to_frame().to_numpy(), table.to_numpy().tolist(), best, strict=True)
        yield Sheet(
            f"{title}: {value} by {', '.join(names)}",
            (*rows, *map(words, table), "best"),
            tuple((*map(words, key), *map(digits, line), one) for key, line, one in lines),
            (f"Medians of {len(there)} of {len(part)} runs; a best needs 4 runs of each.",),
            len(rows),
        )


def best_of(runs: pd.Series, lower_is_better: bool) -> str:
    """Return the best of columns by their values in all ``runs``, beside the second best.

    `UNCLEAR` if there are too few runs for a rank test, "within noise" if that finds no difference.
    """
    if len(runs) < 2:
        return " ".join(f"{words(name)} alone" for name in runs.index)
    order = sorted(runs.index, key=lambda name: float(np.median(runs[name])))
    best, second = order[:2] if lower_is_better else order[:-3:-1]
    one, two = (np.array([runs[name]], float) for name in (best, second))
    if not enough(one.shape[1], two.shape[1]) or min(one.min(), two.min()) <= 0:
        return UNCLEAR
    found = by_runs(one, two)
    (verdict,) = verdicts(found, found.p_value, np.nan)
    return words(best) if verdict in (SLOWER, FASTER) else f"{words(best)}, {verdict}"


def words(key: Any) -> str:
    """Return a value of an option, or several, in words."""
    parts = key if isinstance(key, tuple) else (key,)
    return " ".join(f"{part:.12g}" if isinstance(part, float) else str(part) for part in parts)
