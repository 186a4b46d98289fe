"""The epochs of a training: how long each takes, and why the first one takes longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

from omb_py.apps import Detail
from omb_py.apps.runtime.phases import Phase, Phases
from omb_py.apps.runtime.team import Team

COMMUNICATING = (Phase.COMMUNICATE, Phase.WAIT)


@dataclass(frozen=True)
class StepTimes:
    """The seconds of a step in communication and in computing."""

    communicating: float
    computing: float


@dataclass
class Epochs:
    """One rank's epochs: the seconds of each, and of each step of the first one."""

    training: list[float] = field(default_factory=list)
    steps: list[StepTimes] = field(default_factory=list)


class EpochClock:
    """Notes when steps and epochs end."""

    def __init__(self, phases: Phases) -> None:
        self.epochs = Epochs()
        self._phases = phases
        self._last = self._so_far()

    def step(self) -> None:
        """End a step."""
        if self.epochs.training:
            return
        now, last = self._so_far(), self._last
        self.epochs.steps.append(
            StepTimes(now.communicating - last.communicating, now.computing - last.computing)
        )
        self._last = now

    def epoch(self, training: float) -> None:
        """End an epoch."""
        self.epochs.training.append(training)

    def _so_far(self) -> StepTimes:
        seconds = self._phases.seconds
        communicating = sum(seconds[phase] for phase in COMMUNICATING)
        return StepTimes(communicating, seconds[Phase.COMPUTE])


def epoch_parts(of_ranks: Sequence[Epochs], samples: int) -> list[Detail]:
    """Return a row for each epoch, and the times of later epochs.

    The time of an epoch is that of the slowest rank. Throughput is that of later epochs, if there
    are any.
    """
    training = [max(times) for times in zip(*(one.training for one in of_ranks), strict=True)]
    found = [
        Detail(f"Epoch {number}", seconds=seconds)
        for number, seconds in enumerate(training, start=1)
    ]
    later = training[1:]
    one = mean(later) if later else training[0]
    if later:
        found.append(Detail("Later epochs, each", seconds=one))
    which = "later epochs" if later else "epoch 1"
    throughput = Detail(f"Throughput of {which}", value=samples / one, unit="samples/s")
    return [*found, Detail("Samples of an epoch", value=samples), throughput]


def first_training(of_ranks: Sequence[Epochs], preparing: float) -> Iterator[Detail]:
    """Return the reasons why a job's first epoch takes longer than a later one.

    They are means over the ranks of two differences between the first step and the epoch's median
    step: its longer communication, when connections are set up; and its longer computing, when
    memory is touched first. ``preparing`` are the seconds before, in which memory is allocated and
    calls are bound.
    """
    yield Detail("First training: preparing", seconds=preparing)
    yield Detail("First training: epoch 1", seconds=max(one.training[0] for one in of_ranks))
    later = [mean(one.training[1:]) for one in of_ranks if len(one.training) > 1]
    if later:
        yield Detail("First training: later epochs, each", seconds=max(later))
    first = [(one.steps[0], one.steps[1:]) for one in of_ranks if len(one.steps) > 1]
    if first:
        connecting = [
            step.communicating - median(other.communicating for other in others)
            for step, others in first
        ]
        touching = [
            step.computing - median(other.computing for other in others) for step, others in first
        ]
        yield Detail("First training: connection set-up", seconds=max(0.0, mean(connecting)))
        yield Detail("First training: first use of memory", seconds=max(0.0, mean(touching)))


def communicating(team: Team, seconds: float) -> float:
    """Return the share of so many seconds that this rank spent communicating and waiting."""
    return sum(team.phases.seconds[phase] for phase in COMMUNICATING) / seconds
