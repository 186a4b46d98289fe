"""A model as tables: on a terminal, as Markdown, as CSV, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from omb_py.modelling.check import check
from omb_py.modelling.loggp import loggp
from omb_py.modelling.model import Model
from omb_py.modelling.parameters import parameters
from omb_py.modelling.sheets import Sheet, sheets

FORMATS = ("text", "csv", "markdown", "json")

MOST_NAMED = 12
"""Curves that are named before a list is cut short."""

UNLIMITED = 10_000
"""Columns of what is not a terminal."""


def write(model: Model, ranks: Sequence[int], sizes: Sequence[int], kind: str, out: TextIO) -> None:
    """Parameters, check and predictions in one of `FORMATS`.

    CSV is one table whose column ``table`` tells parameters, LogGP's, check and predictions apart.
    """
    if kind in ("csv", "json"):
        tables = {
            "parameters": parameters(model),
            "loggp": loggp(model),
            "check": check(model),
            "predictions": model.predict(ranks, sizes),
        }
        if kind == "csv":
            parts = [frame.assign(table=name) for name, frame in tables.items() if len(frame)]
            whole = pd.concat([part.astype(object) for part in parts], ignore_index=True)
            whole.insert(0, "table", whole.pop("table"))
            whole.to_csv(out, index=False)
            return
        document: dict[str, Any] = {"notes": list(model.notes), "not_fitted": list(model.skipped)}
        for name, frame in tables.items():
            document[name] = json.loads(frame.to_json(orient="records", double_precision=15))
        json.dump(document, out, indent=1, ensure_ascii=False)
        out.write("\n")
        return
    made = [sheet for sheet in sheets(model, ranks, sizes) if sheet.rows or sheet.remarks]
    if kind == "markdown":
        out.write(markdown(made, model))
    else:
        on_console(made, model, out)


def on_console(made: Sequence[Sheet], model: Model, out: TextIO) -> None:
    """Tables for a terminal; elsewhere as wide as they are."""
    console = Console(file=out, highlight=False)
    if not console.is_terminal:
        console = Console(file=out, highlight=False, width=UNLIMITED)
    for sheet in made:
        console.print(Text(sheet.title, style="bold"))
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for index, name in enumerate(sheet.columns):
            table.add_column(Text(name), justify="left" if index < sheet.left else "right")
        if sheet.rows:
            for cells in without_repetitions(sheet.rows):
                table.add_row(*map(Text, cells))
            console.print(table)
        for remark in sheet.remarks:
            console.print(Text(remark, style="dim"))
        console.print()
    for sentence in warnings_of(model):
        console.print(Text(f"Note: {sentence}", style="yellow"))


def markdown(made: Sequence[Sheet], model: Model) -> str:
    """Tables of Markdown."""
    lines = []
    for sheet in made:
        lines += [f"## {sheet.title}", ""]
        if sheet.rows:
            marks = ["---" if i < sheet.left else "---:" for i in range(len(sheet.columns))]
            for cells in (sheet.columns, marks, *sheet.rows):
                escaped = (cell.replace("|", "\\|").replace("*", "\\*") for cell in cells)
                lines.append(f"| {' | '.join(escaped)} |")
            lines.append("")
        for remark in sheet.remarks:
            lines += [remark.replace("*", "\\*"), ""]
    lines += [f"**Note:** {sentence}\n" for sentence in warnings_of(model)]
    return "\n".join(lines)


def warnings_of(model: Model) -> Iterator[str]:
    """What to bear in mind, and what is not in the tables."""
    yield from model.notes
    if model.skipped:
        shown = ", ".join(model.skipped[:MOST_NAMED])
        more = len(model.skipped) - MOST_NAMED
        yield (
            "Not fitted, for there is one message size and one number of ranks: "
            f"{shown}{f', and {more} more' if more > 0 else ''}."
        )


def without_repetitions(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Rows whose first cell is empty where it is the same as above."""
    above = ""
    for first, *rest in rows:
        yield ("" if first == above else first, *rest)
        above = first
