"""What keeps the ranks of a job together outside of what is timed: agreement, statistics, the end.

MPI does it (`omb_py.core.job.by_mpi`), and torch for ranks that torchrun started
(`omb_py.core.job.by_torch`). Data is small, and bytes or numbers: nothing is pickled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

Op: TypeAlias = Literal["sum", "min", "max"]

COMBINE: Mapping[Op, Callable[[Sequence[float]], float]] = {"sum": sum, "min": min, "max": max}


class Control(ABC):
    """Ranks that agree with each other. All methods but `abort` are collective."""

    rank: int
    size: int
    thread_level = "multiple"
    """The level of thread support that was granted, by MPI's names."""
    spins = False
    """Whether a rank that waits keeps its core busy unless its environment says otherwise."""

    @property
    @abstractmethod
    def communicator(self) -> Any:
        """What a binding connects its ranks by: mpi4py's communicator, or this object."""

    @abstractmethod
    def gather(self, data: bytes) -> list[bytes]:
        """What each rank gives, on rank 0; empty elsewhere."""

    @abstractmethod
    def bcast(self, data: bytes, root: int = 0) -> bytes:
        """What rank ``root`` gives, on all ranks."""

    @abstractmethod
    def on_host(self) -> Control:
        """The ranks on this rank's host, in the same order; `free` gives them back."""

    @abstractmethod
    def abort(self, exit_code: int) -> NoReturn:
        """End all processes of the job from this rank alone."""

    @property
    def is_spawned(self) -> bool:
        """Whether other processes of the job have started these."""
        return False

    def continue_on(self, communicator: Any) -> None:
        """Agree with the ranks of ``communicator`` from now on, since others have failed."""
        raise NotImplementedError

    def whole(self) -> Control:
        """All ranks of the job, of which these are some."""
        return self

    def free(self) -> None:  # noqa: B027 - some have nothing to give back
        """Give back what `on_host` made."""

    def close(self) -> None:  # noqa: B027
        """Leave the job in order."""

    def allgather(self, data: bytes) -> list[bytes]:
        """What each rank gives, on all ranks."""
        gathered = self.gather(data)
        lengths = array("q", map(len, gathered)).tobytes()
        packed = self.bcast(len(lengths).to_bytes(8, "little") + lengths + b"".join(gathered))
        start = 8 + int.from_bytes(packed[:8], "little")
        found = []
        for length in array("q", packed[8:start]):
            found.append(packed[start : start + length])
            start += length
        return found

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.gather(b"")
        self.bcast(b"")

    def reduce(self, values: array[float], op: Op) -> array[float]:
        """The values of all ranks combined element by element, on rank 0; zeros elsewhere."""
        given = [array("d", data) for data in self.gather(values.tobytes())]
        if not given:
            return array("d", bytes(8 * len(values)))
        return array("d", map(COMBINE[op], zip(*given, strict=True)))

    def allreduce(self, values: array[float], op: Op) -> array[float]:
        """The values of all ranks combined element by element, on all ranks."""
        return array("d", self.bcast(self.reduce(values, op).tobytes()))

    def describe(self) -> dict[str, str]:
        """What a reader of the results needs to know of the job's start."""
        return {}
