"""The MPI job that this process is a rank of: its start, its agreement on failures, its end."""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from math import fsum, inf
from types import TracebackType
from typing import TYPE_CHECKING

from omb_py.core import mpi
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import INTERRUPTED, OmbError, SharedError, UsageError, sentence
from omb_py.core.mpi import launcher
from omb_py.core.mpi.startup_timer import INIT, MPI4PY, SESSION, Stages

if TYPE_CHECKING:
    from mpi4py import MPI

THROTTLE = ("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT")
"""MPICH's variables that let a rank that waits sleep: without them it spins on its core."""

LONGEST_TEXT = 4096
"""Bytes set aside for a message of failure."""


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

    def __init__(
        self,
        thread_level: str,
        session: bool,
        debug: bool = False,
        stages: Stages | None = None,
        guest: bool = False,
    ) -> None:
        """Start MPI at ``thread_level``, by MPI_Init or by an MPI-4 session, timed by ``stages``.

        The job of a ``guest`` is somebody else's: it is not ended, and errors pass through.
        Raises `UsageError` when there is no MPI library or it cannot do so.
        """
        stages = Stages() if stages is None else stages
        with stages.stage(MPI4PY):
            self.MPI = mpi.load()
        self._debug = debug
        self._guest = guest
        self._session: MPI.Session | None = None
        if session:
            with stages.stage(SESSION):
                self._session, self.comm = mpi.open_session(thread_level)
        else:
            with stages.stage(INIT):
                mpi.initialize(thread_level)
            self.comm = self.MPI.COMM_WORLD
        self.rank = self.comm.rank
        self.ranks = self.comm.size
        self.leads_host = False
        """Whether this is the first rank of its host; known once `nodes` was called."""
        self.thread_level = thread_level if session else mpi.granted_level()

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave in order when every rank does; otherwise say why and abort the job."""
        if self._guest and error is not None:
            return
        if error is None or isinstance(error, SystemExit):
            self._close()
            return
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        code = getattr(error, "exit_code", code)
        if isinstance(error, OmbError) and error.shared:
            if self.rank == 0:
                self._say(sentence(error), error)
            self.comm.Barrier()  # the launcher ends the job when the first rank leaves
            self._close()
            sys.exit(code)
        launcher.stagger(self.rank)
        self._say(f"rank {self.rank}: {sentence(error)}", error)
        time.sleep(launcher.SECONDS_TO_BE_HEARD)
        self.comm.Abort(code)
        os._exit(code)  # MPICH's abort returns before the launcher has ended the process

    def _say(self, text: str, error: BaseException) -> None:
        if self._debug:
            from traceback import print_exception

            print_exception(error)
        print(f"omb-py: {text}", file=sys.stderr, flush=True)

    def _close(self) -> None:
        if self._session is not None:
            self.comm.Free()
            self._session.Finalize()
        elif not self._guest:
            self.MPI.Finalize()  # here, so that a device's context can outlive MPI

    def note(self, text: str) -> None:
        """Tell the user something, from rank 0, that is no reason to stop."""
        launcher.note(text, self.rank)

    def expect(self, ranks: int | None) -> None:
        """Raise `SharedError` when it is not these ranks that MPI has, if a number is given."""
        if ranks not in (None, self.ranks):
            library = self.MPI.Get_library_version().splitlines()[0]
            raise SharedError(
                f"{ranks} ranks were started and MPI has {self.ranks}: the launcher is not that of "
                f"the MPI library that mpi4py found ({' '.join(library.split())})"
            )

    def agree(self, error: OmbError | None) -> None:
        """Raise the lowest failing rank's error, as a `SharedError`, on all ranks.

        Collective; each rank passes its own error, or None.
        """
        first = int(self._over_ranks(self.ranks if error is None else self.rank, self.MPI.MIN))
        if first == self.ranks:
            return
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

    def total(self, value: int) -> int:
        """The sum of ``value`` over all ranks, on all ranks."""
        return int(self._over_ranks(value, self.MPI.SUM))

    # No comm.allreduce or comm.bcast here: collectives of objects need MPI_COMM_SELF, which a
    # session may lack.

    def text_of(self, text: str, root: int) -> str:
        """The text of rank ``root``, on all ranks; collective."""
        data = bytearray(text.encode()[:LONGEST_TEXT].ljust(LONGEST_TEXT, b"\0"))
        self.comm.Bcast([data, LONGEST_TEXT, self.MPI.BYTE], root)
        return data.rstrip(b"\0").decode(errors="replace")

    def _over_ranks(self, value: float, op: MPI.Op) -> float:
        result = array("d", [0])
        self.comm.Allreduce(
            [array("d", [value]), 1, self.MPI.DOUBLE], [result, 1, self.MPI.DOUBLE], op
        )
        return result[0]

    def combine(self, seconds: array[float], timed: bool) -> Combined | None:
        """The samples of all timed ranks together, on rank 0; collective.

        Ranks are combined by MPI reductions, so that memory does not grow with their number.
        """
        count = len(seconds)
        contribution = seconds if timed else array("d", bytes(8 * count))
        timed_ranks = self.total(int(timed))
        summed = self._at_root(contribution, self.MPI.SUM)
        slowest = self._at_root(contribution, self.MPI.MAX) if timed_ranks > 1 else None
        mean = fsum(seconds) / count
        lowest = self._over_ranks(mean if timed else inf, self.MPI.MIN)
        highest = self._over_ranks(mean if timed else -inf, self.MPI.MAX)
        if self.rank != 0:
            return None
        samples = array("d", (value / timed_ranks for value in summed))
        return Combined(samples, lowest, highest, slowest)

    def max_over_ranks(self, values: array[float]) -> array[float]:
        """The maximum value of any rank, element by element, on rank 0; collective."""
        return self._at_root(values, self.MPI.MAX)

    def min_over_ranks(self, values: array[float]) -> array[float]:
        """The minimum value of any rank, element by element, on rank 0; collective."""
        return self._at_root(values, self.MPI.MIN)

    def mean(self, values: array[float]) -> array[float]:
        """The mean over the ranks, element by element, on rank 0; collective."""
        summed = self._at_root(values, self.MPI.SUM)
        return array("d", (value / self.ranks for value in summed))

    def rank_of_greatest(self, value: float) -> int:
        """The lowest rank whose ``value`` is the maximum of all, on all ranks; collective."""
        maximum = self._over_ranks(value, self.MPI.MAX)
        return int(self._over_ranks(self.rank if value == maximum else self.ranks, self.MPI.MIN))

    def bcast_from_root(self, value: float) -> float:
        """Rank 0's ``value``, on all ranks; collective."""
        cell = array("d", [value])
        self.comm.Bcast([cell, 1, self.MPI.DOUBLE], 0)
        return cell[0]

    def _at_root(self, values: array[float], op: MPI.Op) -> array[float]:
        count = len(values)
        result = array("d", bytes(8 * count))
        double = self.MPI.DOUBLE
        self.comm.Reduce([values, count, double], [result, count, double], op, 0)
        return result

    def local_rank(self) -> int:
        """This rank's number among those of its node; collective."""
        node = self.comm.Split_type(self.MPI.COMM_TYPE_SHARED)
        rank = node.rank
        node.Free()
        return rank

    def nodes(self, word: str = "-") -> list[Node]:
        """The nodes and what their ranks say, on rank 0; empty elsewhere; collective."""
        node = self.comm.Split_type(self.MPI.COMM_TYPE_SHARED)
        self.leads_host = node.rank == 0
        leaders = self.comm.Split(0 if node.rank == 0 else self.MPI.UNDEFINED, self.rank)
        words = self._texts(node, word)
        found = []
        if node.rank == 0:
            lines = self._texts(leaders, " ".join([os.uname().nodename, *words]))
            for host, *said in map(str.split, lines):
                found.append(Node(host, tuple(said)))
            leaders.Free()
        node.Free()
        return found

    def _texts(self, comm: MPI.Comm, text: str) -> list[str]:
        """The text of each rank of ``comm``, on its rank 0; empty elsewhere; collective."""
        mine = text.encode()
        length, longest = array("q", [len(mine)]), array("q", [0])
        integer, byte = self.MPI.INT64_T, self.MPI.BYTE
        comm.Allreduce([length, 1, integer], [longest, 1, integer], self.MPI.MAX)
        width = longest[0]
        gathered = bytearray(width * comm.size if comm.rank == 0 else 0)
        comm.Gather([mine.ljust(width), width, byte], [gathered, width, byte])
        parts = [gathered[start : start + width] for start in range(0, len(gathered), width)]
        return [part.decode(errors="replace").rstrip() for part in parts]

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
        if self.MPI.get_vendor()[0] == "MPICH" and THROTTLE[0] not in os.environ:
            text += f"; {'=1 '.join(THROTTLE)}=16 makes ranks of MPICH that wait step aside"
        return text

    def describe(self) -> dict[str, str]:
        """The MPI library and the level at which it runs."""
        import mpi4py

        return {
            "mpi4py": mpi4py.__version__,
            "mpi_library": mpi.version(),
            "mpi_standard": ".".join(str(part) for part in self.MPI.Get_version()),
            "thread_level": self.thread_level,
            "session": str(self._session is not None),
        }

    def check_launcher(self) -> None:
        """Raise `UsageError` when the launcher started more ranks than MPI knows of."""
        if self.ranks == 1 and launcher.ranks() > 1:
            raise UsageError(
                f"the launcher started {launcher.ranks()} processes, but each is alone in MPI: "
                f"use the mpiexec that belongs to mpi4py's library, {mpi.name()}"
            )
