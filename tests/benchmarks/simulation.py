"""All ranks of one iteration in this process: their messages meet, in an order drawn by chance.

Every send waits for its receive, as long messages do, and data moves at any time between the
meeting and the end of both sides. So ranks that rely on a send's returning early, that write to
what is still being sent or that read what has not yet come, do so here too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from omb_py.core.calls import Call, Message, Slot, Step, Window


@dataclass(eq=False)
class Side:
    """One side of a message: who, with whom, and the memory; done when its data has moved."""

    sends: bool
    rank: int
    peer: int
    message: Message
    done: bool = False


@dataclass
class Simulation:
    """The steps of every rank, and what became of their messages.

    ``sent`` has the source, target and bytes of every message.
    """

    ranks: Sequence[Sequence[Step]]
    chance: Random = field(default_factory=Random)
    sent: list[tuple[int, int, int]] = field(default_factory=list)

    def run(self) -> Simulation:
        """Make all steps; fails where ranks wait for each other or a message has one side only."""
        self._waiting: dict[tuple[int, int], tuple[list[Side], list[Side]]]
        self._waiting = defaultdict(lambda: ([], []))
        self._met: list[tuple[Side, Side]] = []
        going = dict(enumerate(map(self._rank, range(len(self.ranks)), self.ranks)))
        blocked: dict[int, list[Side]] = {rank: [] for rank in going}
        while going:
            ready = [rank for rank in going if all(side.done for side in blocked[rank])]
            assert ready or self._met, f"ranks {sorted(going)} wait for each other"
            chosen = self.chance.randrange(len(ready) + len(self._met))
            if chosen >= len(ready):
                self._move(*self._met.pop(chosen - len(ready)))
                continue
            rank = ready[chosen]
            try:
                blocked[rank] = next(going[rank])
            except StopIteration:
                del going[rank]
        alone = [pair for pair, sides in self._waiting.items() if any(sides)]
        assert not alone, f"messages between {alone} have one side only"
        return self

    def _rank(self, rank: int, steps: Sequence[Step]) -> Iterator[list[Side]]:
        """Makes a rank's steps; gives what it has to wait for."""
        slots: dict[Slot, list[Side]] = defaultdict(list)
        for step in steps:
            if isinstance(step, Window):
                (calls,) = step.groups
                yield [self._started(rank, call) for call in calls]
                continue
            assert isinstance(step, Call)
            name, messages = step.function, step.messages
            if name == "reduce_local":
                other, total = (message.memory.array for message in messages)
                total += other
            elif name == "sendrecv":
                to, _, source, _ = step.values
                yield [
                    self._post(True, rank, to, messages[0]),
                    self._post(False, rank, source, messages[1]),
                ]
            elif name in ("isend", "irecv"):
                assert step.slot is not None
                assert step.index == len(slots[step.slot]) < step.slot.count
                slots[step.slot].append(self._started(rank, step))
            elif name == "waitall":
                assert step.slot is not None
                assert len(slots[step.slot]) == step.slot.count
                yield slots.pop(step.slot)
            else:
                assert name in ("send", "recv"), name
                assert step.peer is not None
                yield [self._post(name == "send", rank, step.peer, messages[0])]
        assert not slots, f"rank {rank} does not wait for {slots}"

    def _started(self, rank: int, call: Call) -> Side:
        assert call.function in ("isend", "irecv")
        assert call.peer is not None
        return self._post(call.function == "isend", rank, call.peer, call.messages[0])

    def _post(self, sends: bool, rank: int, peer: int, message: Message) -> Side:
        side = Side(sends, rank, peer, message)
        source, target = (rank, peer) if sends else (peer, rank)
        sending, receiving = self._waiting[source, target]
        (sending if sends else receiving).append(side)
        if sending and receiving:
            self._met.append((sending.pop(0), receiving.pop(0)))
        return side

    def _move(self, sender: Side, receiver: Side) -> None:
        source: Any = sender.message.memory.array
        target: Any = receiver.message.memory.array
        assert source.nbytes == target.nbytes > 0
        target[:] = source
        sender.done = receiver.done = True
        self.sent.append((sender.rank, receiver.rank, source.nbytes))
