"""What there is to tell of a training in which all ranks do the same."""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.apps import Part
from omb_py.measure.phases import Phase
from omb_py.measure.team import Team
from omb_py.training.epochs import epochs, slowest


def training_parts(team: Team, ends: Sequence[float], samples: int) -> list[Part]:
    """The epochs, of so many samples each, and how much of it all was communication; collective.

    ``ends`` are the seconds from this rank's beginning to the end of each epoch.
    """
    seconds = team.phases.seconds
    spent = seconds[Phase.COMMUNICATE] + seconds[Phase.WAIT]
    found = team.comm.allgather((tuple(ends), spent / ends[-1]))
    mean = sum(part for _, part in found) / len(found)
    return [
        *epochs(slowest([ends for ends, _ in found]), samples),
        Part("Communicating and waiting", value=100 * mean, unit="% of a rank's time, mean"),
    ]
