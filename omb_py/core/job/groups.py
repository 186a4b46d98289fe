"""Ranks of a job in groups, which work at the same time and fail together.

All groups go through the same phases. Within one, each makes its own collective calls, and all
ranks take part in the agreements on failures. A rank that has finished, or is idle, contributes
that fact, and the phase is over when no rank is left in it.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.job import Job, first_ranks
from omb_py.core.job.by_mpi import MPIJob
from omb_py.core.mpi import launcher
from omb_py.core.text.units import parse_count
from omb_py.core.text.words import count

if TYPE_CHECKING:
    from mpi4py import MPI

Groups = tuple[tuple[int, ...], ...]

NODE = "node"
MODULO = "mod:"

MAX_RANK = 1 << 24
"""The highest rank that may be named: beyond any machine, and ranges are written out."""

SLEEP_SECONDS = 0.001
"""Seconds that a waiting rank sleeps at a time, so that it takes no core from the others."""


@dataclass(frozen=True)
class Split:
    """A division of ranks: ``parts`` of equal length, by ``modulo``, by node, or as ``named``."""

    parts: int = 0
    modulo: int = 0
    named: Groups = ()

    def groups(self, ranks: int, node: Sequence[int]) -> Groups:
        """Return the ranks of each group, from the first rank on each rank's ``node``.

        ``ranks`` is the number of all ranks. Raises `UsageError` if they cannot be divided so, or a
        group has a single rank.
        """
        found = self._groups(ranks, node)
        for number, group in enumerate(found, 1):
            if len(group) == 1:
                raise UsageError(
                    f"--split: group {number} of {len(found)} is rank {group[0]} alone, which "
                    "sends nothing: start more ranks, or make groups of at least 2"
                )
        return found

    def _groups(self, ranks: int, node: Sequence[int]) -> Groups:
        if self.named:
            highest = max(map(max, self.named))
            if highest >= ranks:
                raise UsageError(
                    f"--split: there is no rank {highest}; the last of {ranks} ranks is {ranks - 1}"
                )
            return self.named
        number = self.parts or self.modulo
        most = max(1, ranks // 2)
        if number > most:
            groups = count(most, "group")
            raise UsageError(
                f"--split: {count(ranks, 'rank')} make at most {groups} of 2 ranks or more, not "
                f"{number}: start more ranks"
            )
        if self.modulo:
            return tuple(tuple(range(first, ranks, number)) for first in range(number))
        if not self.parts:
            nodes = dict.fromkeys(node)
            return tuple(tuple(r for r in range(ranks) if node[r] == one) for one in nodes)
        if ranks % number:
            raise UsageError(
                f"--split: {ranks} ranks make no {number} groups of equal size: choose a divisor, "
                f"mod:{number}, or name the groups, as in 0-2,3-4"
            )
        size = ranks // number
        return tuple(tuple(range(size * one, size * (one + 1))) for one in range(number))


def parse_split(text: str) -> Split:
    """Return the split that ``N``, ``mod:N``, ``node``, or ranks as `ranks_text` writes them, name.

    Raises `ValueError` for anything else.

    >>> parse_split("0-3,4+6").named
    ((0, 1, 2, 3), (4, 6))
    """
    if text == NODE:
        return Split()
    try:
        if text.startswith(MODULO):
            number = parse_count(text.removeprefix(MODULO))
            found = Split(modulo=number)
        elif text.isdigit():
            number = parse_count(text)
            found = Split(parts=number)
        else:
            found, number = Split(named=tuple(map(parse_ranks, text.split(",")))), 1
    except ValueError:
        raise ValueError(
            f"{text!r} is neither N, mod:N, node nor the ranks of groups, as in 0-3,4-7 or 0+2,1+3"
        ) from None
    if number == 0:
        raise ValueError("there is at least 1 group")
    named: set[int] = set()
    for rank in (rank for group in found.named for rank in group):
        if rank in named:
            raise ValueError(f"rank {rank} is named twice: groups have no rank in common")
        named.add(rank)
    return found


def parse_ranks(text: str) -> tuple[int, ...]:
    """Return the ranks of one group: ``0-3``, ``0-6:2`` or several of those joined by ``+``.

    Raises `ValueError` for anything else.
    """
    found: list[int] = []
    for part in text.split("+"):
        ends, _, step = part.partition(":")
        first, dash, last = ends.partition("-")
        low = parse_count(first)
        high = parse_count(last) if dash else low
        if high > MAX_RANK:
            raise ValueError("no job has as many ranks")
        found += range(low, high + 1, parse_count(step or "1"))
    if not found:
        raise ValueError("a group without ranks")
    return tuple(sorted(found))


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks in ascending order as a brief text.

    >>> ranks_text([0, 1, 2, 3]), ranks_text([1, 3, 5]), ranks_text([0, 1, 5])
    ('0-3', '1-5:2', '0-1+5')
    """
    parts, start = [], 0
    while start < len(ranks):
        step = ranks[start + 1] - ranks[start] if start + 1 < len(ranks) else 1
        end = start
        while end + 1 < len(ranks) and ranks[end + 1] - ranks[end] == step:
            end += 1
        if step > 1 and end < start + 2:
            end = start
        first, last = ranks[start], ranks[end]
        parts.append(f"{first}-{last}" if end > start else f"{first}")
        parts[-1] += f":{step}" if end > start and step > 1 else ""
        start = end + 1
    return "+".join(parts)


