"""Parts of the documentation that follow from the code, and from the files of results/.

A page has each between ``<!-- generated: NAME -->``, with a key of `MADE`, and
``<!-- end of generated -->``.

Usage: python -m docs.generate (writes all of them anew, and prints the pages that changed)
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docs import measured
from omb_py import algorithms
from omb_py.benchmarks import (
    Benchmark,
    all_benchmarks,
    by_family,
    own_benchmarks,
)
from omb_py.options.native import has_program, program_parameters
from omb_py.results.columns import (
    LOADED,
    OverheadRow,
    PairRow,
    Row,
    groups,
    kind_text,
)
from omb_py.sweeps import render, sweep_job
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.field_types import (
    Duration,
    EnvironmentName,
    LimitsByNodes,
    Line,
    Name,
    Word,
    shortest,
)
from omb_py.sweeps.machine import ROWS, JobSettings, Library, Machine, Queue
from omb_py.sweeps.schedulers import SCHEDULERS

RECORD = Path(__file__).parent / "support.csv"
"""What `make support` found: a row for each benchmark, MPI library and binding."""

WORKS = ("pass", "runs")


@dataclass(frozen=True)
class Found:
    """The outcome of one benchmark through one binding on one MPI library."""

    benchmark: str
    mpi: str
    binding: str
    outcome: str


def benchmarks() -> str:
    """omb-py's own benchmarks, family by family, then the reasons why some do not run."""
    record = read_record()
    libraries = sorted({found.mpi for found in record})
    reasons: dict[str, int] = {}
    lines: list[str] = []
    for family, members in by_family(own_benchmarks()).items():
        lines += ["", f"## {family.capitalize()}", ""]
        lines.append("| | native OMB | measures | " + " | ".join([*libraries, ""]).rstrip())
        lines.append("|---|---|---|" + "---|" * len(libraries))
        for benchmark in members:
            cells = [cell(benchmark, library, record, reasons) for library in libraries]
            lines.append("| " + " | ".join([*described(benchmark), *cells, ""]).rstrip())
    if reasons:
        lines += ["", "## Why not", ""]
        lines += [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join(lines[1:])


def described(benchmark: Benchmark) -> tuple[str, str, str]:
    """A benchmark's name, native OMB's and what it measures."""
    native = f"`osu_{benchmark.name}`" if benchmark.native else "-"
    return f"`{benchmark.name}`", native, benchmark.summary.replace("|", "\\|")


def cell(benchmark: Benchmark, library: str, record: list[Found], reasons: dict[str, int]) -> str:
    """The bindings through which a benchmark ran, and numbers of the reasons against others."""
    of_it = [found for found in record if (found.benchmark, found.mpi) == (benchmark.name, library)]
    words = [found.binding or "yes" for found in of_it if found.outcome in WORKS]
    for found in of_it:
        if found.outcome not in WORKS:
            number = reasons.setdefault(general(found.outcome), len(reasons) + 1)
            words.append(f"not {found.binding} ({number})" if found.binding else f"no ({number})")
    return ", ".join(words) or "not tried"


def general(reason: str) -> str:
    """A reason without the names of functions, so that what holds for many is said once."""
    reason = re.sub(r" has no \w+", " has no such call", reason)
    return re.sub(
        r"mpi4py's \w+ (.*?); measure \w+", r"mpi4py's plain form \1; measure that", reason
    )


def read_record() -> list[Found]:
    """What was found; nothing where no record is there."""
    if not RECORD.is_file():
        return []
    with RECORD.open(newline="", encoding="utf-8") as file:
        return [Found(**row) for row in csv.DictReader(file)]


def algorithm_table() -> str:
    """The table of the names for ``--coll-algorithm``."""
    libraries = [algorithms.library(name) for name in algorithms.MODULES]
    lines = [f"| collective | {' | '.join(library.name for library in libraries)} |"]
    lines.append("|---|" + "---|" * len(libraries))
    for name in dict.fromkeys(name for library in libraries for name in library.table):
        cells = [", ".join(f"`{word}`" for word in library.words(name)) for library in libraries]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


LETTERS = "abcdfhiklmpqrstuvwxzDGIMNPRTVW"
"""The single letters of native OMB 7.4 and 7.5; 7.5 no longer has -M, and adds -q."""


def option_table() -> str:
    """Each letter of native OMB with the option that it is here, and the programs that have it."""
    lines = ["| native OMB | omb-py | programs | |", "|---|---|---|---|"]
    programs = [one for one in all_benchmarks() if has_program(one)]
    known = {one.name: program_parameters(one) for one in programs}
    for letter in LETTERS:
        found: dict[tuple[str, str], list[str]] = {}
        for name, options in known.items():
            for option in options:
                if isinstance(option, click.Option) and f"-{letter}" == option.opts[0]:
                    text = " ".join((option.help or "").split())
                    found.setdefault((max(option.opts, key=len), text), []).append(name)
        if letter == "h":
            found["--help", "Show this message and exit."] = list(known)
        for (long, text), names in found.items():
            many = "all" if len(names) == len(programs) else some(names)
            lines.append(f"| `-{letter}` | `{long}` | {many} | {text} |")
    return "\n".join(lines)


def some(names: list[str]) -> str:
    """A few names, or how many there are."""
    return ", ".join(f"`{name}`" for name in names) if len(names) <= 3 else str(len(names))


COLUMN_TABLES = {
    "columns": Row.columns,
    "loaded-columns": LOADED,
    "overhead-columns": OverheadRow.columns,
    "pairs-columns": PairRow.columns,
}
"""The tables of columns of docs/results.md, in its order."""


def column_table(part: str) -> str:
    """The table of some columns; those of the tables above it share a row."""
    place = list(COLUMN_TABLES).index(part)
    above = {name for names in list(COLUMN_TABLES.values())[:place] for name in names}
    names = COLUMN_TABLES[part]
    rows = [(", ".join(name for name in names if name in above), "", "as above")]
    new = (name for name in names if name not in above)
    rows += [(", ".join(some), kind_text(one), one.meaning) for some, one in groups(new)]
    lines = ["| column | holds | meaning |", "|---|---|---|"]
    for some, holds, meaning in rows:
        if some:
            lines.append(f"| `{some.replace(', ', '`, `')}` | {holds} | {meaning} |")
    return "\n".join(lines)


SECTIONS: dict[str, type[BaseModel]] = {
    "": Machine,
    "job": JobSettings,
    "job.queues.NAME": Queue,
    "library.NAME": Library,
}
"""The tables of a machine file; the first has no header."""

KINDS = {
    Name: "name",
    Word: "word",
    Line: "text",
    Duration: "duration",
    LimitsByNodes: "duration, or list of pairs",
    EnvironmentName: "name",
    int: "whole number",
    bool: "true or false",
    Queue: "table",
    JobSettings: "table",
    Library: "table",
}

TRIED: dict[str, dict[str, Any]] = {
    "nodes": {"nodes": 2},
    "cores_per_node": {"cores_per_node": 4},
    "gpus_per_node": {"cores_per_node": 4, "gpus_per_node": 1},
    "job.queue": {"job": {"queue": "QUEUE"}},
    "job.account": {"job": {"account": "PROJECT"}},
    "job.walltime": {"job": {"walltime": "1h"}},
    "job.filesystems": {"job": {"filesystems": ["home", "eagle"]}},
    "job.select": {"job": {"select": ["RESOURCE"]}},
    "job.attributes": {"job": {"attributes": ["ATTRIBUTE"]}},
}
"""Settings of which the directives are shown, scheduler by scheduler."""


INTRODUCTION = """\
A duration is a number of seconds, or text such as `"90s"`, `"30m"`, `"1h30m"` or `"0:30:00"`. A \
word has only letters, digits and `_ . / : @ = , + ~ ^ -`, since it is handed to a scheduler or a \
shell. A name begins with a letter or a digit and continues with these or `_ . -`.

"""


@dataclass(frozen=True)
class Key:
    """A key of a configuration: its name, type, default, meaning, and a line as an example."""

    name: str
    kind: str
    default: str
    meaning: str
    example: str


def keys(model: type[BaseModel]) -> Iterator[Key]:
    """The keys of a table that stand in it themselves, in the order of the model."""
    hints = get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        if not field.examples:
            continue  # a table that is shown on its own
        yield Key(
            name=name,
            kind=one_of(ROWS[name]) if name in ROWS else in_words(hints[name]),
            default=default(field, hints[name]),
            meaning=prose(field.description),
            example=f"{name} = {write_text(field.examples[0])}",
        )


def one_of(words: Iterable[str]) -> str:
    """A choice of words."""
    return "one of " + ", ".join(f"`{word}`" for word in words)


def in_words(hint: Any) -> str:
    """A type in words."""
    if hint in KINDS:
        return KINDS[hint]
    inner = [part for part in get_args(hint) if part not in (type(None), Ellipsis)]
    if get_origin(hint) is Literal:
        return one_of(inner)
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(in_words, inner))
    if get_origin(hint) is tuple:
        return f"list of {in_words(inner[0])}s"
    return f"table of {in_words(inner[1])}s by name"


