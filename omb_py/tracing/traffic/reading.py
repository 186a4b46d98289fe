"""The traffic of a run, read from the files of its ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.tracing import counters
from omb_py.tracing.counters.connections import ConnectionCounters
from omb_py.tracing.counters.links import Link, LinkUsage, usage

Count = Annotated[int, Field(ge=0)]


class TrafficRow(BaseModel):
    """A part of a file: its values have exactly the types that are named."""

    model_config = ConfigDict(strict=True, frozen=True)


class RankTraffic(TrafficRow):
    """The contents of one rank's file.

    ``leader`` is the lowest rank on the same host; it has the ``links`` of the host.
    ``connections`` is None if the rank did not report them, as is ``storage``, the bytes that its
    process has read from storage and written to it.
    """

    version: Annotated[int, Field(ge=counters.VERSION, le=counters.VERSION)] | None = None
    rank: Count
    ranks: Count
    host: str
    leader: Count
    library: str
    complete: bool
    before: tuple[Link, ...]
    after: tuple[Link, ...]
    connections: ConnectionCounters | None = None
    storage: tuple[Count, Count] | None = None

    @property
    def links(self) -> list[LinkUsage]:
        """The traffic of the host's links."""
        after = {(link.meter, link.name): link for link in self.after}
        pairs = ((link, after.get((link.meter, link.name))) for link in self.before)
        return [usage(before, after) for before, after in pairs if after is not None]

    @model_validator(mode="after")
    def _within(self) -> RankTraffic:
        if max(self.rank, self.leader) >= self.ranks:
            raise ValueError(f"there are no more than {self.ranks} ranks")
        return self


def read_folder(folder: str | Path) -> list[RankTraffic]:
    """Return the traffic of all ranks of a run, by rank.

    Raises `UsageError` when there is none, and for files that are damaged or of several runs.
    """
    paths = sorted(Path(folder).glob("traffic-*.json"))
    if not paths:
        raise UsageError(
            f"{folder} holds no traffic: run omb-py profile --traffic, which counts it"
        )
    found = sorted((read(path) for path in paths), key=lambda one: one.rank)
    if len({one.ranks for one in found}) > 1 or len({one.rank for one in found}) < len(found):
        raise UsageError(f"{folder} holds traffic of several runs: give each a folder of its own")
    return found


def read(path: Path) -> RankTraffic:
    """Return the traffic in a file; raises `UsageError` if it is not one or cannot be read."""
    try:
        return RankTraffic.model_validate_json(files.read(path, UsageError))
    except ValidationError as error:
        if any(fault["loc"] == ("version",) for fault in error.errors()):
            raise UsageError(
                f"{path} is of another version of omb-py: read it with that one"
            ) from error
        raise UsageError(f"{path} is no traffic of omb-py profile, or damaged") from error
