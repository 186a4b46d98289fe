"""TOML files as checked models; errors name the file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.core.text.words import nearest
from omb_py.sweeps.field_types import unfitting

MAX_FAULTS = 5
"""Faults of a file that are named; further ones are counted."""

Key = tuple[str | int, ...]


class Strict(BaseModel):
    """A table of a configuration: its keys are known, and it never changes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True
    )


Model = TypeVar("Model", bound=BaseModel)


def read(path: Path, model: type[Model]) -> Model:
    """Return the file as a ``model``.

    Raises `OmbError` when it cannot be read and `UsageError` when it is not TOML or not such a
    model, naming the line, the key and permitted values.
    """
    text = files.read_text(path)
    document = files.parsed(text, tomllib.loads, path, "TOML", UsageError)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        lines = dict(key_lines(text))
        faults = [describe(fault, lines, model) for fault in error.errors(include_url=False)]
        shown = list(dict.fromkeys(faults))
        more = f"; and {len(shown) - MAX_FAULTS} more" if len(shown) > MAX_FAULTS else ""
        raise UsageError(f"{path}, {'; '.join(shown[:MAX_FAULTS])}{more}") from error


HEADER = re.compile(r"\[(\[?)([\w.\"' \t-]+)\]\]?\s*(?:#.*)?")
NAMES = re.compile(r"[\w.\"' -]+")


def key_lines(text: str) -> Iterator[tuple[Key, int]]:
    """Yield each key that begins a line of a TOML text, with the line's number.

    Tables in an array have their index. Keys are recognised line by line, because the parser
    reports no positions.
    """
    table: Key = ()
    arrays: dict[Key, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        before, equals, _ = (line := line.strip()).partition("=")
        if header := HEADER.fullmatch(line):
            table = names_in(header[2])
            if header[1]:
                arrays[table] = arrays.get(table, -1) + 1
                table = (*table, arrays[table])
            yield table, number
        elif equals and NAMES.fullmatch(names := before.strip()):
            yield (*table, *names_in(names)), number


def names_in(text: str) -> Key:
    """Return the names in a key with dots, without quotes."""
    return tuple(part.strip().strip("\"'") for part in text.split("."))


def describe(fault: Any, lines: dict[Key, int], model: type[BaseModel]) -> str:
    """Return one fault that pydantic found: line, key, error and permitted values."""
    place = tuple(fault["loc"])
    known = next(
        (place[:length] for length in range(len(place), 0, -1) if place[:length] in lines), ()
    )
    key = ".".join(str(part) for part in known)
    line = f"line {lines[known]}: " if known else ""
    context = fault.get("ctx", {})
    if fault["type"] == "extra_forbidden":
        allowed = fields_at(model, place[:-1])
        where = table_of(model, place) or suggestion(str(place[-1]), allowed)
        return f"{line}unknown key {key!r}{where}"
    if fault["type"] == "missing":
        return f"{line}{f'{key}: ' if key else ''}key {place[-1]!r} is missing"
    if fault["type"] in ("literal_error", "enum"):
        return f"{line}{key} must be {context['expected']}"
    return f"{line}{key}: {reason(fault)}"


def valid(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Return a model of values from the command line; raise `UsageError` with key and reason."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = f"{fault['loc'][0]}: " if fault["loc"] else ""
        raise UsageError(f"{place}{reason(fault)}") from error


def reason(fault: Any) -> str:
    """Return why pydantic refuses a value, without its place."""
    context = fault.get("ctx", {})
    if "error" in context:
        return str(context["error"])
    if fault["type"] == "string_pattern_mismatch":
        return unfitting(str(fault["input"]), context["pattern"])
    return f"{fault['msg'][0].lower()}{fault['msg'][1:]}"


def suggestion(word: str, allowed: list[str]) -> str:
    """Return the closest known word, and all known words."""
    near = nearest(word, allowed)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"{meant} (known: {', '.join(allowed)})"


def known(word: str, names: Iterable[str], kind: str = "") -> str:
    """Return the word if it is one of ``names``; else raises `ValueError` with a suggestion."""
    if word not in (there := list(names)):
        raise ValueError(f"unknown {f'{kind} ' if kind else ''}{word!r}{suggestion(word, there)}")
    return word


def table_of(model: type[BaseModel], place: Key) -> str:
    """Return where a key belongs that another table has; empty for an unknown key."""
    word = place[-1]
    if len(place) > 1:
        return "; it belongs above the first table" if word in model.model_fields else ""
    for name, field in model.model_fields.items():
        if any(word in inner.model_fields for inner in models_in(field.annotation)):
            several = get_origin(field.annotation) is tuple
            return f"; it belongs in {f'[[{name}]]' if several else f'[{name}]'}"
    return ""


def fields_at(model: type[BaseModel], place: Key) -> list[str]:
    """Return names of the keys that the table at ``place`` may have."""
    for part in place:
        if isinstance(part, str) and part in model.model_fields:
            inner = next(models_in(model.model_fields[part].annotation), None)
            model = model if inner is None else inner
    return list(model.model_fields)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)
