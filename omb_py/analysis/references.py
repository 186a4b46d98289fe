"""References: values that a machine is expected to reach, and the forms of their files."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd

from omb_py.analysis.points import Cells
from omb_py.analysis.select import convert, no_column, rows_with
from omb_py.analysis.select import pairs as pairs_of
from omb_py.analysis.table import convert_types
from omb_py.analysis.values import BUS, same_ends
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text import files
from omb_py.core.text.tables import Target, content_of, write_content
from omb_py.core.text.units import parse_decimal
from omb_py.core.text.words import first_of, from_csv_cell
from omb_py.results.columns import CONFIGURATION, EXPERIMENT, SOFTWARE

SHIPPED = resources.files("omb_py") / "references"

PUBLISHED = "published"
"""The column of references that come with omb-py: figures of other machines."""

UNITS = ("us", "MB/s", "GB/s", "msg/s", BUS)
"""Units of references; GB/s are MB/s once they are read."""

POINT = (
    *("benchmark", "bytes"),
    *(n for n in (*EXPERIMENT[1:], *CONFIGURATION) if n not in (*SOFTWARE, "source")),
)
"""Columns that say what a reference is of. An empty one is not compared."""

REQUIRED = ("benchmark", "value", "unit")

LIMITS = ("value", "low", "high")
ABOUT = ("system", "software", "source", "date", "conditions")
"""``conditions`` are those that no column of results states, in words."""

READ = (*ABOUT[:2], *POINT, "value", "unit", "low", "high", *ABOUT[2:])
"""Columns of a file of references."""


def shipped() -> list[str]:
    """Return the names of the systems whose references come with omb-py."""
    return sorted(file.name.removesuffix(".csv") for file in SHIPPED.iterdir())


def load(named: str, system: str | None = None) -> pd.DataFrame:
    """Return the references of a file, or of a system that omb-py knows, with columns `READ` and
    `PUBLISHED`.

    A file is CSV with some of `READ`, or JSON as ReFrame has references (`from_reframe`).
    ``system`` chooses one of several in a file. Raises `UsageError` for an unknown name or system,
    `OmbError` for a file that cannot be read or holds a wrong value.
    """
    path: Any = Path(named)
    published = not path.is_file()
    if published:
        if named not in shipped():
            raise UsageError(
                f"--expected {named}: no such file, and omb-py has no references of that name: "
                f"choose from {', '.join(shipped())}"
            )
        path = SHIPPED / f"{named}.csv"
    text = path.read_text(encoding="utf-8") if published else files.read_text(path)

    def cells_of() -> list[dict[str, str]]:
        if named.endswith(".json"):
            return from_reframe(files.parsed(text, json.loads, named, "JSON", OmbError))
        return from_csv(text)

    return made(cells_of, named, published, system)


def made(
    cells_of: Callable[[], list[dict[str, str]]], named: str, published: bool, system: str | None
) -> pd.DataFrame:
    """Return references of cells as `load` does; ``named`` is their origin for people."""
    try:
        frame = pd.DataFrame([typed(row, place) for place, row in enumerate(cells_of(), 1)])
        if frame.empty:
            raise ValueError("it has no row")
    except (ValueError, UsageError) as error:
        raise OmbError(f"{named} holds no references: {error}") from error
    frame = frame.reindex(columns=list(READ)).assign(**{PUBLISHED: published})
    frame = frame.assign(**{column: convert_types(frame[column], column) for column in POINT})
    systems = [str(name) for name in frame["system"].dropna().unique()]
    if system is None and len(systems) > 1:
        raise UsageError(f"{named} has several systems: choose with --system {systems[0]}")
    if system is not None and system not in systems:
        there = first_of(systems) or "none with a name"
        raise UsageError(f"--system {system}: {named} has {there}")
    return frame if system is None else frame[frame["system"] == system]


def asked(references: pd.DataFrame, texts: Iterable[str]) -> pd.DataFrame:
    """Return the references of the rows that ``--where`` chooses: those that state another value
    are not asked for.

    Raises `UsageError` if no reference is left.
    """
    for name, values in pairs_of(texts).items():
        if name in references:
            stated = references.index.isin(rows_with(references, name, values).index)
            references = references[stated | references[name].isna()]
            if references.empty:
                raise UsageError(f"--where {name}={','.join(values)}: no reference is of that")
    return references


def from_csv(text: str) -> list[dict[str, str]]:
    """Return the cells of a CSV file that are not empty."""
    frame = pd.read_csv(io.StringIO(text), dtype=str, comment="#", keep_default_na=False)
    return [
        {str(name): from_csv_cell(cell) for name, cell in row.items() if cell}
        for row in frame.to_dict("records")
    ]


def from_reframe(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the cells of references in ReFrame's form.

    ``{"system:partition": {"latency bytes=8 ranks=2": [value, low, high, "us"]}}``: a variable is a
    benchmark and columns with their values. Raises `ValueError` for another document.
    """
    names = "|".join(POINT)
    rows = []
    try:
        for system, variables in document.items():
            for variable, (value, low, high, unit) in variables.items():
                benchmark, _, rest = variable.partition(" ")
                cells = re.findall(rf"(\w+)=(.*?)(?= (?:{names})=|$)", rest)
                limits = {"value": value, "low": low, "high": high, "unit": unit}
                row = {"system": system, "benchmark": benchmark, **dict(cells), **limits}
                rows.append({name: str(cell) for name, cell in row.items() if cell is not None})
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            'expected {"system": {"latency bytes=8": [value, low, high, "us"]}}'
        ) from error
    return rows


