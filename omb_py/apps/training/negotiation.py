"""How ranks agree on which gradients all of them have, call for call as Horovod does it.

Ranks may finish gradients in different orders, and a collective must be called in the same order
everywhere. Therefore Horovod's background threads meet in cycles (``Controller`` in its source).
Here gradients arrive in the same order on all ranks, so that "so many" are the first so many.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from omb_py.apps.runtime.team import Team
from omb_py.apps.training import Training
from omb_py.apps.training.coordinator import NegotiationMaster
from omb_py.apps.training.horovod_timeline import Activities
from omb_py.bindings import BoundCall
from omb_py.core.calls import Call

STATUS = 0b111
STATUS_BITS = 3
"""Of a bit vector, before those of gradients: no shutdown, nothing uncached, nothing invalid."""

NOTHING_UNCACHED = 0b010
"""The status bit of a rank whose gradients are all in the cache."""

WORD_BITS = 64


class Negotiation(ABC):
    """Cycles in which all ranks say how many gradients they have."""

    def begin(self) -> None:
        """Training begins: no gradient has ever been seen."""
        self.step()

    @abstractmethod
    def step(self) -> None:
        """A step begins: no gradient is there."""

    @abstractmethod
    def cycle(self, agreed: int, ready: int) -> int:
        """How many gradients all ranks have, when this one has ``ready``; collective.

        ``agreed`` is what the cycle before found in this step, 0 in the first one.
        """


class Uncached(Negotiation):
    """Every gradient is asked for in every step: Horovod with a cache of 0 entries."""

    def __init__(self, team: Team, gradients: int, activities: Activities) -> None:
        self._coordinator = NegotiationMaster(team, gradients, activities)

    def step(self) -> None:
        self._coordinator.step()

    def cycle(self, agreed: int, ready: int) -> int:
        return self._coordinator.cycle(agreed, ready)


class Cached(Negotiation):
    """A bit for each gradient that was asked for before, combined with AND in one allreduce.

    So it is in all steps but the first, in which the requests of `NegotiationMaster` follow the
    allreduce wherever a rank has a gradient that is not in the cache. The bit vector has 3 bits of
    status and one for each gradient in the cache, in whole words of 8 bytes.
    """

    def __init__(self, team: Team, gradients: int, activities: Activities) -> None:
        self._coordinator = NegotiationMaster(team, gradients, activities)
        self._vector = team.array(words_of(gradients), "int64")
        self._combine: list[BoundCall] = []
        for words in range(1, words_of(gradients) + 1):
            operands = team.in_place(self._vector.rows(0, words).message())
            self._combine.append(team.bind(Call("allreduce", operands, op="band")))
        self._cached = 0

    def begin(self) -> None:
        super().begin()
        self._cached = 0

    def step(self) -> None:
        self._coordinator.step()

    def cycle(self, agreed: int, ready: int) -> int:
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
    """The words of a bit vector for so many gradients."""
    return -(-(STATUS_BITS + gradients) // WORD_BITS)


def _ones(begin: int, end: int) -> int:
    """A number whose bits from ``begin`` to ``end`` are set; 0 where there are none."""
    return (1 << end) - (1 << begin) if end > begin else 0


def _trailing_ones(bits: int) -> int:
    """How many bits are set before the first one that is not."""
    return (~bits & (bits + 1)).bit_length() - 1


def negotiation_of(
    team: Team, gradients: int, training: Training, activities: Activities
) -> Negotiation:
    """What ``training`` asks for, where ranks negotiate."""
    kinds = {"cached": Cached, "uncached": Uncached}
    return kinds[training.negotiation](team.beside_device(), gradients, activities)
