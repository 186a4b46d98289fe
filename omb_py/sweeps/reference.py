"""The keys of machine files, as text: what each means, and what schedulers make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import fill, indent
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from omb_py.sweeps import batch, render
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.machine import JobSettings, Machine, Queue
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.toml import prose, written
from omb_py.sweeps.values import Duration, EnvironmentName, Line, Name, Word, shortest

SECTIONS: dict[str, type[BaseModel]] = {
    "": Machine,
    "job": JobSettings,
    "job.queues.NAME": Queue,
}
"""The tables of a machine file; the first has no header."""

KINDS = {
    Name: "name",
    Word: "word",
    Line: "text",
    Duration: "duration",
    EnvironmentName: "name",
    int: "whole number",
    bool: "true or false",
    Queue: "table",
    JobSettings: "table",
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
## Keys

Unknown keys are errors. A duration is a number of seconds, or text such as `"90s"`, `"30m"`, \
`"2h"` or `"0:30:00"`. A word has letters, digits and `_ . / : @ = , + ~ ^ -` only, since it is \
handed to a scheduler or a shell. A name begins with a letter or a digit and goes on with these \
or `_ . -`.

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
            kind=kind(hints[name], field),
            default=default(field, hints[name]),
            meaning=prose(field.description),
            example=f"{name} = {written(field.examples[0])}",
        )


def kind(hint: Any, field: FieldInfo) -> str:
    """The type of a key in words."""
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "enum" in extra:
        return "one of " + ", ".join(f"`{word}`" for word in extra["enum"])  # type: ignore[union-attr]
    return in_words(hint)


def in_words(hint: Any) -> str:
    """A type in words."""
    if hint in KINDS:
        return KINDS[hint]
    inner = [part for part in get_args(hint) if part not in (type(None), Ellipsis)]
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(f"`{word}`" for word in inner)
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
    return f"`{written(value)}`"


def directives(scheduler: str, **values: Any) -> list[str]:
    """What a job of a machine asks a scheduler for, a line each."""
    machine = Machine.model_validate({"name": "x", "scheduler": scheduler} | values)
    experiment = {"benchmarks": "barrier", "ranks_per_node": 1}
    sweep = Sweep.model_validate({"name": "x", "experiments": [experiment]})
    return asked_for(batch.Job(sweep, machine, "x", "x", machine.max_nodes, (1,)))


def asked_for(job: batch.Job) -> list[str]:
    """The directives of a job's script that its scheduler reads."""
    sentinel = f"{job.scheduler.sentinel} "
    lines = render.script(job).splitlines()
    unread = job.scheduler.unread
    return [line for line in lines if line.startswith(sentinel) and not line.startswith(unread)]


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


def text() -> str:
    """All keys with their examples, types, defaults and meanings."""
    parts = []
    for section, model in SECTIONS.items():
        parts.append(f"\n[{section}]\n" if section else "")
        for key in keys(model):
            otherwise = "" if key.default == "required" else "default: "
            body = f"{key.meaning} ({key.kind}; {otherwise}{key.default})".replace("`", "")
            parts.append(f"{key.example}\n{indent(fill(body, 92), '    ')}\n")
    return "".join(parts)


def markdown() -> str:
    """The last part of docs/machines.md."""
    parts = [INTRODUCTION]
    for section, model in SECTIONS.items():
        parts.append(f"### `[{section}]`\n\n" if section else "### Above all tables\n\n")
        parts.append("| key | type | default | meaning | example |\n|---|---|---|---|---|\n")
        for key in keys(model):
            cells = (f"`{key.name}`", key.kind, key.default, key.meaning, f"`{key.example}`")
            parts.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n")
        parts.append("\n")
    parts.append("### What schedulers are asked for\n\n")
    parts.append(f"| setting | {' | '.join(row.title for row in SCHEDULERS.values())} |\n")
    parts.append("|---" * (1 + len(SCHEDULERS)) + "|\n")
    for name, found in by_scheduler():
        asked = ["<br>".join(f"`{line}`" for line in lines) or "-" for lines in found]
        parts.append(f"| `{name}` | {' | '.join(asked)} |\n")
    return "".join(parts)
