"""The options of applications: those of the problem, of how it is measured, and benchmarks' own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from functools import cache
from typing import Any

import click

from omb_py.apps import (
    REPEATS,
    WARMUP_REPEATS,
    Application,
    ApplicationRequest,
    RunSettings,
)
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.options.option import Option, Row
from omb_py.options.parse import OptionsCommand, read_words
from omb_py.options.table import count, shared_options
from omb_py.options.types import BYTES, Number, WholeNumber
from omb_py.results.destinations import check_output

PROBLEM, MEASURING = "The problem", "How it is measured"

INSTEAD_OF_ITERATIONS = {"iterations": "--repeats", "warmup": "--warmup-repeats"}
"""An application's replacements for a benchmark's options."""


def refuse_iterations(ctx: click.Context, parameter: click.Parameter, text: str | None) -> None:
    """Raise `UsageError` for an option of benchmarks, which names what applications have."""
    if text is None:
        return
    name, own = str(parameter.name), [one.opts[0] for one in ctx.command.params]
    instead = [INSTEAD_OF_ITERATIONS[name], *(one for one in own if one.endswith(f"-{name}"))]
    raise UsageError(
        f"{' and '.join(parameter.opts)} are for benchmarks: "
        f"use {' or '.join(instead)} for {ctx.info_name}"
    )


# fmt: off
CHOICES = (
    Row("--scaling", ("strong", "weak"), "strong", "",
        "weak: the problem grows with the ranks; its size is that of one rank."),
    Row("--threads", count(1), 1, "", "Threads of BLAS and OpenMP in each rank."),
    Row("--repeats", count(1), REPEATS, "", "Timed solutions of the problem."),
    Row("--warmup-repeats", count(0), WARMUP_REPEATS, "", "Untimed solutions before those."),
    *(Row(names, "", None, "", callback=refuse_iterations, expose_value=False, hidden=True)
      for names in ("-i --iterations", "-x --warmup")),
    Row("--references/--no-references", bool, True, "",
        "Also time one rank alone and the sequential program, interleaved."),
    Row("--check/--no-check", bool, True, "",
        "Compare the result with the sequential program's."),
    Row("--split-wait/--no-split-wait", bool, True, "",
        "Put a barrier before each collective call, to tell waiting from communicating."),
)
# fmt: on


def application_parameters(application: Application[Any]) -> list[click.Parameter]:
    """Return the click parameters of an application."""
    return [
        *map(problem_parameter, fields(application.problem)),
        *(choice.option(MEASURING, {"split_wait": application.split_wait}) for choice in CHOICES),
        *shared_options("application"),
    ]


def parse_application(application: Application[Any], words: Iterable[str]) -> ApplicationRequest:
    """Return the request that the words after an application's name stand for.

    Raises `UsageError` for unknown options, and options that exclude each other.
    """
    return make_request(application, read_words(_reader(application), words))


@cache
def _reader(application: Application[Any]) -> click.Command:
    parameters = application_parameters(application)
    return OptionsCommand(application.name, params=parameters, add_help_option=False)


def make_request(application: Application[Any], values: Mapping[str, Any]) -> ApplicationRequest:
    """Return the request in click's ``values``; raise `UsageError` if they exclude each other."""
    values = dict(values)
    problem, run_settings = (
        kind(**{one.name: values.pop(one.name) for one in fields(kind) if one.name in values})
        for kind in (application.problem, RunSettings)
    )
    options = Options(**values)
    check_output(options.output, options.force, graph=options.graph)
    return ApplicationRequest(application, problem, run_settings, options)


def problem_parameter(one: Field[Any]) -> click.Parameter:
    """Return the option, or the argument, that sets a field of a problem."""
    said, default = one.metadata, one.default
    settings: dict[str, Any] = {"multiple": True} if isinstance(default, tuple) else {}
    if said["kind"] == "argument":
        kind: Any = click.Path(exists=True, readable=True)
    elif said["kind"] == "bytes":
        kind = BYTES
    elif said["choices"]:
        kind = click.Choice(said["choices"])
    elif isinstance(default, bool):
        kind, settings["is_flag"] = None, True
    elif isinstance(default, int):
        kind = WholeNumber(min=said["minimum"])
    else:
        kind = Number(min=said["minimum"]) if isinstance(default, float) else None
    settings |= {"type": kind, "metavar": said["metavar"] or None}
    if said["kind"] == "argument":
        return click.Argument([one.name], **settings)
    settings |= {"default": default, "help": said["help"], "show_default": default != ""}
    names = [*(["-T"] if one.name == "dtype" else []), f"--{one.name.replace('_', '-')}"]
    return Option([*names, one.name], group=PROBLEM, **settings)
