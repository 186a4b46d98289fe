"""Options about where results go, which all benchmarks and comparisons of bindings have."""

from __future__ import annotations

from typing import Any

import click

from omb_py.cli.option_row import FLAG, OptionRow
from omb_py.core.errors import UsageError

FORMATS = ("text", "csv", "json")
GRAPHS = ("tty", "png", "svg", "pdf")


def graphs(ctx: click.Context, parameter: click.Parameter, text: Any) -> tuple[str, ...]:
    """Kinds of figures, separated by commas as in native OMB."""
    words = tuple(word.strip() for word in (text or "").split(",") if word.strip())
    for word in words:
        if word not in GRAPHS:
            raise UsageError(f"-G {word}: choose from {', '.join(GRAPHS)}")
    return words


OUTPUT_OPTIONS = (
    OptionRow(
        ("-o", "--output"),
        {
            "metavar": "FILE",
            "help": "Add rows to this .csv or .json file, each as soon as it is measured.",
        },
    ),
    OptionRow(("--force",), FLAG | {"help": "Overwrite the output file instead of adding to it."}),
    OptionRow(
        ("--format",),
        {
            "type": click.Choice(FORMATS),
            "default": "text",
            "help": "What standard output looks like; text is native OMB's layout.",
        },
    ),
    OptionRow(("-q", "--quiet"), FLAG | {"help": "Nothing on standard output."}),
    OptionRow(
        ("-G", "--graph"),
        {
            "callback": graphs,
            "metavar": "tty,png,svg,pdf",
            "help": "Draw the results, in the terminal or as BENCHMARK.png (...) in this folder.",
        },
    ),
)
