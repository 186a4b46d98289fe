"""Rounds in which methods take turns: each stores, and each rank restarts from another's data."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import OmbError, OutOfMemoryError, ValidationError
from omb_py.core.job import Job
from omb_py.core.text.units import amount, size_text
from omb_py.measure.checkpoints.computing import Computing
from omb_py.measure.checkpoints.content import fill, first_difference
from omb_py.measure.checkpoints.methods import BackgroundCheckpoint, Checkpoint, Method, Place

OPEN, WRITE, READ, SYNC, CLOSE, TOTAL = "open", "write", "read", "sync", "close", "total"
BLOCKING, OVERHEAD = "blocking", "overhead"
COMPUTE, ALONE = "compute", "compute alone"

STORING = (OPEN, WRITE, SYNC, CLOSE, TOTAL, BLOCKING, COMPUTE, ALONE)
RESTARTING = (OPEN, READ, CLOSE, TOTAL)
"""What is timed of each rank."""

TRIALS = 3
"""Checkpoints stored to find out how long to compute meanwhile, of which the fastest counts."""


@dataclass(frozen=True)
class CheckpointRequest:
    """What is to be measured: methods by turns, at each size in bytes of a rank.

    ``compute_seconds`` is how long ranks compute while a method works in the background; None for
    as long as it writes when they do not. ``drop_cache`` asks the kernel to forget what was written
    before it is read.
    """

    methods: tuple[Method, ...]
    sizes: tuple[int, ...]
    rounds: int = 7
    sync: bool = True
    shift: int = 1
    drop_cache: bool = True
    compute_seconds: float | None = None


@dataclass(frozen=True)
class Measured:
    """One method at one size, on rank 0: seconds of each round by part, of the slowest rank.

    A part that the method does not have is absent. ``stored`` are those of the checkpoint,
    ``restarted`` of reading it; ``passed`` says whether all data was right, ``variant`` what a
    method that can do several things did.
    """

    method: str
    size: int
    ranks: int
    stored: dict[str, tuple[float, ...]]
    restarted: dict[str, tuple[float, ...]]
    passed: bool
    variant: str | None = None


def default_shift(nodes: Sequence[int]) -> int:
    """The smallest shift by which the most ranks read what another node wrote; else 1.

    ``nodes`` has the node of each rank. 0 for a single rank. The number of ranks on a node is
    enough where they fill one node after the other (as IOR's ``-C`` has it), 1 where they go round.
    """
    ranks = len(nodes)
    if ranks == 1:
        return 0

    def far(shift: int) -> int:
        return sum(nodes[rank] != nodes[(rank + shift) % ranks] for rank in range(ranks))

    most_on_node = max(map(nodes.count, set(nodes)))
    return max(range(1, min(most_on_node, ranks - 1) + 1), key=far)


class Timed:
    """Times the steps of a rank, and keeps the first failure.

    After a failure the other steps are taken all the same: other ranks may wait in them.
    """

    def __init__(self, parts: Sequence[str], describe: Callable[[str, Exception], OmbError]):
        self.seconds = dict.fromkeys(parts, 0.0)
        self.failure: OmbError | None = None
        self._describe = describe

    def step(self, part: str, run: Callable[..., Any], *values: Any) -> Any:
        """Call ``run``, and add its time to a part; None where it fails."""
        begin = perf_counter()
        try:
            return run(*values)
        except Exception as error:
            if self.failure is None:
                self.failure = self._describe(part, error)
        finally:
            self.seconds[part] += perf_counter() - begin


class Rounds:
    """All methods at one size."""

    def __init__(self, job: Job, request: CheckpointRequest, folder: str, size: int) -> None:
        """Allocate and load what the methods need; collective.

        Raises `SharedError` where memory or a package is missing on any rank.
        """
        self._job = job
        self._request = request
        self._place = Place(job.comm, folder, size, request.shift, request.sync)
        self._checkpoints: dict[str, Checkpoint] = {}
        self.faults: dict[str, str] = {}
        """What was wrong with data that this rank read, by method."""
        self._compute_seconds: dict[str, float] = {}
        with job.agreement():
            check_space(folder, job.ranks * size)
        with job.agreement(), _enough_memory(size):
            import numpy as np

            self._data = np.empty(size, np.uint8)
            self._read = np.empty(size, np.uint8)
            self._computing = Computing()
            for method in request.methods:
                self._checkpoints[method.name] = method.make(self._place)

    def measure(self) -> list[Measured]:
        """What each method took, on rank 0, elsewhere nothing; collective.

        Raises `SharedError` where a checkpoint cannot be written or read.
        """
        stored: dict[str, list[dict[str, float]]] = {name: [] for name in self._checkpoints}
        restarted: dict[str, list[dict[str, float]]] = {name: [] for name in self._checkpoints}
        for round_ in range(self._request.rounds + 1):  # the first warms up
            for name, checkpoint in self._checkpoints.items():
                file = f"{name}-{self._place.size}-{round_}"
                fill(self._data, self._job.rank, round_)
                if round_ == 1 and isinstance(checkpoint, BackgroundCheckpoint):
                    self._choose_computing(name, checkpoint)
                storing = self._store(name, checkpoint, file)
                if self._request.drop_cache:
                    drop_cache(checkpoint.path(file, self._place.source))
                restarting = self._restart(name, checkpoint, file, round_)
                checkpoint.remove(file)
                if round_:
                    stored[name].append(storing)
                    restarted[name].append(restarting)
        found = []
        for name, checkpoint in self._checkpoints.items():
            parts = self._parts(checkpoint)
            times = self._slowest(stored[name], parts), self._slowest(restarted[name], RESTARTING)
            failed = self._job.total(int(name in self.faults))
            of_all = self._place.size, self._job.ranks
            found.append(Measured(name, *of_all, *times, not failed, checkpoint.variant))
        return found if self._job.rank == 0 else []

    def _parts(self, checkpoint: Checkpoint) -> list[str]:
        """What of `STORING` a method has."""
        absent = set() if self._request.sync else {SYNC}
        if not isinstance(checkpoint, BackgroundCheckpoint):
            absent |= {COMPUTE, ALONE}
        elif checkpoint.syncs_in_background:
            absent.add(SYNC)
        return [part for part in STORING if part not in absent]

    def release(self) -> None:
        """Give back what the methods hold; collective."""
        for checkpoint in self._checkpoints.values():
            checkpoint.release()

    def _choose_computing(self, name: str, checkpoint: Checkpoint) -> None:
        """Compute as long as storing takes without it, the same on all ranks; collective."""
        chosen = self._request.compute_seconds
        if chosen is None:
            totals = array("d")
            for trial in range(TRIALS):
                file = f"{name}-trial-{trial}"
                totals.append(self._store(name, checkpoint, file)[TOTAL])
                checkpoint.remove(file)
            chosen = min(self._job.control.allreduce(totals, "max"))
        self._compute_seconds[name] = chosen

    def _timed(self, parts: Sequence[str], name: str, doing: str) -> Timed:
        def describe(part: str, error: Exception) -> OmbError:
            return failure(error, f"method {name} cannot {doing} ({part})", self._place)

        return Timed(parts, describe)

    def _store(self, name: str, checkpoint: Checkpoint, file: str) -> dict[str, float]:
        """Seconds of this rank; the barrier at the end lasts until the last rank is done."""
        timed = self._timed(STORING, name, "write a checkpoint")
        seconds = timed.seconds
        computes = self._compute_seconds.get(name, 0.0)
        background = checkpoint if isinstance(checkpoint, BackgroundCheckpoint) else None
        if background is not None:
            self._job.control.barrier()
            timed.step(ALONE, self._computing.run, computes, lambda: None)
        self._job.control.barrier()
        begin = perf_counter()
        timed.step(OPEN, checkpoint.open_to_write, file)
        timed.step(WRITE, checkpoint.write, self._data)
        if background is not None:
            seconds[BLOCKING] = perf_counter() - begin
            timed.step(COMPUTE, self._computing.run, computes, background.progress)
            timed.step(WRITE, background.wait)
        if self._request.sync:
            timed.step(SYNC, checkpoint.sync)
        timed.step(CLOSE, checkpoint.close)
        if background is None:
            seconds[BLOCKING] = perf_counter() - begin
        self._job.control.barrier()
        seconds[TOTAL] = perf_counter() - begin
        self._job.agree(timed.failure)
        return seconds

    def _restart(
        self, name: str, checkpoint: Checkpoint, file: str, round_: int
    ) -> dict[str, float]:
        """Seconds of this rank; what it read is checked."""
        timed = self._timed(RESTARTING, name, "read a checkpoint")
        self._read.fill(0)
        self._job.control.barrier()
        begin = perf_counter()
        timed.step(OPEN, checkpoint.open_to_read, file)
        data = timed.step(READ, checkpoint.read, self._read)
        timed.step(CLOSE, checkpoint.close)
        self._job.control.barrier()
        timed.seconds[TOTAL] = perf_counter() - begin
        self._job.agree(timed.failure)
        fault = self._fault(checkpoint, file, data, round_)
        if fault is not None:
            self.faults.setdefault(name, f"method {name}, round {round_}: {fault}")
        self._job.control.barrier()  # before the file is removed
        return timed.seconds

    def _fault(self, checkpoint: Checkpoint, file: str, data: Any, round_: int) -> str | None:
        """What is wrong with what this rank read, and with the size of the file it is from."""
        place = self._place
        different = first_difference(data, place.size, place.source, round_)
        if different is not None:
            return f"byte {different} of rank {place.source}'s data is not what it wrote"
        wanted, exact = checkpoint.stored()
        try:
            found = os.stat(checkpoint.path(file, place.source)).st_size
        except OSError as error:
            return f"there is no size of its file ({error.strerror})"
        if found < wanted or (exact and found > wanted):
            return f"the file has {found} bytes instead of {wanted}"
        return None

    def _slowest(
        self, rounds: list[dict[str, float]], parts: Sequence[str]
    ) -> dict[str, tuple[float, ...]]:
        """Each round's maximum over the ranks by part, on rank 0; collective."""
        values = array("d", [seconds[part] for seconds in rounds for part in parts])
        slowest = self._job.max_over_ranks(values)
        return {part: tuple(slowest[place :: len(parts)]) for place, part in enumerate(parts)}


def measure(job: Job, request: CheckpointRequest, folder: str) -> Iterator[list[Measured]]:
    """What all methods took at each size in turn, on rank 0; collective.

    Raises `SharedError` where a checkpoint cannot be written or read, and, after the last size,
    where data was wrong.
    """
    faults: list[str] = []
    for size in request.sizes:
        rounds = Rounds(job, request, folder, size)
        with ExitStack() as after:
            after.callback(rounds.release)
            yield rounds.measure()
        faults += rounds.faults.values()
        del rounds  # before the next size allocates
    job.agree(ValidationError(faults[0]) if faults else None)


def failure(error: Exception, what: str, place: Place) -> OmbError:
    """One sentence for what storage, a library or memory refused."""
    found = OmbError(
        f"{what} of {size_text(place.size)} a rank in {place.folder}: {reason(error)}; see whether "
        "there is room, name another --folder, or leave the method out of --method"
    )
    found.__cause__ = error
    return found


def reason(error: Exception) -> str:
    """Why, in a few words: of MPI's lines, the last one says it."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    lines = [line for line in str(error).replace("\0", " ").splitlines() if line.strip()]
    return lines[-1].rpartition("..: ")[2].strip()[:200] if lines else type(error).__name__


def check_space(folder: str, nbytes: int) -> None:
    """Raise `OmbError` where a checkpoint of so many bytes has no room."""
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < nbytes:
        raise OmbError(
            f"a checkpoint of all ranks has {amount(nbytes)}, and {folder} has {amount(free)} "
            "free: lower --size, free space there, or name another --folder"
        )


@contextmanager
def _enough_memory(size: int) -> Iterator[None]:
    try:
        yield
    except (MemoryError, ValueError) as error:  # numpy's for sizes beyond any memory
        raise OutOfMemoryError(
            f"a rank cannot allocate the memory for checkpoints of {size_text(size)}: lower --size "
            "or leave gather, async and thread out of --method"
        ) from error


def drop_cache(path: str) -> None:
    """Ask the kernel to forget what it holds of a file, which is brought to storage before."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    except (OSError, AttributeError):  # so it is read from the cache, if it can be read at all
        pass
