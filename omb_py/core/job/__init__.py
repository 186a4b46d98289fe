"""The job that this process is a rank of: its agreement on failures, its statistics, its end."""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import fsum, inf
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from omb_py.core import mpi
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import INTERRUPTED, OmbError, SharedError, sentence
from omb_py.core.job.control import Control, Op
from omb_py.core.mpi import launcher

if TYPE_CHECKING:
    from mpi4py import MPI

THROTTLE = ("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT")
"""MPICH's variables that let a rank that waits sleep: without them it spins on its core."""


@dataclass(frozen=True)
class Node:
    """A host, and a word of each of the ranks that run on it."""

    host: str
    words: tuple[str, ...]

    @property
    def ranks(self) -> int:
        """How many of the ranks run here."""
        return len(self.words)


@dataclass(frozen=True)
class Combined:
    """Samples of all timed ranks: the mean over them of each iteration, in seconds.

    ``slowest`` has the slowest of them in each iteration, where there are several. ``lowest`` and
    ``highest`` are the minimum and the maximum of the ranks' own means.
    """

    samples: array[float]
    lowest: float
    highest: float
    slowest: array[float] | None = None


class Job:
    """All ranks of the run, as a context: whatever fails inside ends the whole job, in order."""

    def __init__(self, control: Control, debug: bool = False, guest: bool = False) -> None:
        """The job of a ``guest`` is somebody else's: it is not ended, errors pass through."""
        self.control = control
        self.rank = control.rank
        self.ranks = control.size
        self.thread_level = control.thread_level
        self.leads_host = False
        """Whether this is the first rank of its host; known once `nodes` was called."""
        self._debug = debug
        self.guest = guest
        self._at_end = ExitStack()
        self._lost_ranks = False

    @property
    def comm(self) -> MPI.Intracomm:
        """MPI's communicator of all ranks; raises `UsageError` where there is no MPI."""
        return self.comm_for("this command")

    def comm_for(self, user: str) -> MPI.Intracomm:
        """Return MPI's communicator of all ranks for an option or a benchmark.

        Raises `UsageError`, which names ``user``, where there is no MPI.
        """
        from omb_py.core.job.by_mpi import communicator_of

        return communicator_of(self.control, user)

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave in order when every rank does; otherwise say why and abort the job."""
        shared = isinstance(error, OmbError) and error.shared
        if error is None or isinstance(error, SystemExit) or shared:
            self._at_end.close()
        if self.guest and error is not None:
            return
        if error is None or isinstance(error, SystemExit):
            self.control.close()
            return
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        code = getattr(error, "exit_code", code)
        if shared:
            if self.rank == 0 and (self.ranks > 1 or launcher.rank() == 0):
                self._say(sentence(error), error)
            if self._lost_ranks:  # MPI_Finalize may hang, and the launcher reports success
                time.sleep(launcher.SECONDS_TO_BE_HEARD)
                self.control.barrier()
                self.control.abort(code)
            self.control.barrier()  # the launcher ends the job when the first rank leaves
            self.control.close()
            sys.exit(code)
        launcher.stagger(self.rank)
        self._say(f"rank {self.rank}: {sentence(error)}", error)
        time.sleep(launcher.SECONDS_TO_BE_HEARD)
        self.control.abort(code)

    def continue_on(self, comm: MPI.Intracomm) -> None:
        """Go on with the ranks of ``comm``, since others have failed; its rank 0 is this job's."""
        self.control.continue_on(comm)
        self._lost_ranks = True
        self.rank, self.ranks = self.control.rank, self.control.size

    def at_end(self, close: Callable[[], object]) -> None:
        """Call ``close`` when all ranks leave in order, before those that were given earlier."""
        self._at_end.callback(close)

    def _say(self, text: str, error: BaseException) -> None:
        if self._debug:
            from traceback import print_exception

            print_exception(error)
        launcher.say(text)

    def note(self, text: str) -> None:
        """Tell the user something, from rank 0, that is no reason to stop."""
        launcher.note(text, self.rank)

    def expect(self, ranks: int | None) -> None:
        """Raise `SharedError` when it is not these ranks that MPI has, if a number is given."""
        if ranks not in (None, self.ranks) and not self.control.is_spawned:
            library = " ".join(mpi.version().split())
            raise SharedError(
                f"{ranks} ranks were started and MPI has {self.ranks}: the launcher is not that of "
                f"the MPI library that mpi4py found ({library})"
            )

    def agree(self, error: OmbError | None) -> None:
        """Raise the lowest failing rank's error, as a `SharedError`, on all ranks.

        Collective; each rank passes its own error, or None.
        """
        first = int(self._over_ranks(self.ranks if error is None else self.rank, "min"))
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
        self.control.barrier()

    def total(self, value: int) -> int:
        """The sum of ``value`` over all ranks, on all ranks."""
        return int(self._over_ranks(value, "sum"))

    def text_of(self, text: str, root: int) -> str:
        """The text of rank ``root``, on all ranks; collective."""
        return self.control.bcast(text.encode(), root).decode(errors="replace")

    def _over_ranks(self, value: float, op: Op) -> float:
        return self.control.allreduce(array("d", [value]), op)[0]

    def combine(self, seconds: array[float], timed: bool) -> Combined | None:
        """The samples of all timed ranks together, on rank 0; collective.

        Ranks are combined by reductions, so that memory does not grow with their number.
        """
        count = len(seconds)
        contribution = seconds if timed else array("d", bytes(8 * count))
        timed_ranks = self.total(int(timed))
        summed = self.control.reduce(contribution, "sum")
        slowest = self.control.reduce(contribution, "max") if timed_ranks > 1 else None
        mean = fsum(seconds) / count
        lowest = self._over_ranks(mean if timed else inf, "min")
        highest = self._over_ranks(mean if timed else -inf, "max")
        if self.rank != 0:
            return None
        samples = array("d", (value / timed_ranks for value in summed))
        return Combined(samples, lowest, highest, slowest)

    def max_over_ranks(self, values: array[float]) -> array[float]:
        """The maximum value of any rank, element by element, on rank 0; collective."""
        return self.control.reduce(values, "max")

    def min_over_ranks(self, values: array[float]) -> array[float]:
        """The minimum value of any rank, element by element, on rank 0; collective."""
        return self.control.reduce(values, "min")

    def mean(self, values: array[float]) -> array[float]:
        """The mean over the ranks, element by element, on rank 0; collective."""
        summed = self.control.reduce(values, "sum")
        return array("d", (value / self.ranks for value in summed))

    def rank_of_greatest(self, value: float) -> int:
        """The lowest rank whose ``value`` is the maximum of all, on all ranks; collective."""
        maximum = self._over_ranks(value, "max")
        return int(self._over_ranks(self.rank if value == maximum else self.ranks, "min"))

    def bcast_from_root(self, value: float) -> float:
        """Rank 0's ``value``, on all ranks; collective."""
        return array("d", self.control.bcast(array("d", [value]).tobytes()))[0]

    def local_rank(self) -> int:
        """This rank's number among those of its node; collective."""
        host = self.control.on_host()
        host.free()
        return host.rank

    def host_of_each_rank(self) -> list[str]:
        """The host of each rank, on rank 0; empty elsewhere; collective."""
        found = self.control.gather(os.uname().nodename.encode())
        return [host.decode(errors="replace") for host in found]

    def nodes(self, word: str = "-") -> list[Node]:
        """The nodes and what their ranks say, on rank 0; empty elsewhere; collective."""
        host = self.control.on_host()
        self.leads_host = host.rank == 0
        words = host.gather(word.encode())
        host.free()
        line = b" ".join([os.uname().nodename.encode(), *words]) if self.leads_host else b""
        found = []
        for text in filter(None, self.control.gather(line)):
            name, *said = text.decode(errors="replace").split()
            found.append(Node(name, tuple(said)))
        return found

    def oversubscription(self, nodes: list[Node], threads: int = 0) -> str | None:
        """A sentence for the first of ``nodes`` with more ranks than this one's cores, if any.

        ``threads`` are those of all ranks together, where they have several.
        """
        cores = os.cpu_count() or 1
        oversubscribed = (node for node in nodes if max(node.ranks, threads // len(nodes)) > cores)
        node = next(oversubscribed, None)
        if node is None:
            return None
        many = f"{threads} threads" if threads else f"{node.ranks} ranks"
        text = f"{many} share {cores} cores of {node.host}: "
        text += "times include waiting for a core"
        if THROTTLE[0] not in os.environ and self.control.spins:
            text += f"; {'=1 '.join(THROTTLE)}=16 makes ranks of MPICH that wait step aside"
        return text

    def describe(self) -> dict[str, str]:
        """The MPI library and the level at which it runs, or what started the job without MPI."""
        return self.control.describe()

    def check_launcher(self) -> None:
        """Raise `SharedError` when the launcher started more ranks than MPI knows of."""
        if self.ranks == 1 and launcher.ranks() > 1:
            by_slurm = (
                ", or srun --mpi=pmix (srun --mpi=list names what this Slurm has)"
                if "SLURM_PROCID" in os.environ
                else ""
            )
            raise SharedError(
                f"the launcher started {launcher.ranks()} processes, but each is alone in MPI: "
                f"use the mpiexec that belongs to mpi4py's library, {mpi.name()}{by_slurm}"
            )
