"""The values that the file of a profile may hold: all are checked, for anyone may have written it.

It needs pydantic: import it where a file is read, not where ranks run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError

from omb_py.core.errors import UsageError
from omb_py.tracing.profile.profile import (
    FORMAT,
    VERSION,
    CallStats,
    Extreme,
    Extremes,
    Profile,
    RankProfile,
    RoutineLine,
)
from omb_py.tracing.records.layout import Communicator

LARGEST = 1 << 63

Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0, lt=LARGEST)]
Number = Annotated[int | float, Field(gt=-LARGEST, lt=LARGEST)]
Pair = Annotated[tuple[Number, Count], Strict(False)]


class Row(BaseModel):
    """A row: what it does not have is None; keys that are not known are left out."""

    model_config = ConfigDict(strict=True)


class Routine(Row):
    """All calls of a routine."""

    calls: Count
    nbytes: Number
    seconds: Number
    routine: Name


class Calls(Routine):
    """Calls that are alike."""

    communicator: str | None = None
    communicator_size: Count | None = None
    communicator_label: str | None = None
    peer: Count | None = None
    bin: Count | None = None
    site: str | None = None
    least_s: Number | None = None
    greatest_s: Number | None = None

    def stats(self) -> CallStats:
        """These calls, with their communicator in one."""
        values = dict(self)
        key, size, label = (values.pop(f"communicator{part}") for part in ("", "_size", "_label"))
        communicator = None if size is None else Communicator(key or "", size, label or "")
        return CallStats(communicator=communicator, **values)


class Member(Row):
    """A rank; ``counted`` is whether its calls are known."""

    rank: Count
    host: str | None = None
    complete: bool
    elapsed_s: Number | None = None
    communication_s: Number | None = None
    io_s: Number | None = None
    user_s: Number | None = None
    system_s: Number | None = None
    thread_s: Number | None = None
    outside_s: Number | None = None
    memory_bytes: Number | None = None
    switches: Count | None = None
    counted: bool
    routines: list[Routine]
    calls: list[Calls]

    def profile(self) -> RankProfile:
        """What this rank did; raises `UsageError` for calls of a rank that has none."""
        values = dict(self)
        counted, routines, calls = (values.pop(name) for name in ("counted", "routines", "calls"))
        if not counted and (routines or calls):
            raise UsageError("it has calls of ranks that are not there")
        return RankProfile(
            **values,
            cells=tuple(row.stats() for row in calls) if counted else None,
            told=tuple(RoutineLine(**dict(row)) for row in routines),
        )


class Content(Row):
    """A whole profile."""

    ranks: Count
    origin: str | None = None
    level: str | None = None
    began: Number | None = None
    about: dict[str, Any]
    extremes: dict[str, Pair | None]
    notes: list[str]
    members: list[Member]


def profile_of(found: Mapping[str, Any]) -> Profile:
    """The profile of plain values, as `Profile.plain` gives them.

    Raises `UsageError` where they are none of one.
    """
    if found.get("format") != FORMAT:
        raise UsageError("it is no profile of omb-py")
    if found.get("version") != VERSION:
        raise UsageError("another version of omb-py wrote it: read it with that one")
    try:
        content = Content.model_validate(found)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise UsageError(f"{place!r}: {fault['msg'][0].lower()}{fault['msg'][1:]}") from error
    there = [member.rank for member in content.members]
    if sorted(set(there)) != there or (there and there[-1] >= content.ranks):
        raise UsageError(f"its ranks are not those of a run of {content.ranks}")
    pairs = {name: content.extremes.get(name) for name in Extremes.__dataclass_fields__}
    return Profile(
        ranks=content.ranks,
        members=tuple(member.profile() for member in content.members),
        extremes=Extremes(**{name: Extreme(*pair) for name, pair in pairs.items() if pair}),
        origin=content.origin or "",
        level=content.level,
        began=content.began,
        about=content.about,
        notes=tuple(content.notes),
    )
