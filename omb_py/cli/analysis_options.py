"""Options and functions that the commands that read results share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from omb_py.cli import debug_option
from omb_py.core.errors import UsageError, needing
from omb_py.core.text.status import status
from omb_py.core.text.words import count, first_of
from omb_py.results.metadata import Runs
from omb_py.results.readers import Problem

if TYPE_CHECKING:
    from omb_py.analysis.table import Results

MAX_NOTES = 5
"""Problems with files that are printed; of the others only their number."""


def options(*chosen: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds several options, in their order."""

    def decorate(function: Any) -> Any:
        for option in reversed(chosen):
            function = option(function)
        return function

    return decorate


name_option = click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Display name of a file or folder, in the order of the arguments; repeatable.",
)


def listed(text: str) -> tuple[str, ...]:
    """Return the values of a comma-separated option."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


row_options = options(
    click.option(
        "--where",
        multiple=True,
        metavar="COLUMN=VALUE[,...]",
        help="Only rows with these values, as in buffer=numpy,cupy; split= is an empty cell.",
    ),
    click.option(
        "--assume",
        multiple=True,
        metavar="[FILES:]COLUMN=VALUE",
        help="Value of a column in files that lack it, as in ranks=8 or '*.txt:host_names=*'.",
    ),
    debug_option,
)
"""Options that choose rows, and give missing columns a value."""

input_options = options(
    row_options,
    click.option(
        "--statistic",
        type=click.Choice(["auto", "median", "mean"]),
        default="auto",
        help="Statistic of a row; auto: the median if all rows have it, else the mean.",
    ),
)
"""The same, and the choice of the statistic of a row that counts."""


def output_options(*formats: str) -> Callable[[Any], Any]:
    """``--format``, one of ``formats``, ``--output`` and ``--force``: the parameter ``to``."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_target(
            *args: Any, kind: str | None, output: str | None, force: bool, **values: Any
        ) -> Any:
            from omb_py.core.text.tables import target

            return command(*args, to=target(output, kind, force, formats), **values)

        return with_target

    return options(
        click.option(
            "--format",
            "kind",
            type=click.Choice(sorted(formats)),
            help="Format; by default that of the suffix of --output, else text.",
        ),
        click.option(
            "--output",
            "-o",
            metavar="FILE",
            type=click.Path(),
            help="File to write instead of standard output.",
        ),
        click.option("--force", is_flag=True, help="Overwrite files that are there."),
        add,
    )


def refuse_options(names: Iterable[str], why: str) -> None:
    """Refuse options that the running command has, but does not use in its present mode.

    ``names`` are those of parameters. Raises `UsageError` for the first one that was given; ``why``
    completes the sentence.
    """
    context = click.get_current_context()
    parameters = {one.name: one for one in context.command.params}
    for name in names:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise UsageError(f"{max(parameters[name].opts, key=len)} {why}")


def read(
    paths: Sequence[str],
    where: Iterable[str] = (),
    assume: Iterable[str] = (),
    names: Sequence[str] | None = None,
) -> Results:
    """Return the results in files and folders; parts left out are reported on stderr.

    ``names``, the values of ``--name`` or none of them, distinguish paths with the same
    configurations (`omb_py.analysis.sources.label_sources`); None makes repeated runs of them.
    Raises `OmbError` if a file cannot be read or no row is left, `UsageError` for invalid options,
    `MissingPackageError` if the extra for analysis is not installed.
    """
    with needing("tables"):
        from omb_py.analysis import select, sources, table

    with status() as say:
        say(f"reading {', '.join(map(str, paths))}")
        results = table.load(paths, select.assumptions(assume))
    note_problems(results.problems)
    apart = paths if names is not None else ()
    kinds = (results.rows, results.overhead, results.pairs)
    rows, overhead, pairs = select.where_of_kinds(kinds, where)
    rows, notes = sources.label_sources(rows, apart, names or ())
    for sentence in notes:
        note(sentence)
    return replace(results, rows=rows, overhead=overhead, pairs=pairs, notes=tuple(notes))


def read_to_judge(
    paths: Sequence[str], where: Iterable[str], assume: Iterable[str], command: str
) -> tuple[Results, list[str]]:
    """Return results of benchmarks (`read`), and what no gate passes over: what was lost, and what
    cannot be."""
    results = read(paths, where, assume)
    note_others(results, command)
    return results, [*results.lost, *note_doubts(results)]


def note_problems(problems: Sequence[object]) -> None:
    """Print the first problems with files, and how many more there are; alike ones are one."""
    alike: dict[str, list[object]] = {}
    for problem in sorted(problems, key=lambda one: not getattr(one, "lost", True)):
        text = problem.text if isinstance(problem, Problem) else str(problem)
        alike.setdefault(re.sub(r"\d+", "0", text), []).append(problem)
    for first, *others in list(alike.values())[:MAX_NOTES]:
        places = [one.where if isinstance(one, Problem) else str(one) for one in others]
        note(f"{first}{f'; so are {first_of(places, 3)}' if others else ''}")
    if more := sum(map(len, list(alike.values())[MAX_NOTES:])):
        note(f"and {more} more such lines")


def note_doubts(results: Results) -> list[str]:
    """Report impossible numbers of benchmark rows, and messages over a slower transport.

    Return the impossible numbers: no gate passes over them.
    """
    from omb_py.analysis import anomalies, values

    found = anomalies.cannot_be(values.value_column(results.rows))
    wrong = [one for one in found if one.severity == "error"]
    note_problems([*wrong, *anomalies.by_sockets(results.runs)])
    return list(map(str, wrong))


def note_transports(runs: Mapping[str, Runs]) -> None:
    """Report that messages of results, by their names, went over different transports.

    ``runs`` has the metadata of each result's runs.
    """
    found = {
        name: sorted({data["transport"] for data in own.values() if data.get("transport")})
        for name, own in runs.items()
    }
    if len({tuple(words) for words in found.values() if words}) > 1:
        each = (f"{name} by {' and '.join(words)}" for name, words in found.items() if words)
        note(f"the transports differ: {'; '.join(each)}")


def note_others(results: Results, command: str) -> None:
    """Report that a command ignores rows of ``omb-py overhead`` and ``pairs``."""
    for rows, made_by in ((results.overhead, "overhead"), (results.pairs, "pairs")):
        if len(rows):
            are = "is" if len(rows) == 1 else "are"
            note(
                f"{count(len(rows), 'row')} of omb-py {made_by} {are} left out: omb-py {command} "
                "is about benchmarks"
            )


def note(text: str) -> None:
    """Print one line on stderr; if that cannot be written, results are not lost for it."""
    with suppress(OSError):
        click.echo(f"omb-py: note: {text}", err=True)
