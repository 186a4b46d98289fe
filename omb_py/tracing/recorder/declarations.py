"""The functions that an MPI library's own header declares."""

from __future__ import annotations

import re
from dataclasses import dataclass

DECLARATION = re.compile(r"\bint\s+(MPI_\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)[^;{}]*;")
PARAMETER = re.compile(r"(.*?)(\w+)?\s*((?:\[[^\]]*\]\s*)*)", re.DOTALL)
ALONE = {"int", "char", "void", "double", "long", "short", "unsigned"}
"""Words that are types also where no name follows."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a declaration: what stands before and behind its name."""

    before: str
    behind: str = ""

    def named(self, name: str) -> str:
        """The parameter under a name."""
        return f"{self.before} {name}{self.behind}"


@dataclass(frozen=True)
class Declaration:
    """A function ``int name(parameters)``."""

    name: str
    parameters: tuple[Parameter, ...]


def declarations(preprocessed: str) -> dict[str, Declaration]:
    """The functions of MPI that return an int, by name, in what a C preprocessor printed."""
    lines = (line for line in preprocessed.splitlines() if not line.startswith("#"))
    found = {}
    for match in DECLARATION.finditer("\n".join(lines)):
        name, inside = match.groups()
        given = () if inside.strip() in ("", "void") else tuple(inside.split(","))
        found[name] = Declaration(name, tuple(map(_parameter, given)))
    return found


def _parameter(text: str) -> Parameter:
    match = PARAMETER.fullmatch(text.strip())
    assert match is not None
    before, name, behind = (part or "" for part in match.groups())
    if not before.strip() or name in ALONE or before.split()[-1:] == ["const"]:
        before, name = f"{before}{name}", ""
    return Parameter(" ".join(before.split()), behind.strip())
