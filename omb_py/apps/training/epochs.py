"""What there is to say of the epochs of a training."""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.apps import Detail
from omb_py.apps.runtime.phases import Phase
from omb_py.apps.runtime.team import Team


def slowest(of_ranks: Sequence[Sequence[float]]) -> list[float]:
    """When each epoch ended on the rank where it ended last."""
    return [max(ends) for ends in zip(*of_ranks, strict=True)]


def epochs(ends: Sequence[float], samples: int) -> list[Detail]:
    """The first epoch, told apart since much happens for the first time in it, and a later one.

    ``ends`` are the seconds from the beginning of the first to the end of each, ``samples`` those
    of one. Throughput is that of later epochs, where there are some.
    """
    found = [Detail("Epoch 1", seconds=ends[0])]
    one = ends[0]
    if len(ends) > 1:
        one = (ends[-1] - ends[0]) / (len(ends) - 1)
        found.append(Detail("Later epochs, each", seconds=one))
    which = "later epochs" if len(ends) > 1 else "epoch 1"
    throughput = Detail(f"Throughput of {which}", value=samples / one, unit="samples/s")
    return [*found, Detail("Samples of an epoch", value=samples), throughput]


def learning(losses: Sequence[float]) -> list[Detail]:
    """Where the losses of the epochs begin and end."""
    return [
        Detail("Loss of the first epoch", value=losses[0]),
        Detail("Loss of the last epoch", value=losses[-1]),
    ]


def training_parts(team: Team, ends: Sequence[float], samples: int) -> list[Detail]:
    """The epochs, of so many samples each, and how much of it all was communication; collective.

    ``ends`` are the seconds from this rank's beginning to the end of each epoch.
    """
    seconds = team.phases.seconds
    spent = seconds[Phase.COMMUNICATE] + seconds[Phase.WAIT]
    found = team.comm.allgather((tuple(ends), spent / ends[-1]))
    mean = sum(part for _, part in found) / len(found)
    return [
        *epochs(slowest([ends for ends, _ in found]), samples),
        Detail("Communicating and waiting", value=100 * mean, unit="% of a rank's time, mean"),
    ]
