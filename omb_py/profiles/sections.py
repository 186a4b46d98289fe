"""Sections of a profile's text that there is data for only at times, and the table of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from omb_py.profiles import tables
from omb_py.profiles.profile import Profile, RankProfile, ranked
from omb_py.profiles.wording import one_line, one_word

SHORT_RULE = "-" * 65
MIB = 1 << 20

MOST_ROWS = 100
"""Rows of a section that may have very many; the CSV has all of them."""

BINS = 15
MANY_RANKS = 32
"""Ranks beyond which a histogram says more than their table, as in mpitrace."""

HAVING_A_CORE = 0.9
"""A part of the time outside MPI: ranks that computed less had no core, slept, or read files."""


def sites(members: Sequence[RankProfile]) -> Iterator[str]:
    """The lines of the program that called MPI, the longest first."""
    lines = tables.sites(members)
    if not lines:
        return
    shown = _short({line.site for line in lines})
    yield from (SHORT_RULE, "Points of call:", "")
    width = max(len(one_line(line.routine)) for line in lines)
    head = f"{'time(sec)':>12} {'#calls':>10} {'avg. bytes':>14}  {'MPI Routine':<{width}}"
    yield f"{head}  file:line function"
    for line in lines[:MOST_ROWS]:
        numbers = f"{line.seconds:>12.3f} {line.calls:>10} {line.average:>14.1f}"
        yield f"{numbers}  {one_line(line.routine):<{width}}  {one_line(shown[line.site])}"
    yield from _others(len(lines), "points of call with the most time")


def _short(found: set[str]) -> dict[str, str]:
    """Places without the folder that all of them share."""
    names = [PurePath(site).parts for site in found]
    common = 0
    for parts in zip(*(name[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        common += 1
    return {site: str(PurePath(*PurePath(site).parts[common:])) for site in found}


def communicators(members: Sequence[RankProfile]) -> Iterator[str]:
    """Calls by the size of their communicator, where there is more than one."""
    if tables.distinct_communicators(members) < 2:
        return
    lines = tables.communicators(members)
    yield from (SHORT_RULE, "Calls by the size of their communicator:", "")
    width = max(len(one_line(line.routine)) for line in lines)
    head = f"{'size':>8} {'communicators':>14}  {'MPI Routine':<{width}}"
    yield f"{head} {'#calls':>12} {'avg. bytes':>14} {'time(sec)':>14}"
    for line in lines:
        name = f"{line.size:>8} {line.communicators:>14}  {one_line(line.routine):<{width}}"
        yield f"{name} {line.calls:>12} {line.average:>14.1f} {line.seconds:>14.3f}"
    yield ""


def peers(members: Sequence[RankProfile]) -> Iterator[str]:
    """Who sends to whom; where there are very many pairs, those with the most bytes."""
    lines = tables.peers(members)
    if not lines:
        return
    number = len(lines)
    if number > MOST_ROWS:
        lines = sorted(lines, key=lambda line: (-line.nbytes, line.rank, line.peer))[:MOST_ROWS]
    yield from (SHORT_RULE, "Who sends to whom (ranks of MPI_COMM_WORLD):", "")
    head = f"{'taskid':>6} {'to':>8} {'#calls':>12} {'bytes':>16}"
    yield f"{head} {'avg. bytes':>14} {'time(sec)':>12}"
    for line in lines:
        yield (
            f"{line.rank:>6} {line.peer:>8} {line.calls:>12} {line.nbytes:>16.0f} "
            f"{line.average:>14.1f} {line.seconds:>12.3f}"
        )
    if tables.both_ways(members):
        yield "Bytes of MPI_Sendrecv are those sent and those received."
    yield from _others(number, "pairs with the most bytes")


def _others(number: int, kind: str) -> Iterator[str]:
    if number > MOST_ROWS:
        yield f"These are the {MOST_ROWS} {kind}; profile.csv has all {number}."
    yield ""


def processors(profile: Profile, members: Sequence[RankProfile]) -> Iterator[str]:
    """What a rank's thread computed in the time that it was outside MPI."""
    known = [member for member in members if _outside(member) is not None]
    if not known:
        return
    yield from (SHORT_RULE, "Time outside MPI, by the wall clock and by the CPU:", "")
    yield f"{'taskid':>6} {'wall(s)':>12} {'CPU(s)':>12} {'part(%)':>10}"
    wall = cpu = 0.0
    for member in known:
        outside, busy = _outside(member) or 0.0, member.outside_s or 0.0
        wall, cpu = wall + outside, cpu + busy
        if len(known) <= MOST_ROWS:
            part = f"{100 * busy / outside:>10.1f}" if outside else f"{'-':>10}"
            yield f"{member.rank:>6} {outside:>12.3f} {busy:>12.3f} {part}"
    if len(known) > 1:
        part = f"{100 * cpu / wall:>10.1f}" if wall else f"{'-':>10}"
        yield f"{'all':>6} {wall:>12.3f} {cpu:>12.3f} {part}"
    if wall and cpu < HAVING_A_CORE * wall:
        yield from (
            "",
            "For the rest of that time they had no core: more ranks or threads than cores, "
            "sleep, or files.",
        )
    yield ""


