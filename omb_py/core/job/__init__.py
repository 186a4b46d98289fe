"""The job that this process is a rank of: its agreement on failures, its statistics, its end.

MPI keeps its ranks together (`omb_py.core.job.by_mpi`), or torch if torchrun started them
(`omb_py.core.job.by_torch`). The ranks exchange bytes and numbers: nothing is pickled.
"""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import repeat
from math import fsum, inf
from operator import truediv
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from omb_py.core import mpi
from omb_py.core.dataclass import dataclass
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import INTERRUPTED, OmbError, OwnError, SharedError, UsageError, sentence
from omb_py.core.mpi import launcher

if TYPE_CHECKING:
    from mpi4py import MPI


Op: TypeAlias = Literal["sum", "min", "max"]

ESCAPED = "surrogateescape"
"""Error handler by which a text keeps bytes that are not UTF-8: names of files have them."""

MEETING_SECONDS = 5.0
"""Time that ranks with the same error get to come to its end: a rank that waits longer is alone."""

PRIME = (1 << 53) - 111
"""The largest prime number among those that a float holds exactly."""


@dataclass(frozen=True)
class Node:
    """A host, and a word and the number of each of the ranks that run on it."""

    host: str
    words: tuple[str, ...]
    numbers: tuple[int, ...] = ()

    @property
    def ranks(self) -> int:
        """The number of the ranks that run here."""
        return len(self.words)


@dataclass(frozen=True)
class Combined:
    """Samples of all timed ranks: the mean over them of each iteration, in seconds.

    ``slowest`` has the slowest of them in each iteration, if there are several. ``lowest`` and
    ``highest`` are the minimum and the maximum of the ranks' own means.
    """

    samples: array[float]
    lowest: float
    highest: float
    slowest: array[float] | None = None


class Mailbox(ABC):
    """Texts between ranks, of which none waits for another one: it may be gone."""

    @abstractmethod
    def send(self, rank: int, text: str) -> None:
        """Send a text to a rank; one that is gone does not get it."""

    @abstractmethod
    def receive(self) -> list[tuple[int, str]]:
        """Return the texts that have come since the last call, each with its sender."""

    def close(self) -> None:  # noqa: B027 - some have nothing to give back
        """Give back what it needed; collective."""


