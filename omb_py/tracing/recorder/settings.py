"""What a profile is to hold."""

from __future__ import annotations

from dataclasses import dataclass

EVENTS = 100_000
"""Events of a timeline that each rank keeps, 64 bytes each."""

PROTOBUF = (".pftrace", ".perfetto-trace")
TIMELINES = (".json", ".json.gz", *PROTOBUF)
"""How names of timelines end."""


@dataclass(frozen=True)
class Settings:
    """What is recorded, and where it goes.

    ``level`` is ``python`` or ``c``; ``events`` is the room for a timeline, 0 for none; ``sites``
    records lines of the program; ``cpu_time`` the CPU time inside MPI; ``ranks`` says whose texts
    are written: ``extremes`` or ``all``.
    """

    folder: str
    level: str = "python"
    events: int = 0
    sites: bool = False
    cpu_time: bool = False
    traffic: bool = False
    timelines: tuple[str, ...] = ()
    ranks: str = "extremes"
    quiet: bool = False
