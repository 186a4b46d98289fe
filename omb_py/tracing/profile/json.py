"""JSON: all of a profile, for programs."""

from __future__ import annotations

import json
from pathlib import Path

from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.tracing.profile.profile import Profile

KIND = "a profile in JSON"
NAME = "profile.json"


def write(profile: Profile, path: str | Path) -> None:
    """Write all of a profile; raises `OmbError` when the file cannot be written."""
    files.write(path, text(profile))


def text(profile: Profile) -> str:
    """The JSON of a profile: a line for each rank."""
    found = profile.plain()
    rows = ",\n".join(map(json.dumps, found.pop("members")))
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    return "{\n" + ",\n".join([*lines, f'"members": [\n{rows}\n]']) + "\n}\n"


def read(path: str | Path) -> Profile:
    """The profile in a file; raises `UsageError` where it is none or is damaged."""
    with needing("analysis"):
        from omb_py.tracing.profile import schema

    content = files.read(path, UsageError)
    try:
        return schema.profile_of(json.loads(content))
    except UsageError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is damaged: it is no JSON") from error