class Job(ABC):
    """All ranks of the run, as a context: whatever fails inside ends the whole job, in order.

    All methods but `abort` are collective, unless they say otherwise.
    """

    thread_level = "multiple"
    """The level of thread support that was granted, by MPI's names."""
    spins = False
    """True if a waiting rank keeps its core busy, unless its environment sets it."""
    steps_aside = False
    """True if omb-py itself made waiting ranks yield their core, when it started MPI."""
    debug = False
    """True if a failure shows its traceback."""
    is_part = False
    """True for some ranks of a job that were made by `among`: they print no notes."""
    guest = False
    """True if another program owns the job: omb-py does not end it, and errors pass through."""

    def __init__(self, rank: int, ranks: int, comm: MPI.Intracomm | None = None) -> None:
        """``comm`` is MPI's communicator of the ranks, if there is MPI."""
        self.rank = rank
        self.ranks = ranks
        self._comm = comm
        self._host: Job | None = None
        self._at_end = ExitStack()
        self._lost_ranks = False
        self.noted: set[str] | None = None
        """The notes that `note` has printed, if each is to be printed only once."""

    @abstractmethod
    def gather(self, data: bytes) -> list[bytes]:
        """Return the data of each rank, on rank 0; an empty list elsewhere."""

    @abstractmethod
    def allgather(self, data: bytes) -> list[bytes]:
        """Return the data of each rank, on all ranks."""

    @abstractmethod
    def bcast(self, data: bytes, root: int = 0) -> bytes:
        """Return the data of rank ``root``, on all ranks."""

    @abstractmethod
    def barrier(self) -> None:
        """Return when every rank has called this."""

    @abstractmethod
    def reduce(self, values: array[float], op: Op) -> array[float]:
        """Combine the values of all ranks element by element, on rank 0; zeros elsewhere."""

    @abstractmethod
    def allreduce(self, values: array[float], op: Op) -> array[float]:
        """Combine the values of all ranks element by element, on all ranks."""

    def meet(self, values: array[float], seconds: float | None = None) -> array[float] | None:
        """Return the minima over all ranks, or None if one does not call this in ``seconds``.

        After None, the only call that is left is `abort`. torchrun ends ranks that wait in vain.
        """
        return self.allreduce(values, "min")

    @abstractmethod
    def _split_by_host(self) -> Job:
        """Return a new job of the ranks on this rank's host, in the same order."""

    @abstractmethod
    def among(self, ranks: Sequence[int], name: int) -> Job:
        """Return a new job of ascending ``ranks``; collective over these alone.

        ``name`` is a number that no other set of them has at the same time.
        """

    @abstractmethod
    def mailbox(self) -> Mailbox:
        """Return what sends texts from any rank to any other, and waits for none; collective."""

    @abstractmethod
    def abort(self, exit_code: int) -> NoReturn:
        """End all processes of the job; one rank is enough to call it."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the MPI library and its level, or what started the job without MPI."""

    def as_passed(self, datatype: Datatype) -> Datatype:
        """Return an element type with the name by which it is passed to MPI; not collective."""
        return datatype

    def world(self) -> Job:
        """Return the job of all ranks, which contains these."""
        return self

    def on_host(self) -> Job:
        """Return the ranks on this rank's host, in the same order.

        Only the first call is collective: this job keeps the result, and frees it at its own end.
        """
        if self._host is None:
            self._host = self._split_by_host()
        return self._host

    def free_host(self) -> None:
        """Free the job that `on_host` keeps, if there is one; collective."""
        host, self._host = self._host, None
        if host is not None:
            host.free()

    def free(self) -> None:  # noqa: B027 - some have nothing to give back
        """Free the communicator of a job that a split made, and that of its host; collective."""

    def close(self) -> None:  # noqa: B027
        """End what keeps the ranks together; no collective method may follow."""

    @property
    def is_spawned(self) -> bool:
        """Return whether other processes of the job have started these."""
        return False

    @property
    def communicator(self) -> MPI.Intracomm | Job:
        """The object by which a binding connects its ranks: mpi4py's communicator, or this job."""
        return self if self._comm is None else self._comm

    @property
    def comm(self) -> MPI.Intracomm:
        """MPI's communicator of all ranks; raises `UsageError` if there is no MPI."""
        return self.comm_for("this command")

    def comm_for(self, user: str) -> MPI.Intracomm:
        """Return MPI's communicator of all ranks for an option or a benchmark.

        Raises `UsageError`, which names ``user``, if there is no MPI.
        """
        if self._comm is None:
            without = f", or leave out {user}" if user.startswith("-") else ""
            raise UsageError(
                f"{user} needs MPI, and torchrun starts ranks without it: start them with mpiexec"
                f"{without}"
            )
        return self._comm

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave in order when every rank does; otherwise say why and abort the job."""
        shared = self._is_shared(error)
        if error is None or isinstance(error, SystemExit) or shared:
            self._at_end.close()
            self.free_host()
        if self.guest and error is not None:
            return
        if error is None or isinstance(error, SystemExit):
            self.close()
            return
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        code = getattr(error, "exit_code", code)
        if shared:
            if self.rank == 0 and (self.ranks > 1 or launcher.rank() == 0):
                self._say(sentence(error), error)
            self.leave(code)
        launcher.stagger(self.rank)
        self._say(f"rank {self.rank}: {sentence(error)}", error)
        time.sleep(launcher.SECONDS_TO_BE_HEARD)
        self.abort(code)

    def leave(self, exit_code: int) -> NoReturn:
        """End this process in order, as all others do; collective."""
        if self._lost_ranks:  # MPI_Finalize may hang, and the launcher reports success
            time.sleep(launcher.SECONDS_TO_BE_HEARD)
            self.barrier()
            self.abort(exit_code)
        self.barrier()  # the launcher ends the job when the first rank leaves
        self.close()
        sys.exit(exit_code)

    def _is_shared(self, error: BaseException | None) -> bool:
        """Return whether all ranks raise this error here; collective if it may be so.

        All ranks find the same fault in the same options and numbers. A `UsageError` can also come
        from what only one rank sees: then the others do not come.
        """
        if isinstance(error, UsageError):
            return self.meet(array("d", [0.0]), MEETING_SECONDS) is not None
        return isinstance(error, SharedError)

    def continue_on(self, comm: MPI.Intracomm) -> None:
        """Go on with the ranks of ``comm``, since others have failed; its rank 0 is this job's."""
        self._comm = comm
        self._lost_ranks = True
        self.rank, self.ranks = comm.rank, comm.size

    def at_end(self, close: Callable[[], object]) -> None:
        """Call ``close`` when all ranks leave in order, before those that were given earlier.

        Inside of a `scope`, that is when all ranks leave the scope.
        """
        self._at_end.callback(close)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Give back at the block's end what was made inside; collective, errors pass through.

        A `UsageError` of all ranks becomes a `SharedError`, that of one rank an `OmbError`.
        """
        outer, self._at_end = self._at_end, ExitStack()
        try:
            yield
        except OmbError as error:
            shared = self._is_shared(error)
            if shared:
                self._at_end.close()
            if not isinstance(error, UsageError):
                raise
            kind = SharedError if shared else OwnError
            raise kind(str(error), error.exit_code) from error
        else:
            self._at_end.close()
        finally:
            self._at_end = outer

    def _say(self, text: str, error: BaseException) -> None:
        if self.debug:
            from traceback import print_exception

            print_exception(error)
        launcher.say(text)

    def note(self, *texts: str | None) -> None:
        """Tell the user what is no reason to stop, from rank 0; nothing of a text that is None."""
        for text in texts if not self.is_part else ():
            if text is None or text in (self.noted or ()):
                continue
            if self.noted is not None:
                self.noted.add(text)
            launcher.note(text, self.rank)

    def expect(self, ranks: int | None) -> None:
        """Raise `SharedError` when it is not these ranks that MPI has, if a number is given."""
        if ranks not in (None, self.ranks) and not self.is_spawned:
            raise SharedError(
                f"{ranks} ranks were started and MPI has {self.ranks}: {right_launcher()}"
            )

    def start_together(
        self,
        error: OmbError | None,
        launched: Mapping[str, tuple[Any, ...]] | None,
        seconds: float | None = None,
    ) -> None:
        """Raise `SharedError` on all ranks if one has failed before, or was started otherwise.

        ``launched`` are the values that all ranks must have alike, by the names of options; None
        where an ``error`` came before they were known. This is the first that ranks do together:
        those that fail before, and those that do not, meet here. It returns if a rank does not come
        in ``seconds``.
        """
        failing = self.ranks if error is None else self.rank
        mark = fingerprint(repr(launched))
        met = self.meet(array("d", [failing, mark, -mark]), seconds)
        if met is None:
            return
        if met[0] < self.ranks:
            self.fail(int(met[0]), error)
        if met[1] != -met[2]:
            from omb_py.core.job.differences import difference

            assert launched is not None
            raise SharedError(difference(self, launched), UsageError.exit_code)

    def agree(self, error: OmbError | None) -> None:
        """Raise the lowest failing rank's error, as a `SharedError`, on all ranks.

        Collective; each rank passes its own error, or None.
        """
        first = self.first_of(error is not None)
        if first < self.ranks:
            self.fail(first, error)

    def fail(self, first: int, error: OmbError | None) -> NoReturn:
        """Raise the error of rank ``first`` as a `SharedError` on all ranks; collective."""
        told = "" if error is None else f"{error.exit_code} {error}"
        exit_code, _, text = self.text_of(told, first).partition(" ")
        raise SharedError(text, int(exit_code)) from error

    @contextmanager
    def agreement(self) -> Iterator[None]:
        """Make a failure of any rank inside the block a failure of all at its end; collective."""
        failure: OmbError | None = None
        try:
            yield
        except OmbError as error:
            failure = error
        self.agree(failure)

    def wait_for_all(self) -> None:
        """Wait until all ranks of the whole job are here."""
        self.barrier()

    def total(self, value: int) -> int:
        """Return the sum of ``value`` over all ranks, on all ranks."""
        return int(self._over_ranks(value, "sum"))

    def first_of(self, chosen: bool) -> int:
        """Return the lowest rank that is ``chosen``, on all ranks; their number if none is."""
        return int(self._over_ranks(self.rank if chosen else self.ranks, "min"))

    def text_of(self, text: str, root: int) -> str:
        """Return the text of rank ``root``, on all ranks; collective."""
        return self.bcast(text.encode(errors=ESCAPED), root).decode(errors=ESCAPED)

    def _over_ranks(self, value: float, op: Op) -> float:
        return self.allreduce(array("d", [value]), op)[0]

    def combine(self, seconds: array[float], timed: bool) -> Combined | None:
        """Return the samples of all timed ranks together, on rank 0; collective.

        Ranks are combined by reductions, so that memory does not grow with their number.
        """
        count = len(seconds)
        contribution = seconds if timed else array("d", bytes(8 * count))
        timed_ranks = self.total(int(timed))
        summed = self.reduce(contribution, "sum")
        slowest = self.reduce(contribution, "max") if timed_ranks > 1 else None
        mean = fsum(seconds) / count
        lowest = self._over_ranks(mean if timed else inf, "min")
        highest = self._over_ranks(mean if timed else -inf, "max")
        if self.rank != 0:
            return None
        samples = array("d", map(truediv, summed, repeat(timed_ranks)))
        return Combined(samples, lowest, highest, slowest)

    def mean(self, values: array[float]) -> array[float]:
        """Return the mean over the ranks, element by element, on rank 0; collective."""
        summed = self.reduce(values, "sum")
        return array("d", (value / self.ranks for value in summed))

    def bcast_from_root(self, value: float) -> float:
        """Return rank 0's ``value``, on all ranks; collective."""
        return array("d", self.bcast(array("d", [value]).tobytes()))[0]

    def host_of_each_rank(self) -> list[str]:
        """Return the host of each rank, on rank 0; empty elsewhere; collective."""
        found = self.gather(os.uname().nodename.encode())
        return [host.decode(errors="replace") for host in found]

    def from_hosts(self, word: str, told: Callable[[list[str]], str]) -> list[str]:
        """Return a text of each host, on rank 0; empty elsewhere; collective.

        The first rank of a host makes it, by ``told``, from the ``word`` of each rank there. It is
        not empty.
        """
        host = self.on_host()
        words = [one.decode(errors=ESCAPED) for one in host.gather(word.encode(errors=ESCAPED))]
        text = told(words) if words else ""
        texts = self.gather(text.encode(errors=ESCAPED))
        return [one.decode(errors="replace") for one in texts if one]

    def nodes(self, word: str = "-") -> list[Node]:
        """Return the nodes and their ranks' words, on rank 0; empty elsewhere; collective."""
        return [node_of(text) for text in self.from_hosts(f"{self.rank}:{word}", node_line)]

    def oversubscription(self, nodes: list[Node], threads: int = 0) -> str | None:
        """Return a sentence for the first of ``nodes`` with more ranks than this one has cores.

        ``threads`` are those of all ranks together, if they have several.
        """
        cores = os.cpu_count() or 1
        oversubscribed = (node for node in nodes if max(node.ranks, threads // len(nodes)) > cores)
        node = next(oversubscribed, None)
        if node is None:
            return None
        many = f"{threads} threads" if threads else f"{node.ranks} ranks"
        text = f"{many} share {cores} cores of {node.host}: "
        text += "times include waiting for a core"
        variables = " ".join(f"{name}={value}" for name, value in mpi.THROTTLE.items())
        if self.steps_aside:
            text += f"; omb-py set {variables}, so that waiting ranks of MPICH yield theirs"
        elif self.spins and mpi.THROTTLE.keys().isdisjoint(os.environ):
            text += f"; {variables} makes ranks of MPICH that wait step aside"
        return text

    def check_launcher(self) -> None:
        """Raise `SharedError` when the launcher started more ranks than MPI reports."""
        if self.ranks == 1 and launcher.ranks() > 1 and not self.is_part:
            raise SharedError(
                f"the launcher started {launcher.ranks()} processes, but each is alone in MPI: "
                f"{right_launcher()}"
            )


def right_launcher() -> str:
    """Return the words of an error for the launcher whose ranks find each other."""
    text = f"use the mpiexec that belongs to mpi4py's library, {mpi.name()}"
    if "SLURM_PROCID" in os.environ:
        text += ", or srun --mpi=pmix (srun --mpi=list names others; of a sweep launcher_options)"
    return text


def node_line(words: Iterable[str]) -> str:
    """Return a line on this host with ``rank:word`` of each of its ranks, for `node_of`."""
    return " ".join([os.uname().nodename, *words])


def node_of(line: str) -> Node:
    """Return the node of a line of `node_line`."""
    name, *ranks = line.split()
    numbers, _, words = zip(*(one.partition(":") for one in ranks), strict=True)
    return Node(name, words, tuple(map(int, numbers)))


def fingerprint(text: str) -> int:
    """Return a number that a float holds, the same for the same text on all hosts."""
    return int.from_bytes(text.encode(errors=ESCAPED), "big") % PRIME


def node_of_each_rank(
    wish: tuple[int, ...] | int | None, job: Job, alike: bool = True
) -> tuple[int, ...]:
    """Return the node of each rank, numbered in the order of their first ranks; collective.

    Raises `UsageError` unless there are several nodes, with the same number of ranks if they have
    to be ``alike``.
    """
    nodes = mapped(wish, job.ranks, f"this job has {job.ranks}") or first_ranks(job)
    said = f"{'this job' if wish is None else '--node-map'}'s {job.ranks} ranks"
    names = list(dict.fromkeys(nodes))
    if len(names) < 2 or (alike and len({nodes.count(name) for name in names}) > 1):
        wanted = "several with the same number of ranks" if alike else "several"
        raise UsageError(
            f"{said} are on {len(names)} node{'s' * (len(names) != 1)}, and {wanted} are needed: "
            "start it so, or name them with --node-map"
        )
    return tuple(names.index(node) for node in nodes)


def mapped(wish: tuple[int, ...] | int | None, ranks: int, there: str) -> tuple[int, ...]:
    """Return the node of each rank by ``--node-map``; none if it is not given.

    Raises `UsageError` if it names another number of ranks than are ``there``.
    """
    if wish is None or isinstance(wish, int):
        return tuple(rank // wish for rank in range(ranks)) if wish else ()
    if len(wish) != ranks:
        raise UsageError(f"--node-map names {len(wish)} ranks, and {there}")
    return wish


def first_ranks(job: Job) -> tuple[int, ...]:
    """Return the first rank on each rank's node; collective."""
    first = job.on_host().bcast(str(job.rank).encode())
    return tuple(map(int, job.allgather(first)))
