"""Does the MPI library use the algorithm that was requested? Asked before, or counted."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from omb_py.algorithms import Algorithm, AlgorithmLibrary, function_of
from omb_py.algorithms.choice import select
from omb_py.algorithms.comparison import Sent, difference
from omb_py.algorithms.patterns import CollectiveShape
from omb_py.benchmarks import Case, Plan
from omb_py.bindings import Binding
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import LeftOutError, OmbError, SharedError, UnsupportedError, UsageError
from omb_py.core.job import Job
from omb_py.core.mpi.tool_interface import ToolInterface
from omb_py.measure.measurement import Measurement, RunContext
from omb_py.results.writer import Writer

# Before a size is timed: libraries that cannot use an algorithm for a call take another one and say
# nothing. A size for which that would happen is left out.

FALLBACK = "MPIR_CVAR_COLLECTIVE_FALLBACK"
FALLBACK_IS_ERROR = 0
"""MPICH's words of `FALLBACK` are error, print and silent, in this order."""

MPICH_REFUSES = "User set collective algorithm"
"""Part of MPICH's error message if a fall-back is an error."""


class LibraryAlgorithm:
    """A proof that one algorithm is used, active as long as the run lasts."""

    def __init__(
        self, job: Job, library: AlgorithmLibrary, algorithm: Algorithm, benchmark: str
    ) -> None:
        """Collective; raises `OmbError` if the library did not take its variables."""
        self._job = job
        self.library = library
        self.algorithm = algorithm
        self._function = function_of(benchmark)
        self._tools = ToolInterface()
        for name, value in library.in_effect(self._function, algorithm).items():
            found = self._tools.control(name).read()
            if found != value:
                raise OmbError(
                    f"{library.name} has {name}={found} in spite of --coll-algorithm "
                    f"{algorithm.word}, which needs {value}: look for what else sets it, such as a "
                    "file of parameters"
                )
        self._fallback = None
        if library.refuses_by_error:
            self._fallback = self._tools.control(FALLBACK)

    def check(self, binding: Binding, plan: Plan, case: Case) -> None:
        """Make each call of the plan once, if the library would say that it falls back.

        Raises `LeftOutError` if the algorithm cannot be used for this case, `UnsupportedError` if
        it would never be by this binding.
        """
        for exchange in plan.exchanges:
            called = binding.functions(exchange) if binding.passes_addresses else ()
            if self._function not in called:
                raise UnsupportedError(
                    f"binding {binding.name} does not call MPI_{self._function.capitalize()}, "
                    "whose algorithm --coll-algorithm chooses: use --binding buffer"
                )
        shape = shape_of(case)
        refusal = self.algorithm.refusal(shape)
        if refusal is not None:
            raise LeftOutError(self._sentence(case, refusal))
        if self._fallback is None:
            return
        from mpi4py import MPI

        bound = [binding.bound(exchange) for exchange in plan.exchanges]
        try:
            with self._falling_back_is_an_error():
                for one in bound:
                    for call in (*one.before, *one.calls, *one.after):
                        call()
        except (OmbError, MPI.Exception) as error:
            if MPICH_REFUSES not in str(error):
                raise
            raise LeftOutError(self._sentence(case, "its conditions are not met")) from error
        finally:
            binding.release()

    @contextmanager
    def _falling_back_is_an_error(self) -> Iterator[None]:
        assert self._fallback is not None
        before = self._fallback.read()
        self._fallback.write(FALLBACK_IS_ERROR)
        try:
            yield
        finally:
            self._fallback.write(before)

    def _sentence(self, case: Case, reason: str) -> str:
        of = f" of {case.size} bytes" if case.size else ""
        return (
            f"{self.library.name} cannot use algorithm {self.algorithm.word} for "
            f"MPI_{self._function.capitalize()}{of} on {case.ranks} ranks and would quietly take "
            f"another: {reason}"
        )


def shape_of(case: Case) -> CollectiveShape:
    """Return a case as its algorithms see it."""
    return CollectiveShape(case.ranks, case.payload, case.datatype.itemsize, case.options.in_place)


def requested_algorithm(job: Job, benchmark: str, word: str | None) -> LibraryAlgorithm | None:
    """Return the proof that the algorithm called ``word`` is used; None for the library's choice.

    Collective; raises `OmbError` if the library did not take it.
    """
    choice = select(benchmark, word)
    return None if choice is None else LibraryAlgorithm(job, *choice, benchmark)


