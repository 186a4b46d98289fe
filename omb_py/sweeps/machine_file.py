"""Machine files for people to edit: every key, with a comment, and those that are set."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from pydantic import BaseModel, ValidationError

from omb_py.sweeps import reference, schema, shipped
from omb_py.sweeps.detection import Cluster
from omb_py.sweeps.machine import NO_SCHEDULER, JobSettings, Machine
from omb_py.sweeps.toml import reason, written
from omb_py.sweeps.values import shortest

WIDTH = 98

WHOLE_NODES = {"attributes": ["place=scatter:excl"]}
"""Without it PBS may put two chunks of `select` on one node, and jobs of others beside them."""


def new(values: Mapping[str, Any], job: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    """The text of a machine file that sets ``values``, and ``job`` in its table.

    ``notes`` are comments behind keys. All other keys are there as comments, with an example each.
    """
    lines = [
        schema.reference("machines"),
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


def job_of(scheduler: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """What jobs ask for, and what a benchmark's jobs should on this scheduler."""
    return {**(WHOLE_NODES if scheduler == "pbs" else {}), **job}


def walltime(found: Cluster) -> str:
    """A walltime that the cluster takes."""
    usual = float(JobSettings.model_fields["walltime"].default)
    return shortest(min(usual, found.walltime or usual))


def table(
    model: type[BaseModel], values: Mapping[str, Any], notes: Mapping[str, str]
) -> Iterator[str]:
    """The lines of a table: keys that are set, and the others as comments."""
    for key in reference.keys(model):
        yield ""
        first = re.split(r"(?<=[a-z`)])[.;] ", key.meaning)[0].rstrip(".")
        yield from wrap(first, WIDTH, initial_indent="# ", subsequent_indent="# ")
        if key.name in values:
            note = f"  # {notes[key.name]}" if key.name in notes else ""
            yield f"{key.name} = {written(values[key.name])}{note}"
        else:
            yield f"# {key.example}"


def copy(path: Path) -> str:
    """The text of a shipped machine file, with a schema's line that is right wherever it goes."""
    lines = path.read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if not line.startswith(schema.DIRECTIVE)]
    inside = path.resolve().is_relative_to(shipped.folder().resolve())
    return "\n".join([schema.reference("machines"), *own] if inside else lines) + "\n"


def fault(values: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first key whose value is not right, and why; None where all are."""
    try:
        Machine.model_validate({"name": "x"} | dict(values) | {"job": dict(job)})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = tuple(first["loc"])
        return str(place[1] if place[0] == "job" else place[0]), reason(first)
    return None