class Agreement:
    """An agreement in progress: whether a rank has failed, and whether all have finished."""

    def __init__(self, comm: MPI.Intracomm, failing: int, finished: bool) -> None:
        """``failing`` is this rank if it has failed, or else the number of ranks."""
        from mpi4py import MPI

        self._result = array("d", bytes(16))
        # kept, since the request of mpi4py does not keep it
        self._own = array("d", [failing, finished])
        both = [self._own, 2, MPI.DOUBLE], [self._result, 2, MPI.DOUBLE]
        self._request = comm.Iallreduce(*both, op=MPI.MIN)

    def is_there(self) -> bool:
        """Return whether every rank has contributed to it."""
        return bool(self._request.Test())

    def sleep_until_there(self, alive: Callable[[int, int], object] | None) -> None:
        """Sleep, and look now and then; ``alive`` is called each time."""
        while not self.is_there():
            time.sleep(SLEEP_SECONDS)
            if alive is not None:
                alive(0, 0)

    def outcome(self) -> tuple[int, bool]:
        """Return the lowest rank that failed, and whether all ranks have finished."""
        self._request.Wait()
        return int(self._result[0]), bool(self._result[1])


class GroupJob(MPIJob):
    """The ranks of this rank's group, as a job that fails with all others.

    A rank without a group gets a group of its own, and ``takes_part`` is false.
    """

    def __init__(self, whole: Job, split: Split) -> None:
        """Collective over the ``whole`` job; raises `UsageError` if it cannot be divided."""
        self.whole = whole
        self.groups = split.groups(whole.ranks, first_ranks(whole))
        mine = [number for number, ranks in enumerate(self.groups) if whole.rank in ranks]
        self.takes_part = bool(mine)
        number = mine[0] if mine else len(self.groups) + whole.rank
        self.name = ranks_text(self.groups[number] if mine else [whole.rank])
        comm: Any = whole.comm.Split(number, whole.rank)
        super().__init__(comm)
        self.thread_level = whole.thread_level
        self._everyone = whole.comm.Dup()
        self._agreed: OmbError | None = None

    def free(self) -> None:
        """Free the group's communicators and the one of all ranks; collective over all ranks."""
        super().free()
        self._everyone.Free()

    def check_launcher(self) -> None:
        self.whole.check_launcher()

    def note(self, *texts: str | None) -> None:
        for text in filter(None, texts):
            launcher.note(f"group {self.name}: {text}", self.rank)

    def begin_agreement(self, error: OmbError | None = None, finished: bool = False) -> Agreement:
        """Contribute to the next agreement of all ranks."""
        failing = self.whole.ranks if error is None else self.whole.rank
        return Agreement(self._everyone, failing, finished)

    def end_agreement(self, agreement: Agreement, error: OmbError | None = None) -> bool:
        """Return whether all ranks have finished; raise `SharedError` if one has failed."""
        first, finished = agreement.outcome()
        if first < self.whole.ranks:
            try:
                self.whole.fail(first, error)
            except OmbError as agreed:
                self._agreed = agreed
                raise
        return finished

    def agree(self, error: OmbError | None) -> None:
        self.end_agreement(self.begin_agreement(error), error)

    def wait_for_all(self) -> None:
        self.agree(None)

    def phase(self, work: Callable[[], Any], alive: Callable[[int, int], object] | None) -> None:
        """Call ``work``, except in a rank of no group, and wait for all ranks; collective.

        ``alive`` is called while this rank waits. Raises `SharedError` on all ranks if one has
        failed.
        """
        try:
            if self.takes_part:
                work()
        except OmbError as error:
            if error is not self._agreed:
                self.agree(error)
            raise
        finished = False
        while not finished:
            agreement = self.begin_agreement(finished=True)
            agreement.sleep_until_there(alive)
            finished = self.end_agreement(agreement)
