"""JSON schemas of configurations, by which editors complete and check them."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from omb_py.sweeps import shipped
from omb_py.sweeps.toml import prose

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
    return f"{DIRECTIVE}{(shipped.folder() / FILES[kind]).resolve().as_uri()}"
