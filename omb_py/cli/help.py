"""Help with the most important parts first: commands by purpose, options by group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

import click

from omb_py.options.option import Option
from omb_py.options.parse import OptionsCommand
from omb_py.options.table import EXTRA

WIDTH = 80
START = """\
  mpiexec -n 2 omb-py latency    measure; omb-py latency --help: its options
  omb-py info; omb-py completion bash   what works here; completion (zsh, fish)"""


ALL = "omb_py.help_all"
"""The key by which a context notes ``--help-all``."""


class GroupedCommand(OptionsCommand):
    """A command whose help has a heading for each group of its options.

    Groups of `EXTRA` are only in the help of ``--help-all``, an option of commands with those
    groups.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if any(isinstance(one, Option) and one.group in EXTRA for one in self.params):
            names = ["--help-all"]
            text = "Show the options of devices, of single bindings and rare ones, too, and exit."
            flags: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
            self.params.append(Option(names, group="Output", help=text, callback=show_all, **flags))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            # from click 8.5.1 on, arguments have records, too
            if record is not None and isinstance(parameter, click.Option):
                group = parameter.group if isinstance(parameter, Option) else "Output"
                if group not in EXTRA or ALL in ctx.meta:
                    groups.setdefault(group, []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


def show_all(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Print the help with all groups, and exit."""
    if wanted and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def screen(
    families: Mapping[str, Sequence[str]],
    applications: Sequence[str],
    commands: Mapping[str, Mapping[str, str]],
) -> str:
    """Return the help of ``omb-py`` on one screen.

    ``families`` are names by heading, of which the largest is shown, and ``omb-py list`` has all;
    ``commands`` are, too, each with its sentence.
    """
    number = sum(map(len, families.values()))
    variants = {name for name in families for base in families if name.endswith(f" {base}")}
    largest = max(families.keys() - variants, key=lambda name: len(families[name]))
    others = [name.split()[0] if name in variants else name for name in families]
    others.remove(largest)
    lines = ["Usage: omb-py [-h | --version] COMMAND ...", START]
    lines.append(f"Benchmarks (all {number}, and those of plug-ins: omb-py list):")
    lines.append(_entry(largest, families[largest]))
    lines.append(_entry("others", dict.fromkeys(others)))
    lines.append(_entry("applications", applications))
    for heading, sentences in commands.items():
        lines.append(f"{heading}:")
        lines += [f"  {name:<12}{sentence}" for name, sentence in sentences.items()]
    return "\n".join(lines)


def _entry(name: str, members: Iterable[str]) -> str:
    """Return a name, then as many of its members as the line has room for."""
    (text,) = wrap(
        ", ".join(members), WIDTH - 18, max_lines=1, placeholder=" ...", break_on_hyphens=False
    )
    return f"  {name:<16}{text}"
