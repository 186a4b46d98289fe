"""A model as tables: on a terminal, as Markdown, as CSV, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import pandas as pd

from omb_py.analysis.sheet import markdown, on_console
from omb_py.modelling.check import check
from omb_py.modelling.loggp import loggp
from omb_py.modelling.model import Model
from omb_py.modelling.parameters import parameters
from omb_py.modelling.sheets import sheets

FORMATS = ("text", "csv", "markdown", "json")

MOST_NAMED = 12
"""Curves that are named before a list is cut short."""


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
        out.write(markdown(made, tuple(warnings_of(model))))
    else:
        on_console(made, tuple(warnings_of(model)), out)


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
