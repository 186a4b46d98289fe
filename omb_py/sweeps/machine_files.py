"""Machine files for people: what each key means, files with comments, schemas for editors."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill, indent, wrap
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from omb_py.sweeps import batch, catalog, render
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.detection import Cluster
from omb_py.sweeps.field_types import (
    Duration,
    EnvironmentName,
    LimitsByNodes,
    Line,
    Name,
    Word,
    shortest,
)
from omb_py.sweeps.machine import NO_SCHEDULER, JobSettings, Machine, Queue
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.toml import prose, reason, write_text

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
    LimitsByNodes: "duration, or list of pairs",
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
`"1h30m"` or `"0:30:00"`. A word has letters, digits and `_ . / : @ = , + ~ ^ -` only, since it is \
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
            example=f"{name} = {write_text(field.examples[0])}",
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
    return f"`{write_text(value)}`"


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
    parts.append("### What schedulers are given\n\n")
    parts.append(f"| setting | {' | '.join(row.title for row in SCHEDULERS.values())} |\n")
    parts.append("|---" * (1 + len(SCHEDULERS)) + "|\n")
    for name, found in by_scheduler():
        asked = ["<br>".join(f"`{line}`" for line in lines) or "-" for lines in found]
        parts.append(f"| `{name}` | {' | '.join(asked)} |\n")
    return "".join(parts)


WIDTH = 98


def new(values: Mapping[str, Any], job: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    """The text of a machine file that sets ``values``, and ``job`` in its table.

    ``notes`` are comments behind keys. All other keys are there as comments, with an example each.
    """
    lines = [
        reference("machines"),
        f"# {values['name']}: made by omb-py machine new, to be edited. A key behind a # is not "
        "set.",
        "# What each key means: omb-py machine keys",
        *table(Machine, values, notes),
    ]
    if values.get("scheduler", NO_SCHEDULER) != NO_SCHEDULER:
        lines += ["", "[job]", *table(JobSettings, job, notes)]
    return "\n".join(lines) + "\n"


def completed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, and the virtual environment that this program runs in, if it is one."""
    if sys.prefix == sys.base_prefix or Path(sys.prefix) == Path(".venv").absolute():
        return dict(values)
    return {**values, "virtual_environment": sys.prefix}


def walltime(found: Cluster) -> str:
    """A walltime that the cluster takes."""
    usual = float(JobSettings.model_fields["walltime"].default)
    return shortest(min(usual, found.walltime or usual))


def table(
    model: type[BaseModel], values: Mapping[str, Any], notes: Mapping[str, str]
) -> Iterator[str]:
    """The lines of a table: keys that are set, and the others as comments."""
    for key in keys(model):
        yield ""
        first = re.split(r"(?<=[a-z`)])[.;] ", key.meaning)[0].rstrip(".")
        yield from wrap(first, WIDTH, initial_indent="# ", subsequent_indent="# ")
        if key.name in values:
            note = f"  # {notes[key.name]}" if key.name in notes else ""
            yield f"{key.name} = {write_text(values[key.name])}{note}"
        else:
            yield f"# {key.example}"


def copy(path: Path) -> str:
    """The text of a shipped machine file, with a schema's line that is right wherever it goes."""
    lines = path.read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if not line.startswith(DIRECTIVE)]
    inside = path.resolve().is_relative_to(catalog.folder().resolve())
    return "\n".join([reference("machines"), *own] if inside else lines) + "\n"


def fault(values: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first key whose value is not right, and why; None where all are."""
    try:
        Machine.model_validate({"name": "x"} | dict(values) | {"job": dict(job)})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = tuple(first["loc"])
        return str(place[1] if place[0] == "job" else place[0]), reason(first)
    return None


FILES = {"machines": "machine.schema.json", "sweeps": "sweep.schema.json"}
"""What the schemas of the kinds of configurations are called, beside those that are shipped."""

DIRECTIVE = "#:schema "
"""What a line begins with that names a file's schema to taplo and editors that use it."""

IN_ECMA_SCRIPT = {r"\z": "$", r"\x{85}": r"\u0085", r"\x{2028}": r"\u2028", r"\x{2029}": r"\u2029"}
"""Parts of regular expressions that JSON schemas write differently from pydantic."""


def schema(model: type[BaseModel]) -> str:
    """The JSON schema of a kind of configuration, as text."""
    found = simplified(model.model_json_schema())
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "title": model.__name__}
    text = json.dumps(draft | found, indent=2)
    # Draft 7 is what taplo validates by: definitions have another name there.
    return text.replace("#/$defs/", "#/definitions/").replace('"$defs"', '"definitions"') + "\n"


def simplified(value: Any) -> Any:
    """A schema without what TOML does not have (null) and titles that repeat the keys."""
    if isinstance(value, list):
        return [simplified(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {expression(key): simplified(item) for key, item in value.items()}
    if isinstance(found.get("title"), str):
        del found["title"]
    if found.get("default", 0) is None or isinstance(found.get("default"), dict):
        del found["default"]
    for word, translate in (("pattern", expression), ("description", prose)):
        if isinstance(found.get(word), str):
            found[word] = translate(found[word])
    kinds = [kind for kind in found.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        del found["anyOf"]
        return kinds[0] | found
    return found | ({"anyOf": kinds} if kinds else {})


def expression(pattern: str) -> str:
    """A regular expression as JSON schemas write it."""
    for ours, theirs in IN_ECMA_SCRIPT.items():
        pattern = pattern.replace(ours, theirs)
    return pattern


def reference(kind: str) -> str:
    """The line for a copy of a configuration, anywhere, that names the installed schema."""
    return f"{DIRECTIVE}{(catalog.folder() / FILES[kind]).resolve().as_uri()}"
