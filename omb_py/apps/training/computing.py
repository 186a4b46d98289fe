"""Computing that is pretended: it takes time as it would."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter, sleep

from omb_py.apps.runtime.team import Team

SLICE = 50e-6
"""Seconds of a delay after which an exchange is told that time has passed."""

SIDE = 128
"""Rows and columns of the matrices that are multiplied; one product is the unit of computing."""

CALIBRATION = 50
"""Products that are timed."""


class Computing(ABC):
    """Takes up time that counts as computing; ``tick`` is called now and then, outside of it."""

    def __init__(self, team: Team, tick: Callable[[], None]) -> None:
        self._team = team
        self._tick = tick

    def prepare(self) -> None:  # noqa: B027 - a delay has nothing to prepare
        """Get ready, before a training begins."""

    @abstractmethod
    def begin(self) -> None:
        """A step begins."""

    def resume(self) -> None:  # noqa: B027 - what really computes cannot have begun
        """What is computed next was not there before now."""

    @abstractmethod
    def spend(self, seconds: float) -> None:
        """Compute for so long."""


class Delay(Computing):
    """Waits until the time is up, and lets other processes run.

    What the rank does between two delays of a step is taken off the next one: so it is where a
    device computes while the processor communicates.
    """

    _end = 0.0

    def begin(self) -> None:
        self._end = perf_counter()

    def resume(self) -> None:
        self._end = max(self._end, perf_counter())

    def spend(self, seconds: float) -> None:
        self._end += seconds
        while (now := perf_counter()) < self._end:
            with self._team.computing:
                until = min(self._end, now + SLICE)
                while perf_counter() < until:
                    sleep(0)
            self._tick()


class Products(Computing):
    """Multiplies matrices, as often as takes so long on this rank while all others do it too."""

    def __init__(self, team: Team, tick: Callable[[], None]) -> None:
        super().__init__(team, tick)
        self._factor = team.xp.ones((SIDE, SIDE), "float32")
        self._product = team.xp.empty_like(self._factor)
        self._seconds = self._owed = 0.0

    def prepare(self) -> None:
        for times in (1, CALIBRATION) if not self._seconds else ():
            begin = perf_counter()
            with self._team.computing:
                for _ in range(times):
                    self._multiply()
            self._seconds = (perf_counter() - begin) / times

    def begin(self) -> None:
        self._owed = 0.0

    def spend(self, seconds: float) -> None:
        self._owed += seconds
        while self._owed >= self._seconds:
            with self._team.computing:
                self._multiply()
            self._owed -= self._seconds
            self._tick()

    def _multiply(self) -> None:
        self._team.xp.matmul(self._factor, self._factor, out=self._product)


COMPUTING: dict[str, type[Computing]] = {"delay": Delay, "matmul": Products}
"""By the names that ``--compute`` has for them."""