def _outside(member: RankProfile) -> float | None:
    """Seconds outside MPI, where it is known how many of them the thread computed."""
    spent = (member.elapsed_s, member.communication_s, member.outside_s)
    if None in spent:
        return None
    inside = (member.communication_s or 0.0) + (member.io_s or 0.0)
    return max(0.0, (member.elapsed_s or 0.0) - inside)


def ranks(profile: Profile) -> Iterator[str]:
    """The extremes of all ranks, and a row for each."""
    yield from (SHORT_RULE, "", "Communication summary for all tasks:", "")
    extremes = profile.extremes
    if extremes.memory is not None:
        most = extremes.memory
        yield f"  largest memory             = {most.value / MIB:.2f} MiB for task {most.rank}"
    if extremes.elapsed is not None:
        longest = extremes.elapsed
        yield f"  longest elapsed time       = {longest.value:.2f} sec for task {longest.rank}"
    for name in ("minimum", "median", "maximum"):
        if (one := getattr(extremes, name)) is not None:
            yield f"  {name:<7} communication time = {one.value:.3f} sec for task {one.rank}"
    yield from _files(profile)
    yield ""
    yield from _histogram(profile)
    yield from _table(profile.members)


def _files(profile: Profile) -> Iterator[str]:
    values = ranked((member.io_s, member.rank) for member in profile.members)
    if not values or not values[-1].value:
        return
    least, most = values[0], values[-1]
    mean = sum(one.value for one in values) / len(values)
    yield f"  minimum MPI-IO time        = {least.value:.3f} sec for task {least.rank}"
    yield f"  average MPI-IO time        = {mean:.3f} sec"
    yield f"  maximum MPI-IO time        = {most.value:.3f} sec for task {most.rank}"


def histogram(seconds: Sequence[float]) -> list[tuple[float, int]]:
    """Bins of equal width, by their middle: the first has the least time there, the last the most.

    >>> histogram([1.0, 1.0, 2.4])[0]
    (1.0, 2)
    """
    least, most = min(seconds), max(seconds)
    width = (most - least) / (BINS - 1)
    if not width > 0:
        return [(least, len(seconds))]
    found = [0] * BINS
    for one in seconds:
        found[min(BINS - 1, int((one - least) / width + 0.5))] += 1
    return [(least + place * width, number) for place, number in enumerate(found)]


def _histogram(profile: Profile) -> Iterator[str]:
    seconds = [one.communication_s for one in profile.members if one.communication_s is not None]
    if len(seconds) > MANY_RANKS:
        yield "Histogram of communication times:"
        yield f"{'time-bin':>12} {'#ranks':>9}"
        yield from (f"{middle:>12.3f} {number:>9}" for middle, number in histogram(seconds))
        yield ""


def _table(members: Sequence[RankProfile]) -> Iterator[str]:
    width = max([14, *(len(one_word(member.host)) for member in members)])
    yield "MPI timing summary for all ranks:"
    yield (
        f"taskid {'hostname':>{width}} {'comm(s)':>11} {'elapsed(s)':>11} {'user(s)':>11} "
        f"{'system(s)':>11} {'size(MiB)':>11} {'switches':>11}"
    )
    for member in members:
        memory = None if member.memory_bytes is None else member.memory_bytes / MIB
        seconds = (member.communication_s, member.elapsed_s, member.user_s, member.system_s)
        cells = " ".join(f"{_two_digits(value):>11}" for value in (*seconds, memory))
        switches = "-" if member.switches is None else member.switches
        mark = "" if member.complete else "  not complete"
        yield f"{member.rank:>6} {one_word(member.host):>{width}} {cells} {switches:>11}{mark}"
    yield ""


def _two_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
