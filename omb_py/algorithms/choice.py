"""The algorithm that a run asks for, set in the library before MPI is started."""

from __future__ import annotations

import os

from omb_py.algorithms import DEFAULT, Algorithm, AlgorithmLibrary, function_of, library
from omb_py.core import mpi
from omb_py.core.errors import UsageError

STARTED_WITH: set[str] = set()
"""Variables that `request` set: MPI has read them, and the next request looks for them."""


def select(benchmark: str, word: str | None) -> tuple[AlgorithmLibrary, Algorithm] | None:
    """Return the library of this process and the algorithm ``word``; None for its own choice.

    MPI need not be started. Raises `UsageError` if the library has no algorithm of this name.
    """
    if word is None or word == DEFAULT:
        return None
    found = library(mpi.load().get_vendor()[0])
    return found, found.algorithm(function_of(benchmark), word)


def request(benchmark: str, word: str | None) -> None:
    """Set the library's variables in this process, for an MPI that is not started yet.

    Raises `UsageError` if the library has no such algorithm, a variable has another value, or MPI
    is started.
    """
    choice = select(benchmark, word)
    if choice is None:
        return
    library, algorithm = choice
    wanted = library.environment(function_of(benchmark), algorithm, os.environ)
    missing = {name: value for name, value in wanted.items() if name not in os.environ}
    if missing and mpi.load().Is_initialized():
        variables = " ".join(f"{name}={value}" for name, value in missing.items())
        raise UsageError(
            "--coll-algorithm: MPI is started already, and reads its variables only then: set "
            f"{variables} before"
        )
    os.environ.update(missing)
    STARTED_WITH.update(missing)