def default(field: FieldInfo, hint: Any) -> str:
    """What a key is where it is left out."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value in (None, (), {}, ""):
        return "none"
    if hint == Duration:
        value = shortest(value)
    return f"`{write_text(value)}`"


def directives(scheduler: str, **values: Any) -> list[str]:
    """What a job of a machine asks a scheduler for, a line each."""
    machine = Machine.model_validate({"name": "x", "scheduler": scheduler} | values)
    experiment = {"benchmarks": "barrier", "ranks_per_node": 1}
    sweep = Sweep.model_validate({"name": "x", "experiments": [experiment]})
    return render.directives(sweep_job.SweepJob(sweep, machine, "x", "x"))


def by_scheduler() -> Iterator[tuple[str, list[list[str]]]]:
    """Each setting, and the directives that it adds to a job's or changes, by scheduler."""
    for name, values in TRIED.items():
        found: list[list[str]] = []
        for scheduler, row in SCHEDULERS.items():
            setting = name.removeprefix("job.")
            limited = setting in ("select", "attributes", "filesystems")
            if limited and setting not in row.settings:
                found.append([])
                continue
            without = {key: values[key] for key in values if key != name}
            before = directives(scheduler, **({} if "job" in values else without))
            found.append([one for one in directives(scheduler, **values) if one not in before])
        yield name, found


