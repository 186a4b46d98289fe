"""What a program asked for, item by item, with what was moved for it, which way, and how."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from omb_py.tracing.counters.matching import NO_MESSAGES, NOT_KNOWN, Call, matching_algorithms
from omb_py.tracing.records.layout import size_bin
from omb_py.tracing.records.routines import READ, WRITTEN, base
from omb_py.tracing.traffic.paths import NOTHING, HostPath, moved
from omb_py.tracing.traffic.reading import RankTraffic, calls
from omb_py.tracing.traffic.requested import Pairs, Requested, is_probed, total

FILES = "data of files"
NOT_SAMPLED, NOT_REPORTED = "not sampled", "not reported"
SENDS, PERSISTENT, WINDOWS, REST, ALL = (
    "messages of the program",
    "messages of its persistent requests",
    "accesses to windows",
    "what else the library sent",
    "in all",
)


@dataclass(frozen=True)
class TrafficEntry:
    """One row: ``calls`` with ``nbytes`` of all ranks together, None where nobody requested.

    ``each`` are the bytes of one rank in one call, as records count them; None without calls.

    ``moved`` are messages and bytes, ``between`` how many of the bytes went to other hosts; None
    where it is not known. ``size`` is that of the communicator, 0 where there is none.
    """

    what: str
    size: int
    calls: float | None
    nbytes: int | None
    each: float | None
    moved: tuple[float, float] | None
    between: float | None
    path: str
    algorithm: str


Seen: TypeAlias = dict[tuple[str, int, int], list[tuple[Call, tuple[int, ...]]]]


def breakdown(
    ranks: Sequence[RankTraffic], requested: Requested, ways: Sequence[HostPath]
) -> list[TrafficEntry]:
    """The rows: sends, windows, each collective, the rest, and all together."""
    pairs = moved(ranks)
    where = {one.rank: one.leader for one in ranks}
    found = [
        _pairs(what, wanted, pairs, where, ways)
        for what, wanted in ((SENDS, requested.sends), (WINDOWS, requested.windows))
        if wanted
    ]
    if requested.persistent:
        # Open MPI starts persistent requests past what counts its messages
        uncounted = _pairs(PERSISTENT, requested.persistent, None, where, ways)
        found.append(replace(uncounted, algorithm=NOT_REPORTED))
    found += _collectives(ranks, requested, where, ways)
    found += _files(requested)
    if pairs is None:
        return [*found, *_over_tcp(requested, where, ways)]
    others = {pair: amount for pair, amount in pairs.items() if pair[0] != pair[1]}
    between = total(others, _between(others, where))[1]
    whole = total(others)
    known = [one.moved for one in found if one.moved is not None]
    rest = tuple(max(0.0, whole[i] - sum(one[i] for one in known)) for i in range(2))
    if rest[0] >= 1:
        found.append(TrafficEntry(REST, 0, None, None, None, (rest[0], rest[1]), None, "", ""))
    path = _path(ways, whole[1] > between, between > 0)
    found.append(TrafficEntry(ALL, 0, None, None, None, whole, between, path, ""))
    return found


def _pairs(
    what: str, wanted: Pairs, pairs: Pairs | None, where: dict[int, int], ways: Sequence[HostPath]
) -> TrafficEntry:
    """What was asked for by pairs of ranks, of which the library moved no more than it did."""
    calls, nbytes = total(wanted)
    between = total(wanted, _between(wanted, where))[1]
    amount = None
    if pairs is not None:
        minimum = [
            tuple(map(min, amounts, pairs.get(pair, (0, 0)))) for pair, amounts in wanted.items()
        ]
        amount = (float(sum(one[0] for one in minimum)), float(sum(one[1] for one in minimum)))
    path = _path(ways, nbytes > between, between > 0)
    return TrafficEntry(what, 0, calls, nbytes, nbytes / calls, amount, between, path, "")


def _over_tcp(
    requested: Requested, where: dict[int, int], ways: Sequence[HostPath]
) -> Iterator[TrafficEntry]:
    """What went to other hosts, where the kernel counted all of it and the library nothing."""
    moved = [way.moved for way in ways if not way.within]
    known = [amount[1] for amount in moved if amount is not None]
    if not known or len(known) < len(moved):
        return
    asked = (requested.messages(), requested.windows)
    wanted = sum(total(pairs, _between(pairs, where))[1] for pairs in asked)
    rest = max(0, sum(known) - wanted)
    yield TrafficEntry(REST, 0, None, None, None, None, rest, "", "")
    yield TrafficEntry(ALL, 0, None, None, None, None, sum(known), _path(ways, False, True), "")


def _files(requested: Requested) -> Iterator[TrafficEntry]:
    """What was asked for of files, which no MPI library counts."""
    for way in (READ, WRITTEN):
        uses = [use for (direction, _), use in requested.files.items() if direction == way]
        calls, nbytes = sum(use.calls for use in uses), sum(use.nbytes for use in uses)
        if calls:
            each = nbytes / calls
            yield TrafficEntry(f"{FILES} {way}", 0, calls, nbytes, each, None, None, "", "")


def _between(pairs: Iterable[tuple[int, int]], where: dict[int, int]) -> list[tuple[int, int]]:
    return [pair for pair in pairs if where.get(pair[0], -1) != where.get(pair[1], -1)]


def _collectives(
    ranks: Sequence[RankTraffic],
    requested: Requested,
    where: dict[int, int],
    ways: Sequence[HostPath],
) -> Iterator[TrafficEntry]:
    seen: Seen = defaultdict(list)
    for call, members in calls(list(ranks)):
        seen[call.routine, call.ranks, call.nbytes].append((call, members))
    sizes: dict[tuple[str, int, int], Counter[int]] = defaultdict(Counter)
    for one in ranks:
        for kind in one.collectives:
            key = (kind.routine, len(kind.members), size_bin(kind.nbytes))
            sizes[key][kind.nbytes] += kind.calls
    vendor = ranks[0].vendor
    done = set()
    for (routine, size, number), wanted in sorted(
        requested.collectives.items(), key=lambda item: -item[1].nbytes
    ):
        key = (base(routine), size, number)
        if not is_probed(routine) or key not in sizes:
            algorithm = NOT_REPORTED if ranks[0].why else NOT_SAMPLED
            each = wanted.nbytes / (wanted.calls * size)
            alone = len(set(where.values())) == 1  # nothing can have left the host
            path, between = (_path(ways, True, False), 0.0) if alone else ("", None)
            yield TrafficEntry(
                routine, size, wanted.calls, wanted.nbytes, each, None, between, path, algorithm
            )
            continue
        done.add(key)
        for nbytes, count in sorted(sizes[key].items()):
            looks = seen.get((base(routine), size, nbytes), [])
            yield _looked(routine, size, nbytes, count / size, looks, where, ways, vendor)
    for key in sizes.keys() - done:
        for nbytes, count in sorted(sizes[key].items()):
            looks = seen.get((key[0], key[1], nbytes), [])
            name = f"MPI_{key[0].capitalize()}"
            yield _looked(name, key[1], nbytes, count / key[1], looks, where, ways, vendor)


def _looked(
    routine: str,
    size: int,
    nbytes: int,
    count: float,
    looks: list[tuple[Call, tuple[int, ...]]],
    where: dict[int, int],
    ways: Sequence[HostPath],
    vendor: str,
) -> TrafficEntry:
    """A row from the calls that were looked at; the others are taken to be like them."""
    whole = round(count * size * nbytes)
    if not looks:
        return TrafficEntry(routine, size, count, whole, nbytes, None, None, "", NOT_SAMPLED)
    messages = sent = between = 0.0
    for call, members in looks:
        for (source, target), (number, length) in call.sent.items():
            messages, sent = messages + number, sent + length
            if where.get(members[source], -1) != where.get(members[target], -1):
                between += length
    scale = count / len(looks)
    path = _path(ways, sent > between, between > 0)
    amount = (messages * scale, sent * scale)
    algorithm = _algorithm(vendor, [call for call, _ in looks])
    return TrafficEntry(
        routine, size, count, whole, nbytes, amount, between * scale, path, algorithm
    )


def _algorithm(vendor: str, looks: list[Call]) -> str:
    """The algorithms of some calls: those that fit all of them, else those of each."""
    found = [matching_algorithms(vendor, call) if call.sent else (NO_MESSAGES,) for call in looks]
    common = [name for name in found[0] if all(name in one for one in found)]
    if common:
        return " or ".join(common)
    texts = Counter(" or ".join(one) or NOT_KNOWN for one in found)
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{text} ({number} of {len(found)})" for text, number in texts.items())


def _path(ways: Sequence[HostPath], within: bool, between: bool) -> str:
    """What carries data on all hosts, within them or between them, or both."""
    wanted = [way for way in ways if (within if way.within else between)]
    paths = dict.fromkeys(way.path for way in wanted if way.path != NOTHING)
    return ", ".join(paths)
