"""A profile as plain values, for files: which fields there are, and what they may hold.

`parts` takes a profile apart, `join` puts it together and checks every value: who wrote the file
is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.tracing.profile.profile import (
    CallStats,
    Extreme,
    Extremes,
    Profile,
    RankProfile,
    RoutineLine,
)
from omb_py.tracing.records.layout import Communicator

FORMAT, VERSION = "omb-py profile", 1
LARGEST = 1 << 63

TEXT, WHOLE, NUMBER, TRUTH = "text", "whole", "number", "truth"

RANK = {
    "rank": WHOLE,
    "host": TEXT,
    "complete": TRUTH,
    "elapsed_s": NUMBER,
    "communication_s": NUMBER,
    "io_s": NUMBER,
    "user_s": NUMBER,
    "system_s": NUMBER,
    "thread_s": NUMBER,
    "outside_s": NUMBER,
    "memory_bytes": NUMBER,
    "switches": WHOLE,
    "counted": TRUTH,
}
"""Fields of a rank; ``counted`` is whether its calls are known."""

CALLS = {
    "routine": TEXT,
    "communicator": TEXT,
    "communicator_size": WHOLE,
    "communicator_label": TEXT,
    "peer": WHOLE,
    "bin": WHOLE,
    "site": TEXT,
    "calls": WHOLE,
    "nbytes": NUMBER,
    "seconds": NUMBER,
    "least_s": NUMBER,
    "greatest_s": NUMBER,
}
"""Fields of calls that are alike. Sums that a file told have some of them."""

NEEDED = ("rank", "routine", "calls", "nbytes", "seconds", "complete", "counted")
"""Fields without which a row is none."""

EXTREMES = ("minimum", "median", "maximum", "elapsed", "memory")

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Parts:
    """A profile as plain values; ``cells`` and ``told`` are pairs of a rank and a row."""

    about: Values
    members: Sequence[Values]
    cells: Iterable[tuple[int, Values]]
    told: Iterable[tuple[int, Values]]


def parts(profile: Profile) -> Parts:
    """The plain values of a profile; those that are None are left out."""
    about = {
        "format": FORMAT,
        "version": VERSION,
        "ranks": profile.ranks,
        "origin": profile.origin,
        "level": profile.level,
        "began": profile.began,
        "about": dict(profile.about),
        "extremes": {name: _plain(one) for name, one in asdict(profile.extremes).items()},
        "notes": list(profile.notes),
    }
    members = profile.members
    return Parts(
        about,
        [_rank_values(member) for member in members],
        ((member.rank, _cell_values(cell)) for member in members for cell in member.cells or ()),
        ((member.rank, _told_values(line)) for member in members for line in member.told),
    )


def join(found: Parts) -> Profile:
    """The profile of plain values; raises `UsageError` where they are none of one."""
    about = found.about
    if about.get("format") != FORMAT:
        raise UsageError("it is no profile of omb-py")
    if about.get("version") != VERSION:
        raise UsageError("another version of omb-py wrote it: read it with that one")
    ranks = whole(about.get("ranks"), "ranks")
    cells: dict[int, list[CallStats]] = {}
    for rank, row in found.cells:
        cells.setdefault(rank, []).append(_cell(row))
    told: dict[int, list[RoutineLine]] = {}
    for rank, row in found.told:
        told.setdefault(rank, []).append(_told(row))
    members = [_member(row, cells, told) for row in found.members]
    there = [member.rank for member in members]
    if sorted(set(there)) != there or any(not 0 <= rank < ranks for rank in there):
        raise UsageError(f"its ranks are not those of a run of {ranks}")
    if not {*cells, *told} <= {member.rank for member in members if member.cells is not None}:
        raise UsageError("it has calls of ranks that are not there")
    return Profile(
        ranks=ranks,
        members=tuple(members),
        extremes=_extremes(about.get("extremes")),
        origin=_text(about.get("origin"), "origin") or "",
        level=_text(about.get("level"), "level"),
        began=_number(about.get("began"), "began"),
        about=_mapping(about.get("about"), "about"),
        notes=_notes(about.get("notes")),
    )


def value(name: str, kind: str, found: Any) -> Any:
    """A value of this kind or, where it may be missing, None; raises `UsageError` for others."""
    if found is None or found == "":
        if name in NEEDED:
            raise UsageError(f"a {name} is missing")
        return None
    if kind == TRUTH:
        if not isinstance(found, bool):
            raise UsageError(f"a {name} is neither true nor false")
        return found
    if kind == WHOLE:
        return whole(found, name)
    return _text(found, name) if kind == TEXT else _number(found, name)


def whole(found: Any, name: str) -> int:
    """A whole number that is not negative; raises `UsageError` for anything else."""
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < LARGEST:
        raise UsageError(f"a {name} is no whole number")
    return found


def _number(found: Any, name: str) -> float | None:
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise UsageError(f"a {name} is no number")
    if not -LARGEST < found < LARGEST:  # not a number, too
        raise UsageError(f"a {name} is out of range")
    return found


def _text(found: Any, name: str) -> str | None:
    if found is not None and not isinstance(found, str):
        raise UsageError(f"a {name} is no text")
    return found


def _mapping(found: Any, name: str) -> Values:
    if not isinstance(found, dict):
        raise UsageError(f"{name} is missing")
    return found


def _notes(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(note, str) for note in found):
        raise UsageError("its notes are no texts")
    return tuple(found)


def _plain(one: Values | None) -> list[Any] | None:
    return None if one is None else [one["value"], one["rank"]]


def _extremes(found: Any) -> Extremes:
    values = _mapping(found, "extremes")
    made = {}
    for name in EXTREMES:
        pair = values.get(name)
        if pair is None:
            continue
        if not isinstance(pair, list) or len(pair) != 2 or pair[0] is None:
            raise UsageError("its extremes are no values with their ranks")
        made[name] = Extreme(_number(pair[0], name) or 0.0, whole(pair[1], name))
    return Extremes(**made)


def _rank_values(member: RankProfile) -> dict[str, Any]:
    told = {name: getattr(member, name) for name in RANK if name != "counted"}
    return _known(told) | {"counted": member.cells is not None}


def _cell_values(cell: CallStats) -> dict[str, Any]:
    values = _known(vars(cell))
    if (communicator := values.get("communicator")) is not None:
        values["communicator"] = communicator.key
        values["communicator_size"] = communicator.size
        values["communicator_label"] = communicator.label
    return values


def _told_values(line: RoutineLine) -> dict[str, Any]:
    return asdict(line)


def _known(values: Values) -> dict[str, Any]:
    return {name: found for name, found in values.items() if found is not None}


def _member(
    row: Values, cells: Mapping[int, list[CallStats]], told: Mapping[int, list[RoutineLine]]
) -> RankProfile:
    values = {name: value(name, kind, row.get(name)) for name, kind in RANK.items()}
    counted, rank = values.pop("counted"), values["rank"]
    known = tuple(cells.get(rank, ())) if counted else None
    return RankProfile(**values, cells=known, told=tuple(told.get(rank, ())))


def _cell(row: Values) -> CallStats:
    values = {name: value(name, kind, row.get(name)) for name, kind in CALLS.items()}
    key, size, label = (values.pop(name) for name in list(CALLS)[1:4])
    communicator = None if size is None else Communicator(key or "", size, label or "")
    return CallStats(communicator=communicator, **values)


def _told(row: Values) -> RoutineLine:
    names = ("calls", "nbytes", "seconds", "routine")
    return RoutineLine(*(value(name, CALLS[name], row.get(name)) for name in names))