# Instead of measuring: the library itself counts the messages of one call, from each rank to each
# other one, and they are compared with those that the algorithm sends by its definition. Nothing is
# timed, for counting costs time.

MESSAGES, BYTES = "pml_monitoring_messages_count", "pml_monitoring_messages_size"
"""Open MPI's counters (component monitoring of framework pml), for each rank of a communicator."""


@dataclass(frozen=True)
class SizeCheck:
    """One message size: messages and bytes of all ranks together, and what they say."""

    size: int
    messages: int
    nbytes: int
    verdict: str
    differs: bool = False


class CheckWriter(Writer[SizeCheck]):
    """A line of text for each size."""

    def start(self, metadata: dict[str, str]) -> None:
        print(f"# {'Size':<11}{'Messages':>10}{'Bytes':>14}  Sent", flush=True)

    def row(self, row: SizeCheck) -> None:
        print(f"{row.size:<13}{row.messages:>10}{row.nbytes:>14}  {row.verdict}", flush=True)


class AlgorithmCheck(Measurement):
    """A line for each message size: what was sent, and whether the algorithm sends that."""

    times_calls = False

    def __init__(self, context: RunContext, binding: Binding) -> None:
        super().__init__(context, [binding])
        self.binding = binding
        self._check: LibraryAlgorithm | None = None
        self._different: list[int] = []
        if self.options.root is None:
            raise UsageError("--verify-algorithm compares with a fixed root: leave out -k rotate")

    def run(self) -> None:
        job, options = self.job, self.options
        with self.agreement():
            self._check = requested_algorithm(job, self.benchmark.name, options.library_algorithm)
            if not self.check.library.counting:
                raise UnsupportedError(
                    f"{self.check.library.name} counts no messages that could be compared: leave "
                    "out --verify-algorithm, for it refuses what an algorithm cannot do anyway"
                )
            tools = ToolInterface()
            self._counters = [tools.counter(name, job.comm) for name in (MESSAGES, BYTES)]
        super().run()
        if self._different:
            sizes = ", ".join(map(str, self._different))
            raise SharedError(
                f"messages of {sizes} bytes were not sent as algorithm {self.check.algorithm.word} "
                "does: their times would be of another"
            )

    @property
    def check(self) -> LibraryAlgorithm:
        """The algorithm of the library whose messages are counted; set by the first case."""
        assert self._check is not None
        return self._check

    def open_writers(self) -> list[Writer[Any]]:
        return [CheckWriter()]

    def measure_case(self, case: Case, writers: list[Writer[Any]]) -> None:
        plan, _ = self.plan(case)
        with self.agreement():
            self.check.check(self.binding, plan, case)
        (exchange,) = plan.exchanges
        bound = self.binding.bound(exchange)
        self.job.barrier()
        before = self._read()
        for call in (*bound.before, *bound.calls, *bound.after):
            call()
        sent = self._gathered([b - a for a, b in zip(before, self._read(), strict=True)], case)
        found = self._compared(case, sent) if sent else None
        if self.job.total(int(found is not None and found.differs)):
            self._different.append(case.size)
        for writer in writers:
            writer.row(found)

    def _read(self) -> list[int]:
        messages, nbytes = (counter.read() for counter in self._counters)
        return [number for pair in zip(messages, nbytes, strict=True) for number in pair]

    def _gathered(self, mine: list[int], case: Case) -> Sent:
        """Return the messages of each rank to each other one, on rank 0; collective."""
        rows = [array("q", row) for row in self.job.gather(array("q", mine).tobytes())]
        return [list(zip(row[::2], row[1::2], strict=True)) for row in rows]

    def _compared(self, case: Case, sent: Sent) -> SizeCheck:
        algorithm = self.check.algorithm
        messages = sum(count for row in sent for count, _ in row)
        nbytes = sum(int(length or 0) for row in sent for _, length in row)
        try:
            found = difference(algorithm.rounds, shape_of(case), sent, self.options.root or 0)
        except NotImplementedError as error:
            return SizeCheck(case.size, messages, nbytes, f"not known: {error}")
        verdict = f"as {algorithm.word}" if found is None else f"NOT as {algorithm.word}: {found}"
        return SizeCheck(case.size, messages, nbytes, verdict, found is not None)
