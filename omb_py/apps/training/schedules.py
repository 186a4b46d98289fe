"""Schedules of gradients: sent at once, or in cycles in which ranks agree on the ready ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter, sleep

from omb_py.apps import Detail
from omb_py.apps.runtime.phases import Phase, Phases, Timed
from omb_py.apps.runtime.team import Team
from omb_py.apps.training.fusion import PACKING, FusedBuffers, Plan
from omb_py.bindings import BoundCall
from omb_py.core.calls import Call

WORD = 8

HEADER_WORDS = 3
RECORD_WORDS = 16
"""Words of 8 bytes of a list, before its records, and of each record.

An empty list of Horovod's has 25 bytes. A record has a name, a type, a shape and more; that these
take 128 bytes is an assumption.
"""


class NegotiationMaster:
    """Negotiation by rank 0, which counts the ranks that have asked for each gradient.

    A cycle is a gather of the lengths of lists (4 bytes each), a gatherv of the requests for
    gradients that have become ready, a broadcast of a length (4 bytes) and one of the responses.
    Rank 0 does not send to itself. Lists have a power of two of records, some of them empty, so
    that there are few sizes of messages; calls are bound when a size comes for the first time.
    """

    def __init__(self, team: Team, gradients: int) -> None:
        """``team`` has its messages in host memory."""
        import numpy as np

        self._team = team
        self._root = team.rank == 0
        longest = length_of(gradients)
        self._length = team.array(1, "int32")
        self._list = team.array(longest, "int64")
        self._list.data[...] = 0
        self._lengths = team.array(team.ranks if self._root else 0, "int32")
        self._lists = team.array(longest * (team.ranks - 1) if self._root else 0, "int64")
        lengths = self._lengths.message((1,) * team.ranks) if self._root else None
        message = self._length.message()
        self._gather_lengths = team.bind(Call("gather", (message, lengths), root=0))
        self._bcast_length = team.bind(Call("bcast", (message,), root=0))
        self._gathers: dict[tuple[int, ...], BoundCall] = {}
        self._broadcasts: dict[int, BoundCall] = {}
        self._asked = np.zeros(gradients, np.int64)
        self._told = 0
        # What the binding cannot do is said now, and not while solving.
        empty = tuple(HEADER_WORDS * (rank > 0) for rank in range(team.ranks))
        self._gather(empty if self._root else empty[-1:])

    def step(self) -> None:
        """Begin a step, before any gradient is ready."""
        self._told = 0
        self._asked[...] = 0

    def cycle(self, agreed: int, ready: int) -> int:
        """Return how many gradients all ranks have; this one has ``ready``; collective."""
        told, self._told = self._told, max(self._told, ready)
        if self._root:
            self._asked[told:ready] += 1
            self._collect()
            found = self._on_all_ranks(agreed)
            self._length.data[0] = WORD * self._write(agreed, found)
        else:
            self._ask(told, ready)
        self._bcast_length()
        self._broadcast(int(self._length.data[0]) // WORD)()
        return agreed + int(self._list.data[0])

    def _ask(self, told: int, ready: int) -> None:
        """Tell rank 0 what has become ready."""
        words = self._write(told, ready)
        self._length.data[0] = WORD * words
        self._gather_lengths()
        self._gather((words,))()

    def _collect(self) -> None:
        """Receive and count what the other ranks ask for."""
        self._length.data[0] = 0
        self._gather_lengths()
        lengths = tuple(length // WORD for length in self._lengths.data.tolist())
        self._gather(lengths)()
        begin = 0
        for words in lengths:
            asked = self._lists.data[begin : begin + words]
            begin += words
            if words:
                numbers = asked[HEADER_WORDS::RECORD_WORDS][: asked[0]]
                self._asked[numbers] += 1

    def _write(self, begin: int, end: int) -> int:
        """Make the list of these gradients; returns its words."""
        import numpy as np

        count = max(0, end - begin)
        self._list.data[0] = count
        numbers = self._list.data[HEADER_WORDS::RECORD_WORDS]
        numbers[:count] = np.arange(begin, begin + count)
        return length_of(count)

    def _on_all_ranks(self, agreed: int) -> int:
        """Return the number of gradients that every rank has asked for."""
        lacking = (self._asked[agreed:] < self._team.ranks).nonzero()[0]
        return agreed + int(lacking[0]) if len(lacking) else len(self._asked)

    def _gather(self, words: tuple[int, ...]) -> BoundCall:
        """Return the gatherv of lists of so many words: all ranks' on rank 0, elsewhere its own."""
        if words not in self._gathers:
            lists = self._lists.rows(0, sum(words)).message(words, "v") if self._root else None
            own = self._list.rows(0, words[0]).message()
            self._gathers[words] = self._team.bind(Call("gatherv", (own, lists), root=0))
        return self._gathers[words]

    def _broadcast(self, words: int) -> BoundCall:
        """Return the broadcast of a list of so many words."""
        if words not in self._broadcasts:
            message = self._list.rows(0, words).message()
            self._broadcasts[words] = self._team.bind(Call("bcast", (message,), root=0))
        return self._broadcasts[words]


