"""JSON: all of a profile, for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.tracing.profile import schema
from omb_py.tracing.profile.profile import Profile

KIND = "a profile in JSON"
NAME = "profile.json"


def write(profile: Profile, path: str | Path) -> None:
    """Write all of a profile; raises `OmbError` when the file cannot be written."""
    files.write(path, text(profile))


def text(profile: Profile) -> str:
    """The JSON of a profile: a line for each rank."""
    found = schema.parts(profile)
    members: dict[int, dict[str, Any]] = {}
    for values in found.members:
        members[values["rank"]] = {**values, "routines": [], "calls": []}
    for rank, row in found.told:
        members[rank]["routines"].append(row)
    for rank, row in found.cells:
        members[rank]["calls"].append(row)
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.about.items()]
    rows = ",\n".join(json.dumps(member) for member in members.values())
    return "{\n" + ",\n".join([*lines, f'"members": [\n{rows}\n]']) + "\n}\n"


def read(path: str | Path) -> Profile:
    """The profile in a file; raises `UsageError` where it is none or is damaged."""
    content = files.read(path, UsageError)
    try:
        return _profile(json.loads(content))
    except UsageError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is damaged: it is no JSON") from error


def _profile(found: Any) -> Profile:
    if not isinstance(found, dict):
        raise UsageError("it is no profile of omb-py")
    members = _rows(found.get("members"), "members")
    ranks = [schema.whole(member.get("rank"), "rank") for member in members]
    return schema.join(
        schema.Parts(
            found,
            members,
            _of_members(ranks, members, "calls"),
            _of_members(ranks, members, "routines"),
        )
    )


def _of_members(
    ranks: list[int], members: list[dict[str, Any]], name: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    for rank, member in zip(ranks, members, strict=True):
        for row in _rows(member.get(name), name):
            yield rank, row


def _rows(found: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise UsageError(f"its {name} are no rows")
    return found
