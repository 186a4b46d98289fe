"""One click command per application, made from the fields of its problem."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

import click

from omb_py.apps import REPEATS, WARMUP, Application, Asked, Choices
from omb_py.apps.runtime import math_threads
from omb_py.cli.benchmark import CONTEXT
from omb_py.cli.launched import launched
from omb_py.cli.number_types import Number, WholeNumber
from omb_py.cli.option_row import FLAG, OptionRow, count
from omb_py.cli.options import TABLE
from omb_py.cli.parameters import Bytes
from omb_py.core.options import Options
from omb_py.results.output import check_output

CHOICES: tuple[OptionRow, ...] = (
    OptionRow(
        ("--scaling",),
        {
            "type": click.Choice(["strong", "weak"]),
            "default": "strong",
            "help": "weak: the problem grows with the ranks; its size is that of one rank.",
        },
    ),
    OptionRow(
        ("--threads",),
        count(1) | {"default": 1, "help": "Threads of BLAS and OpenMP in each rank."},
    ),
    OptionRow(
        ("-i", "--repeats"),
        count(1) | {"default": REPEATS, "help": "How often the problem is solved and timed."},
    ),
    OptionRow(
        ("-x", "--warmup"),
        count(0) | {"default": WARMUP, "help": "How often it is solved before that."},
    ),
    OptionRow(
        ("--references/--no-references",),
        {
            "default": True,
            "help": "Also time one rank alone and the sequential program, by turns.",
        },
    ),
    OptionRow(
        ("--check/--no-check",),
        {"default": True, "help": "Compare the result with the sequential program's."},
    ),
    OptionRow(
        ("--split-wait/--no-split-wait",),
        {
            "default": True,
            "help": "A barrier before each collective call tells waiting from communicating.",
        },
    ),
)
SHARED = frozenset(
    "output force format quiet buffer binding pickle_protocol devices gpu_aware staging variant "
    "thread_level timeout debug".split()
)
"""Options of benchmarks that applications have too."""


def application_command(application: Application[Any]) -> click.Command:
    """The command that measures ``application``."""

    def callback(**values: Any) -> None:
        asked, debug = read_asked(application, values)
        math_threads.ask_for(asked.choices.threads)
        with launched(application.name, asked.options, debug) as found:
            from omb_py.apps.runtime.measurement import measure
            from omb_py.apps.runtime.rows import Setting

            measure(Setting(asked, found.buffer, found.job, found.watchdog, found.device_first))

    choices, of_benchmarks = (
        [click.Option(row.names, **row.settings) for row in rows] for rows in (CHOICES, TABLE)
    )
    shared = [option for option in of_benchmarks if option.name in SHARED]
    own = [problem_parameter(one) for one in fields(application.problem)]
    text = f"{application.summary}\n\n{application.details}".strip()
    return click.Command(
        application.name,
        callback=callback,
        params=[*own, *choices, *shared],
        short_help=application.summary,
        help=f"{text}\n\nmpiexec -n N omb-py {application.name}",
        context_settings=CONTEXT,
    )


def read_asked(application: Application[Any], values: dict[str, Any]) -> tuple[Asked, bool]:
    """What click's values ask for, and whether to show tracebacks.

    Raises `UsageError` where they do not go together.
    """
    debug = values.pop("debug")
    problem, choices = (
        kind(**{one.name: values.pop(one.name) for one in fields(kind)})
        for kind in (application.problem, Choices)
    )
    options = Options(**values)
    check_output(options.output, options.force)
    return Asked(application, problem, choices, options), debug


def problem_parameter(one: Field[Any]) -> click.Parameter:
    """The option, or the argument, that sets a field of a problem."""
    said = one.metadata
    settings: dict[str, Any] = {}
    if said["kind"] == "bytes":
        settings |= {"type": Bytes(), "metavar": "BYTES"}
    elif said["kind"] == "argument":
        settings |= {"type": click.Path(exists=True, readable=True)}
    elif said["choices"]:
        settings |= {"type": click.Choice(said["choices"])}
    elif isinstance(one.default, bool):
        settings |= FLAG
    elif isinstance(one.default, int):
        settings |= {"type": WholeNumber(min=said["least"]), "metavar": "N"}
    elif isinstance(one.default, float):
        settings |= {"type": Number(min=said["least"]), "metavar": "X"}
    if isinstance(one.default, tuple):
        settings |= {"multiple": True}
    if said["metavar"]:
        settings["metavar"] = said["metavar"]
    if said["kind"] == "argument":
        return click.Argument([one.name], **settings)
    name = one.name.replace("_", "-")
    settings |= {"default": one.default, "help": said["help"]}
    return click.Option([f"--{name}", one.name], **settings)
