"""When gradients are sent: as planned, or as ranks negotiate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter, sleep

from omb_py.apps import Detail
from omb_py.apps.runtime.phases import Phase, Phases, Timed
from omb_py.apps.training.fused_buffers import PACKING, FusedBuffers
from omb_py.apps.training.fusion import Plan
from omb_py.apps.training.negotiation import Cached


class Schedule:
    """Sends nothing, which is what one rank has to send.

    Gradients are counted in the order of their arrival. ``negotiating`` are the seconds of
    negotiations since training began.
    """

    negotiating = 0.0

    def begin(self) -> None:
        """Training begins."""

    def advance(self, arrived: int) -> None:
        """So many gradients of this step are there; told now and then."""

    def finish(self) -> None:
        """All gradients are there: return when all are averaged."""

    def parts(self, steps: int) -> list[Detail]:
        """What there is to tell of so many steps."""
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
        """Send what is complete and has not been sent."""
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
    """What there is to tell of the fused buffers of so many steps."""
    return [
        Detail("Buckets of a step", value=fused.sent / steps),
        Detail("Fusion copies and averaging", seconds=fused.seconds[PACKING]),
    ]
