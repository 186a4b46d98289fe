"""The traffic of a run, read from the files of its ranks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.tracing import counters
from omb_py.tracing.counters.connections import Connections
from omb_py.tracing.counters.links import Link, LinkUsage, usage
from omb_py.tracing.counters.matching import Call
from omb_py.tracing.counters.messages import KINDS, Counts
from omb_py.tracing.records.layout import NOBODY

WIRE_FIELDS = {
    "meter": str,
    "name": str,
    "reach": str,
    "bits": int,
    "sticks": bool,
    "unit": int,
    "problem": str,
}


@dataclass(frozen=True)
class ProbedCall:
    """One rank's part in a collective call that was looked at: what it sent, by peers' ranks."""

    root: int
    sent: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class CallKind:
    """One rank's calls of a routine with one size on a communicator; ``looks`` by their number."""

    routine: str
    members: tuple[int, ...]
    instance: int
    nbytes: int
    calls: int
    looks: Mapping[int, ProbedCall]


@dataclass(frozen=True)
class RankTraffic:
    """What one rank's file says. ``moved`` is empty and ``why`` says why where nobody counted.

    ``leader`` is the lowest rank on the same host; it has the ``wires`` of the host.
    ``connections`` is None where the rank did not tell.
    """

    rank: int
    ranks: int
    host: str
    leader: int
    library: str
    vendor: str
    complete: bool
    why: str
    moved: Counts
    wires: tuple[LinkUsage, ...]
    kinds: tuple[CallKind, ...]
    connections: Connections | None = None


def read_folder(folder: str | Path) -> list[RankTraffic]:
    """The traffic of all ranks of a run, by rank.

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
    """The traffic in a file; raises `UsageError` where it is none or cannot be read."""
    written = files.read(path, UsageError)
    try:
        content = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no traffic of omb-py profile, or damaged") from error
    if isinstance(content, dict) and content.get("version") not in (None, counters.VERSION):
        raise UsageError(f"{path} is of another version of omb-py: read it with that one")
    try:
        return _rank_traffic(content)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(f"{path} is no traffic of omb-py profile, or damaged") from error


def calls(ranks: list[RankTraffic]) -> Iterator[tuple[Call, tuple[int, ...]]]:
    """The collective calls that all their ranks looked at, with these ranks in MPI_COMM_WORLD."""
    looks: dict[tuple[Any, ...], dict[int, tuple[int, ProbedCall]]] = defaultdict(dict)
    for one in ranks:
        for kind in one.kinds:
            for number, look in kind.looks.items():
                key = (kind.routine, kind.members, kind.instance, number)
                looks[key][one.rank] = (kind.nbytes, look)
    for (routine, members, _, _), parts in looks.items():
        if len(parts) < len(members) or any(member not in parts for member in members):
            continue
        place = {member: number for number, member in enumerate(members)}
        sent = {
            (place[rank], place.get(peer, NOBODY)): amount
            for rank, (_, look) in parts.items()
            for peer, amount in look.sent.items()
        }
        nbytes = max(size for size, _ in parts.values())
        root = max(look.root for _, look in parts.values())
        yield Call(routine, len(members), nbytes, sent, root), members


def _rank_traffic(content: dict[str, Any]) -> RankTraffic:
    rank, ranks, leader = (_count(content[name]) for name in ("rank", "ranks", "leader"))
    if rank >= ranks or leader >= ranks:
        raise ValueError(content)
    before = [_wire(row) for row in content["before"]]
    after = {(wire.meter, wire.name): wire for wire in map(_wire, content["after"])}
    wires = [
        usage(wire, after[wire.meter, wire.name])
        for wire in before
        if (wire.meter, wire.name) in after
    ]
    moved = {kind: _peers(content["moved"].get(kind, []), ranks) for kind in KINDS}
    return RankTraffic(
        rank,
        ranks,
        _text(content["host"]),
        leader,
        _text(content["library"]),
        _text(content["vendor"]),
        bool(content["complete"]),
        _text(content["why"]),
        moved,
        tuple(wires),
        tuple(_kind(row, ranks) for row in content["collectives"]),
        _connections(content.get("connections")),
    )


def _connections(row: dict[str, Any] | None) -> Connections | None:
    if row is None:
        return None
    return Connections(**{_text(name): _count(number) for name, number in row.items()})


def _kind(row: dict[str, Any], ranks: int) -> CallKind:
    looks = {
        _count(look["number"]): ProbedCall(int(look["root"]), _peers(look["sent"], ranks))
        for look in row["looks"]
    }
    members = tuple(int(member) for member in row["members"])
    calls, instance = _count(row["calls"]), _count(row["instance"])
    return CallKind(_text(row["routine"]), members, instance, int(row["nbytes"]), calls, looks)


def _peers(rows: list[list[int]], ranks: int) -> dict[int, tuple[int, int]]:
    found = {}
    for peer, messages, nbytes in rows:
        if not 0 <= peer < ranks:
            raise ValueError(peer)
        found[int(peer)] = (_count(messages), _count(nbytes))
    return found


def _wire(row: dict[str, Any]) -> Link:
    numbers = [None if row[name] is None else _count(row[name]) for name in ("sent", "received")]
    checked: dict[str, Any] = {}
    for name, kind in WIRE_FIELDS.items():
        if not isinstance(row[name], kind):
            raise TypeError(name)
        checked[name] = row[name]
    over = tuple(_text(name) for name in row["over"])
    events = {_text(name): _count(number) for name, number in row["events"].items()}
    return Link(**checked, sent=numbers[0], received=numbers[1], over=over, events=events)


def _count(value: Any) -> int:
    """A whole number that is not negative; raises `ValueError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
