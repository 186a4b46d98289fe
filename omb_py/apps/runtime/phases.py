"""The phases of an application's time on one rank, and its MPI calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from time import perf_counter
from types import TracebackType
from typing import Any

from omb_py.bindings import BoundCall
from omb_py.core.calls import Call
from omb_py.core.memory import Local


class Phase(Enum):
    """An activity of a rank: one at a time."""

    DISTRIBUTE = "distribute"
    COMPUTE = "compute"
    COMMUNICATE = "communicate"
    WAIT = "wait"


@dataclass
class Tally:
    """The calls of one MPI function with messages of one size: how many, and their seconds."""

    function: str
    nbytes: float
    calls: int = 0
    seconds: float = 0.0


@dataclass
class Phases:
    """The seconds of phases and of a kernel's parts since the last `clear`, and calls' tallies."""

    seconds: dict[Phase, float] = field(default_factory=lambda: dict.fromkeys(Phase, 0.0))
    parts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    tallies: dict[tuple[str, float], Tally] = field(default_factory=dict)

    def clear(self) -> None:
        """Begin anew; tallies stay the same objects."""
        self.restart()
        self.parts.clear()
        for tally in self.tallies.values():
            tally.calls, tally.seconds = 0, 0.0

    def restart(self) -> None:
        """Forget the seconds, but not the calls."""
        self.seconds.update(dict.fromkeys(Phase, 0.0))

    def tally(self, call: Call, ranks: int) -> Tally:
        """Return the tally to which a call counts."""
        key = (call.function, message_bytes(call, ranks))
        return self.tallies.setdefault(key, Tally(*key))

    def timed(self, made: BoundCall, phase: Phase, tallies: Sequence[Tally] = ()) -> BoundCall:
        """Return ``made``, counted in all ``tallies``, its time in a phase and in the last one."""
        seconds, last = self.seconds, tallies[-1] if tallies else Tally("", 0)

        def make() -> None:
            begin = perf_counter()
            made()
            spent = perf_counter() - begin
            seconds[phase] += spent
            last.seconds += spent
            for tally in tallies:
                tally.calls += 1

        return make


class Timed:
    """``with`` it, and the time inside, to the end of a device's work, is added to ``seconds``."""

    def __init__(self, seconds: dict[Any, float], key: Any, wait: Local | None = None) -> None:
        """``key`` is where it is added, ``wait`` what waits for the device, if there is one."""
        self._seconds = seconds
        self._key = key
        self._wait = wait
        self._begin = 0.0

    def __enter__(self) -> None:
        self._begin = perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._wait is not None:
            self._wait.run()
        self._seconds[self._key] += perf_counter() - self._begin


def message_bytes(call: Call, ranks: int) -> float:
    """Return the size of a call's message as profiles count it.

    It is the size that a rank sends to another. For calls with a block for each rank it is one
    block (the mean one for a v-form; of scatterv the rank's own). For all others it is the whole
    data that the rank sends, or receives if it only receives (mpitrace's convention, but for
    reduce_scatter and sendrecv, which it counts whole).
    """
    messages = call.messages
    if not messages:
        return 0
    first = messages[-1 if call.function == "scatterv" else 0]
    whole = first.elements * first.datatype.itemsize
    return whole / ranks if len(first.counts) == ranks > 1 else whole