def to_reframe(references: pd.DataFrame) -> str:
    """Return references as the JSON that `from_reframe` reads."""
    document: dict[str, dict[str, list[Any]]] = {}
    for row in references.astype(object).to_dict("records"):
        known = [n for n in POINT[1:] if n in row and not pd.isna(row[n])]
        name = " ".join([row["benchmark"], *(f"{column}={row[column]}" for column in known)])
        limits = [None if pd.isna(row[one]) else row[one] for one in LIMITS]
        document.setdefault(row["system"], {})[name] = [*limits, row["unit"]]
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def typed(row: Mapping[str, str], place: int) -> Cells:
    """Return a reference's cells as its columns hold them.

    Raises `UsageError` or `ValueError` with the reference's place for a cell that cannot be.
    """
    for name in row:
        if name not in READ:
            raise no_column(name, READ)
    if missing := [name for name in REQUIRED if name not in row]:
        raise ValueError(f"reference {place} has no {missing[0]}")
    if row["unit"] not in UNITS:
        raise ValueError(f"reference {place}: unit {row['unit']}: choose from {', '.join(UNITS)}")
    found: Cells = {n: convert(n, cell) for n, cell in row.items() if n in POINT}
    if "placement" in found:
        found["placement"] = same_ends(found["placement"])
    found |= {name: cell for name, cell in row.items() if name in (*ABOUT, "unit")}
    found |= {name: parse_decimal(row[name]) for name in LIMITS if name in row}
    if found["value"] <= 0 or found.get("low", 0) > 0 or found.get("high", 0) < 0:
        raise ValueError(
            f"reference {place}: a value is above 0, low 0 or below (-0.15), high 0 or above"
        )
    if found.get("low", 0) <= -1:
        raise ValueError(
            f"reference {place}: low {row['low']} allows any number: low is a part of the value, "
            "above -1, as -0.15 for 15 %"
        )
    if row["unit"] == "GB/s":
        found |= {"unit": "MB/s", "value": 1000 * found["value"]}
    return found


def save(references: pd.DataFrame, to: Target) -> None:
    """Write references as CSV or, for ReFrame, as JSON; raises `OmbError` when that fails."""
    as_json = to.format == "json"
    table = references[[name for name in READ if name in references]]
    write_content(to, to_reframe(table) if as_json else content_of(table, "csv", {}))