def write_text(value: Any) -> str:
    """A value as TOML has it on one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {write_text(item)}' for key, item in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_text, value))}]"
    # JSON's strings and numbers are TOML's too.
    return json.dumps(value, ensure_ascii=False)


def prose(text: str | None) -> str:
    """The documentation of a key without the line breaks that it has in the code."""
    return " ".join((text or "").split())


def key_tables() -> str:
    """The tables of the keys of a machine file."""
    parts = [INTRODUCTION]
    for section, model in SECTIONS.items():
        parts.append(f"### `[{section}]`\n\n" if section else "### Above all tables\n\n")
        parts.append("| key | type | default | meaning | example |\n|---|---|---|---|---|\n")
        for key in keys(model):
            cells = (f"`{key.name}`", key.kind, key.default, key.meaning, f"`{key.example}`")
            parts.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n")
        parts.append("\n")
    parts.append("### Directives by scheduler\n\n")
    parts.append(f"| setting | {' | '.join(row.title for row in SCHEDULERS.values())} |\n")
    parts.append("|---" * (1 + len(SCHEDULERS)) + "|\n")
    for name, found in by_scheduler():
        asked = ["<br>".join(f"`{line}`" for line in lines) or "-" for lines in found]
        parts.append(f"| `{name}` | {' | '.join(asked)} |\n")
    return "".join(parts)


MADE: dict[str, Callable[[], str]] = {
    "native-series": measured.native_series,
    "beside-native": measured.beside_native,
    "layers": measured.layers,
    "families": measured.families,
    "abi": measured.abi,
    "transports": measured.transports,
    "benchmarks": benchmarks,
    "algorithms": algorithm_table,
    "letters": option_table,
    "keys": key_tables,
    **{part: partial(column_table, part) for part in COLUMN_TABLES},
}

MARKED = re.compile(
    r"^(?P<begin><!-- generated: (?P<part>\S+) -->)$.*?^(?P<end><!-- end of generated -->)$",
    re.MULTILINE | re.DOTALL,
)


def up_to_date(page: str) -> str:
    """Return a page with each generated part as the code has it now; raises KeyError."""
    return MARKED.sub(
        lambda part: f"{part['begin']}\n\n{MADE[part['part']]().strip()}\n\n{part['end']}", page
    )


def main() -> None:
    """Write the generated parts of all pages anew, and print the pages that changed."""
    for page in sorted(Path(__file__).parent.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = up_to_date(text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(page)


if __name__ == "__main__":
    main()
