"""Instead of measuring: did the library use the requested algorithm?

The messages of one call are counted by the library itself, from each rank to each other one, and
compared with those that the algorithm sends by its definition. Nothing is timed, for counting costs
time.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

from omb_py.algorithms.comparison import Sent, difference
from omb_py.benchmarks import Case
from omb_py.bindings import Binding
from omb_py.core.errors import SharedError, UnsupportedError, UsageError
from omb_py.core.mpi.tool_interface import ToolInterface
from omb_py.measure.library_algorithm import LibraryAlgorithm, requested_algorithm, shape_of
from omb_py.measure.measurement import Measurement, RunContext
from omb_py.results.writer import Writer

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
        """What makes sure of the algorithm."""
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
        self.job.comm.Barrier()
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
        """What each rank sent to each other one, on rank 0; collective."""
        comm, integer, width = self.job.comm, self.job.MPI.INT64_T, len(mine)
        everybody = array("q", bytes(8 * width * case.ranks if case.rank == 0 else 0))
        comm.Gather([array("q", mine), width, integer], [everybody, width, integer])
        rows = [everybody[start : start + width] for start in range(0, len(everybody), width)]
        return [list(zip(row[::2], row[1::2], strict=True)) for row in rows]

    def _compared(self, case: Case, sent: Sent) -> SizeCheck:
        """What the messages say."""
        algorithm = self.check.algorithm
        messages = sum(count for row in sent for count, _ in row)
        nbytes = sum(int(length or 0) for row in sent for _, length in row)
        try:
            found = difference(algorithm.sends, shape_of(case), sent, self.options.root or 0)
        except NotImplementedError as error:
            return SizeCheck(case.size, messages, nbytes, f"not known: {error}")
        verdict = f"as {algorithm.word}" if found is None else f"NOT as {algorithm.word}: {found}"
        return SizeCheck(case.size, messages, nbytes, verdict, found is not None)
