"""The library's algorithm that a run asks for: set before MPI is started, checked before timing."""

from __future__ import annotations

import os

from omb_py.algorithms import DEFAULT, Algorithm, AlgorithmLibrary, function_of, library
from omb_py.algorithms.patterns import CollectiveShape
from omb_py.benchmarks import Case, Plan
from omb_py.bindings import Binding
from omb_py.core import mpi
from omb_py.core.errors import LeftOutError, OmbError, UnsupportedError, UsageError
from omb_py.core.mpi.tool_interface import ControlVariable

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


# Before a size is timed: libraries that cannot use an algorithm for a call take another one and say
# nothing. A size for which that would happen is left out.

FALLBACK = "MPIR_CVAR_COLLECTIVE_FALLBACK"
FALLBACK_IS_ERROR = 0
"""MPICH's words of `FALLBACK` are error, print and silent, in this order."""

MPICH_REFUSES = "User set collective algorithm"
"""Part of MPICH's error message if a fall-back is an error."""


class LibraryAlgorithm:
    """An algorithm of the library that a run requested, and the checks that it is used."""

    def __init__(self, library: AlgorithmLibrary, algorithm: Algorithm, benchmark: str) -> None:
        """Raise `OmbError` if the library did not take its variables."""
        self.library = library
        self.algorithm = algorithm
        self._function = function_of(benchmark)
        for name, value in library.in_effect(self._function, algorithm).items():
            found = ControlVariable(name).read()
            if found != value:
                raise OmbError(
                    f"{library.name} has {name}={found} in spite of --coll-algorithm "
                    f"{algorithm.word}, which needs {value}: look for what else sets it, such as a "
                    "file of parameters"
                )
        self._fallback = None
        if library.refuses_by_error:
            self._fallback = ControlVariable(FALLBACK)

    def check(self, binding: Binding, plan: Plan, case: Case) -> None:
        """Make each call of the plan once, if the library would say that it falls back.

        Raises `LeftOutError` if the algorithm cannot be used for this case, `UnsupportedError` if
        it would never be by this binding.
        """
        for iteration in plan.iterations:
            called = binding.functions(iteration) if binding.passes_addresses else ()
            if self._function not in called:
                raise UnsupportedError(
                    f"binding {binding.name} does not call MPI_{self._function.capitalize()}, "
                    "whose algorithm --coll-algorithm chooses: use --binding buffer"
                )
        itemsize, in_place = case.datatype.itemsize, case.options.in_place
        shape = CollectiveShape(case.ranks, case.payload, itemsize, in_place)
        refusal = self.algorithm.refusal(shape)
        if refusal is not None:
            raise LeftOutError(self._sentence(case, refusal))
        if self._fallback is None:
            return
        from mpi4py import MPI

        bound = [binding.bound(iteration) for iteration in plan.iterations]
        before = self._fallback.read()
        self._fallback.write(FALLBACK_IS_ERROR)
        try:
            for one in bound:
                for call in (*one.before, *one.calls, *one.after):
                    call()
        except (OmbError, MPI.Exception) as error:
            if MPICH_REFUSES not in str(error):
                raise
            raise LeftOutError(self._sentence(case, "its conditions are not met")) from error
        finally:
            self._fallback.write(before)
            binding.release()

    def _sentence(self, case: Case, reason: str) -> str:
        of = f" of {case.size} bytes" if case.size else ""
        return (
            f"{self.library.name} cannot use algorithm {self.algorithm.word} for "
            f"MPI_{self._function.capitalize()}{of} on {case.ranks} ranks and would quietly take "
            f"another: {reason}"
        )


def requested_algorithm(benchmark: str, word: str | None) -> LibraryAlgorithm | None:
    """Return the algorithm called ``word``; None for the library's choice.

    Raises `OmbError` if the library did not take it.
    """
    choice = select(benchmark, word)
    return None if choice is None else LibraryAlgorithm(*choice, benchmark)