def length_of(records: int) -> int:
    """Return the words of a list of so many records, padded to a power of two of them."""
    padded = 1 << (records - 1).bit_length() if records else 0
    return HEADER_WORDS + RECORD_WORDS * padded


STATUS = 0b111
STATUS_BITS = 3
"""Bits of a vector before those of gradients: shutdown, uncached, invalid; all are clear."""

NOTHING_UNCACHED = 0b010
"""The status bit of a rank whose gradients are all in the cache."""

WORD_BITS = 64


class Cached:
    """Cycles in which all ranks say how many gradients they have.

    A bit for each gradient that was asked for before is combined with AND in one allreduce.

    So it is in all steps but the first, in which the requests of `NegotiationMaster` follow the
    allreduce wherever a rank has a gradient that is not in the cache. The bit vector has 3 bits of
    status and one for each gradient in the cache, in whole words of 8 bytes.
    """

    def __init__(self, team: Team, gradients: int) -> None:
        self._coordinator = NegotiationMaster(team, gradients)
        self._vector = team.array(words_of(gradients), "int64")
        self._combine: list[BoundCall] = []
        for words in range(1, words_of(gradients) + 1):
            operands = team.in_place(self._vector.rows(0, words).message())
            self._combine.append(team.bind(Call("allreduce", operands, op="band")))
        self._cached = 0

    def begin(self) -> None:
        """Begin training, before any gradient has been seen."""
        self.step()
        self._cached = 0

    def step(self) -> None:
        """Begin a step, before any gradient is ready."""
        self._coordinator.step()

    def cycle(self, agreed: int, ready: int) -> int:
        """Return how many gradients all ranks have; this one has ``ready``; collective.

        ``agreed`` is the number that the cycle before found in this step, 0 in the first one.
        """
        words = words_of(self._cached)
        known = min(ready, self._cached)
        bits = STATUS if ready <= self._cached else STATUS & ~NOTHING_UNCACHED
        bits |= _ones(agreed, known) << STATUS_BITS
        self._write(bits, words)
        self._combine[words - 1]()
        bits = self._read(words)
        agreed += _trailing_ones(bits >> STATUS_BITS + agreed)
        if not bits & NOTHING_UNCACHED:
            agreed = self._coordinator.cycle(agreed, ready)
            self._cached = max(self._cached, agreed)
        return agreed

    def _write(self, bits: int, words: int) -> None:
        import numpy as np

        found = bits.to_bytes(WORD_BITS // 8 * words, "little")
        self._vector.data[:words] = np.frombuffer(found, "<i8")

    def _read(self, words: int) -> int:
        return int.from_bytes(self._vector.data[:words].astype("<i8").tobytes(), "little")


def words_of(gradients: int) -> int:
    """Return the words of a bit vector for so many gradients."""
    return -(-(STATUS_BITS + gradients) // WORD_BITS)


def _ones(begin: int, end: int) -> int:
    """Return a number whose bits from ``begin`` to ``end`` are set; 0 for an empty range."""
    return (1 << end) - (1 << begin) if end > begin else 0


def _trailing_ones(bits: int) -> int:
    """Return the number of set bits before the first clear one."""
    return (~bits & (bits + 1)).bit_length() - 1


class Schedule:
    """A schedule without messages, for a single rank.

    Gradients are counted in the order of their arrival. ``negotiating`` are the seconds of
    negotiations since training began.
    """

    negotiating = 0.0

    def begin(self) -> None:
        """Begin training."""

    def advance(self, arrived: int) -> None:
        """Note that so many gradients of this step are ready; called now and then."""

    def finish(self) -> None:
        """Return when all gradients, which are ready now, are averaged."""

    def parts(self, steps: int) -> list[Detail]:
        """Return details of so many steps."""
        return []


class Planned(Schedule):
    """Buckets planned once for all steps, each sent when complete or, if not ``early``, last."""

    def __init__(self, fused: FusedBuffers, plan: Plan, early: bool) -> None:
        self._fused = fused
        self._plan = plan
        self._early = early
        self._sent = 0
        for bucket in plan:
            fused.of(*bucket)

    def begin(self) -> None:
        self._fused.begin()

    def advance(self, arrived: int) -> None:
        if self._early:
            self._send(arrived)

    def finish(self) -> None:
        self._send(self._plan[-1][1])
        self._fused.complete()
        self._sent = 0

    def parts(self, steps: int) -> list[Detail]:
        return describe(self._fused, steps)

    def _send(self, arrived: int) -> None:
        """Send each complete bucket that has not been sent."""
        while self._sent < len(self._plan) and self._plan[self._sent][1] <= arrived:
            self._fused.send(*self._plan[self._sent])
            self._sent += 1


class Negotiated(Schedule):
    """Cycles of a negotiation, each followed by the buckets of what was agreed on in it."""

    def __init__(
        self,
        fused: FusedBuffers,
        sizes: Sequence[int],
        fuse: Callable[[Sequence[int]], Plan],
        negotiation: Cached,
        pause: float,
        phases: Phases,
    ) -> None:
        """``pause`` are the seconds from the beginning of a cycle to that of the next."""
        self._fused = fused
        self._sizes = sizes
        self._fuse = fuse
        self._negotiation = negotiation
        self._pause = pause
        self._waiting = Timed(phases.seconds, Phase.WAIT)
        self._agreed = self._cycles = 0
        self._due = self._took = 0.0

    def begin(self) -> None:
        self._fused.begin()
        self._negotiation.begin()
        self._cycles = 0
        self.negotiating = 0.0
        self._due = perf_counter()

    def advance(self, arrived: int) -> None:
        late = perf_counter() - self._due
        if late < 0:
            return
        # A thread in the background would have made those that were missed, as many as fit.
        missed = int(late / max(self._pause, self._took)) if self._pause else 0
        for _ in range(1 + missed):
            if self._agreed == len(self._sizes):
                return  # other ranks may be in the next step already
            self._cycle(arrived)

    def finish(self) -> None:
        everything = len(self._sizes)
        while self._agreed < everything:
            with self._waiting:
                sleep(max(0.0, self._due - perf_counter()))
            self._cycle(everything)
        self._fused.complete()
        self._negotiation.step()
        self._agreed = 0

    def parts(self, steps: int) -> list[Detail]:
        cycles = Detail("Negotiations of a step", value=self._cycles / steps, unit="cycles")
        return [*describe(self._fused, steps), cycles]

    def _cycle(self, arrived: int) -> None:
        began = perf_counter()
        self._cycles += 1
        known = self._agreed
        self._agreed = self._negotiation.cycle(known, arrived)
        self.negotiating += perf_counter() - began
        for begin, end in self._fuse(self._sizes[known : self._agreed]):
            self._fused.send(known + begin, known + end)
        ended = perf_counter()
        self._took = ended - began
        self._due = max(began + self._pause, ended)


def describe(fused: FusedBuffers, steps: int) -> list[Detail]:
    """Return details of the fused buffers of so many steps."""
    return [
        Detail("Buckets of a step", value=fused.sent / steps),
        Detail("Fusion copies and averaging", seconds=fused.seconds[PACKING]),
    ]
