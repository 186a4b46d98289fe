"""The table of C functions says what MPI's own header says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from omb_py.bindings.compiled.prototypes import MOST_ARGUMENTS, PROTOTYPES

INCLUDE = Path(sys.prefix) / "include"
C_TYPES = {
    "b": {"void*"},
    "B": {"void*"},
    "n": {"int", "MPI_Count"},
    "z": {"int", "MPI_Count"},
    "q": {"MPI_Count"},
    "N": {"int[]", "int*", "MPI_Count[]", "MPI_Count*"},
    "R": {"int[]", "int*", "MPI_Count[]", "MPI_Count*"},
    "D": {"int[]", "int*", "MPI_Aint[]", "MPI_Aint*"},
    "A": {"MPI_Aint[]", "MPI_Aint*"},
    "t": {"MPI_Datatype"},
    "T": {"MPI_Datatype[]", "MPI_Datatype*"},
    "d": {"MPI_Aint"},
    "O": {"MPI_Offset"},
    "c": {"MPI_Comm"},
    "w": {"MPI_Win"},
    "f": {"MPI_File"},
    "g": {"MPI_Group"},
    "I": {"MPI_Info"},
    "o": {"MPI_Op"},
    "i": {"int"},
    "l": {"int"},
    "k": {"int"},
    "a": {"int[]", "int*"},
    "u": {"int[]", "int*"},
    "r": {"MPI_Request*", "MPI_Request[]", "MPI_Message*", "MPI_Comm*"},
    "H": {"MPI_Request"},
    "F": {"int*"},
    "P": {"int*", "MPI_Count*"},
    "s": {"MPI_Status*", "MPI_Status[]"},
}
LARGER = "nNDzRP"
"""Kinds that are an int, or ints, in the plain functions, and larger in those that end in _c."""


def header(abi: bool) -> dict[str, list[str]]:
    """The parameter types of every function that a header declares, without names.

    It is that of the standard's ABI, or the library's own.
    """
    found = {}
    text = " ".join(
        path.read_text() for path in INCLUDE.glob("mpi*.h") if ("abi" in path.name) == abi
    )
    for name, parameters in re.findall(r"\bint (MPI_\w+)\(([^;]*?)\)[^,;()]*(?:;|MPICH_)", text):
        types = []
        for parameter in parameters.split(","):
            kind = re.sub(r"\bconst\b", "", parameter)
            array = "[]" if "[" in kind else ""
            words = re.sub(r"\[.*?\]", "", kind).replace("*", " * ").split()
            stars = "*" * words.count("*")
            types.append(words[0] + stars + array)
        found[name] = types
    return found


HEADERS = {name: header(abi) for name, abi in {"mpi.h": False, "mpi_abi.h": True}.items()}


@pytest.mark.parametrize("function", sorted(PROTOTYPES))
@pytest.mark.parametrize("suffix", ["", "_c"])
@pytest.mark.parametrize(
    "declarations",
    [
        pytest.param(found, id=name, marks=pytest.mark.skipif(not found, reason=f"no {name}"))
        for name, found in HEADERS.items()
    ],
)
def test_prototype_is_the_header(
    declarations: dict[str, list[str]], function: str, suffix: str
) -> None:
    name = f"MPI_{function.capitalize()}{suffix}"
    if name not in declarations and (suffix or function.endswith("_init")):
        pytest.skip(f"this library has no {name}")
    declared = declarations[name]
    kinds = PROTOTYPES[function]
    assert len(kinds) == len(declared)
    for kind, c_type in zip(kinds, declared, strict=True):
        assert c_type in C_TYPES[kind], (name, kind, c_type)
        if kind in LARGER:
            assert c_type.startswith("MPI_" if suffix else "int"), (name, kind, c_type)


def test_every_call_fits_a_row_and_moves_one_argument_at_most() -> None:
    for kinds in PROTOTYPES.values():
        assert 0 < len(kinds) <= MOST_ARGUMENTS
        assert kinds.count("r") <= 1
