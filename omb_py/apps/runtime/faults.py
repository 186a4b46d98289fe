"""Failures of ranks: when they come, what survives them, and what they cost."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from omb_py.apps import Detail
from omb_py.core.errors import SharedError, UsageError
from omb_py.core.text.numbers import MEBIBYTE
from omb_py.core.text.words import count

CALLS = 4
"""A rank fails before one of so many communication calls of a step, or after the last one."""


@dataclass(frozen=True)
class Fault:
    """That ``rank`` fails in step number ``step``, before it makes number ``call`` of its calls.

    Steps and calls count from 0; in a step with fewer calls it fails at the end.
    """

    step: int
    rank: int
    call: int


def schedule(seed: int, faults: int, ranks: int, steps: int) -> tuple[Fault, ...]:
    """When so many different ranks fail, never rank 0; ranks are those before any failure.

    Each fails in an equal part of the steps of its own; where there are fewer steps than faults,
    several fail in one. Raises `UsageError` where there are too few ranks.
    """
    if faults >= ranks:
        raise UsageError(
            f"--faults {faults}: of {count(ranks, 'rank')} at most {ranks - 1} can fail, since "
            "rank 0 writes the results: start more ranks, or let fewer fail"
        )
    random_numbers = random.Random(seed)
    found = []
    for number, rank in enumerate(random_numbers.sample(range(1, ranks), faults)):
        first = number * steps // faults
        after = max(first + 1, (number + 1) * steps // faults)
        step = random_numbers.randrange(first, after)
        found.append(Fault(step, rank, random_numbers.randrange(CALLS)))
    return tuple(found)


def due(faults: Sequence[Fault], rank: int, step: int, failed: int) -> Fault | None:
    """The fault of a rank in a step, if that is its time: when all earlier ranks have failed.

    ``failed`` is how many have. A step that is repeated is no reason to fail again.
    """
    own = next((one for one in faults if (one.rank, one.step) == (rank, step)), None)
    if own is None or failed < sum(one.step < step for one in faults):
        return None
    return own


def partner(rank: int, ranks: int) -> int:
    """The rank that keeps a copy of this one's state."""
    return (rank + 1) % ranks


def holders(ranks: int, has: Mapping[int, int], partitioned: bool) -> tuple[int, ...]:
    """Who gives the state of each of the ``ranks`` of a checkpoint after a failure.

    ``has`` says of a surviving rank of the checkpoint which rank of the new team it is. Raises
    `SharedError` where a rank has failed together with its partner.
    """
    found = []
    for rank in range(ranks):
        keepers = (rank, partner(rank, ranks)) if partitioned else (rank, 0)
        keeper = next((has[one] for one in keepers if one in has), None)
        if keeper is None:
            raise SharedError(
                f"ranks {rank} and {keepers[1]} failed between two checkpoints, and one kept the "
                "other's copy: their part of the data is lost; start again"
            )
        found.append(keeper)
    return tuple(found)


@dataclass(frozen=True)
class Failure:
    """Ranks that failed together, and what it took to go on, in seconds.

    ``ranks`` are their numbers before any failure; ``step`` is the one that they failed in,
    counted from 0, ``repeated`` the steps completed since the checkpoint, which are made again.
    ``lost`` is how long before the failure the checkpoint was made. ``stages`` are those of the
    recovery in order.
    """

    ranks: tuple[int, ...]
    step: int
    before: int
    after: int
    repeated: int
    lost: float
    stages: Mapping[str, float]

    @property
    def recovery(self) -> float:
        """The seconds from the failure until computing goes on."""
        return sum(self.stages.values())


@dataclass
class Survival:
    """What came of a run with failures; ``checkpoints`` are the seconds of each, on rank 0."""

    failures: list[Failure] = field(default_factory=list)
    checkpoints: list[float] = field(default_factory=list)
    checkpoint_bytes: int = 0


def survival_parts(
    found: Survival, steps: int, seconds: float, without: Sequence[float]
) -> Iterator[Detail]:
    """What to tell of a run that took so many seconds, and of repeats ``without`` failures."""
    for number, failure in enumerate(found.failures, start=1):
        name = f"Failure {number}"
        named = f"rank{'s' * (len(failure.ranks) > 1)} {', '.join(map(str, failure.ranks))}"
        yield Detail(f"{name}: step", value=failure.step + 1, unit=f"of {steps}, {named} failed")
        yield Detail(f"{name}: ranks before", value=failure.before)
        yield Detail(f"{name}: ranks after", value=failure.after)
        for stage, spent in failure.stages.items():
            yield Detail(f"{name}: {stage}", seconds=spent)
        yield Detail(f"{name}: time to recover", seconds=failure.recovery)
        yield Detail(
            f"{name}: lost work",
            seconds=failure.lost,
            value=failure.repeated,
            unit="steps completed, to be repeated",
        )
    failures = found.failures
    if len(failures) > 1:
        spent = sum(one.recovery for one in failures)
        yield Detail("All failures: time to recover", seconds=spent)
        yield Detail(
            "All failures: lost work",
            seconds=sum(one.lost for one in failures),
            value=sum(one.repeated for one in failures),
            unit="steps completed, to be repeated",
        )
    yield Detail("Checkpoints", seconds=sum(found.checkpoints), value=len(found.checkpoints))
    yield Detail(
        "Checkpoint, each",
        seconds=median(found.checkpoints),
        value=found.checkpoint_bytes / MEBIBYTE,
        unit="MiB in the memory of rank 0",
    )
    if without:
        usual = median(without)
        yield Detail("Without failures", seconds=usual, value=len(without), unit="repeats, median")
        added = seconds - usual
        share = 100 * added / usual
        yield Detail("Added by failures", seconds=added, value=share, unit="% of the time without")
