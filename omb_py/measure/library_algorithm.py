"""The algorithm of the library that a run asks for: set before it starts, then checked."""

from __future__ import annotations

import os
import re

from omb_py.algorithms import DEFAULT, Algorithm, AlgorithmLibrary, function_of, library
from omb_py.algorithms.patterns import CollectiveShape
from omb_py.benchmarks import Case, Plan
from omb_py.bindings import Binding, torch_backend
from omb_py.core import mpi
from omb_py.core.errors import LeftOutError, OmbError, UnsupportedError, UsageError
from omb_py.core.mpi.tool_interface import ControlVariable
from omb_py.core.options import Options

STARTED_WITH: set[str] = set()
"""Variables that `request` set: MPI has read them, and the next request looks for them."""


def called_by(options: Options) -> AlgorithmLibrary:
    """Return the library whose collectives the binding calls.

    Neither MPI nor the binding need be loaded. Raises `UsageError` for an unknown MPI library,
    `UnsupportedError` for a backend of torch without algorithms.
    """
    if options.binding == "torch" and (backend := torch_backend(options)) != "nccl":
        raise UnsupportedError(
            f"--coll-algorithm: torch's {backend} has no choice of algorithms: use --backend nccl "
            "with memory on a device, or --binding buffer"
        )
    if options.binding in ("nccl", "torch"):
        return library("NCCL")
    return library(mpi.load().get_vendor()[0])


def select(benchmark: str, options: Options) -> tuple[AlgorithmLibrary, Algorithm] | None:
    """Return the library that is called and the algorithm asked for; None for its own choice.

    Raises `OmbError` if the library is not known, or has no algorithm of this name.
    """
    word = options.library_algorithm
    if word is None or word == DEFAULT:
        return None
    found = called_by(options)
    return found, found.algorithm(function_of(benchmark), word)


def request(benchmark: str, options: Options) -> None:
    """Set the library's variables in this process, for a library that has not read them yet.

    Raises `OmbError` if the library has no such algorithm, a variable has another value, or MPI
    is started and read its own.
    """
    choice = select(benchmark, options)
    if choice is None:
        return
    library, algorithm = choice
    wanted = library.environment(function_of(benchmark), algorithm, os.environ)
    missing = {name: value for name, value in wanted.items() if name not in os.environ}
    if library.is_mpi and missing and mpi.load().Is_initialized():
        variables = " ".join(f"{name}={value}" for name, value in missing.items())
        raise UsageError(
            "--coll-algorithm: MPI is started already, and reads its variables only then: set "
            f"{variables} before"
        )
    os.environ.update(missing)
    if library.is_mpi:
        STARTED_WITH.update(missing)


# Before a size is timed: libraries that cannot use an algorithm for a call take another one and say
# nothing. A size for which that would happen is left out.


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
        self._refusing = {ControlVariable(name): no for name, no in library.refusing.items()}

    def check(self, binding: Binding, plan: Plan, case: Case) -> None:
        """Make each call of the plan once, if the library would then say that it cannot.

        Raises `LeftOutError` if the algorithm cannot be used for this case, `UnsupportedError` if
        it would never be by this binding.
        """
        calls_it = binding.passes_addresses or not self.library.is_mpi
        for iteration in plan.iterations:
            called = binding.functions(iteration) if calls_it else ()
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
        if self.library.refusal:
            self._check_version(binding)
            self._try(binding, plan, case)

    def _check_version(self, binding: Binding) -> None:
        """Raise `UnsupportedError` if the library is too old to refuse an algorithm."""
        since = self.library.refuses_since
        if not since:
            return
        version = binding.describe()[self.library.name.lower()]
        if tuple(map(int, re.findall(r"\d+", version)[: len(since)])) < since:
            raise UnsupportedError(
                f"{self.library.name} {version} would quietly take another algorithm where it "
                f"cannot use {self.algorithm.word}: use {'.'.join(map(str, since))} or later"
            )

    def _try(self, binding: Binding, plan: Plan, case: Case) -> None:
        """Make each call of the plan once; raise `LeftOutError` if the library refuses one."""
        before = {variable: variable.read() for variable in self._refusing}
        for variable, value in self._refusing.items():
            variable.write(value)
        try:
            bound = [binding.bound(iteration) for iteration in plan.iterations]
            for one in bound:
                for call in (*one.before, *one.calls, *one.after):
                    call()
        except Exception as error:
            if self.library.refusal not in str(error):
                raise
            raise LeftOutError(self._sentence(case, "its conditions are not met")) from error
        finally:
            for variable, value in before.items():
                variable.write(value)
            binding.release()

    def _sentence(self, case: Case, reason: str) -> str:
        of = f" of {case.size} bytes" if case.size else ""
        other = " and would quietly take another" if self.library.is_mpi else ""
        return (
            f"{self.library.name} cannot use algorithm {self.algorithm.word} for "
            f"MPI_{self._function.capitalize()}{of} on {case.ranks} ranks{other}: {reason}"
        )


def requested_algorithm(benchmark: str, options: Options) -> LibraryAlgorithm | None:
    """Return the algorithm asked for; None for the library's choice.

    Raises `OmbError` if the library did not take it.
    """
    choice = select(benchmark, options)
    return None if choice is None else LibraryAlgorithm(*choice, benchmark)
