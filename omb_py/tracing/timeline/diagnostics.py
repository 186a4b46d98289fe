"""Notes about a timeline: the errors of its times, and missing parts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from omb_py.core import VERSION
from omb_py.core.text.words import count, some_ranks
from omb_py.tracing.records.reading import NS
from omb_py.tracing.timeline.assembly import Timeline


def notes(timeline: Timeline) -> list[str]:
    """Return notes that a reader of the timeline needs, most important first."""
    return [*_lacking(timeline), *_of_messages(timeline), *_of_times(timeline)]


def _lacking(timeline: Timeline) -> Iterator[str]:
    ranks = timeline.ranks
    yield from timeline.run.notes
    silent = [rank for rank in ranks if rank.alignment.record.header["events_capacity"] <= 0]
    if silent:
        yield f"{some_ranks(r.rank for r in silent)} recorded no events"
    lossy = [rank for rank in ranks if rank.alignment.record.lost_events > 0]
    if lossy:
        lost = sum(rank.alignment.record.lost_events for rank in lossy)
        since = (max(rank.complete_from for rank in lossy) - timeline.start) * NS
        yield (
            f"{were(lost, 'event')} written over by later ones on "
            f"{some_ranks(r.rank for r in lossy)}: the timeline has all from {since:.6f} s on "
            "(omb-py profile --events keeps more)"
        )
    unreadable = sum(rank.unreadable for rank in ranks)
    unnamed = sum(int(rank.alignment.record.header["names_lost"]) for rank in ranks)
    for number, what in (
        (unreadable, "left out that made no sense: half written, or the file is damaged"),
        (unnamed, "not given a name, for want of room in the record"),
    ):
        if number > 0:
            yield f"{were(number, 'event')} {what}"
    pending = sum(rank.pending for rank in ranks)
    if pending:
        yield (
            f"{were(pending, 'request')} begun, but no completion was recorded: "
            "shown are only the calls that began them"
        )


def _of_messages(timeline: Timeline) -> Iterator[str]:
    messages = timeline.messages
    for number, what, other in (
        (messages.sent, "send", "receive"),
        (messages.received, "receive", "send"),
    ):
        if number:
            yield f"{count(number, what)} without an arrow: no {other} was recorded that fits"
    if messages.unnumbered:
        yield (
            f"{count(messages.unnumbered, 'more side')} of messages without an arrow: "
            "the record does not tell which message it was"
        )
    if messages.backwards:
        worst = f"by up to {messages.most_backwards * 1e6:.3f} us"
        beyond = (
            f"{count(messages.beyond, 'message')} of them by more than the clocks' error bounds"
            if messages.beyond
            else "all within the clocks' error bounds"
        )
        yield (
            f"{count(messages.backwards, 'message')} without an arrow: received before sent "
            f"{worst}, {beyond}"
        )


def _of_times(timeline: Timeline) -> Iterator[str]:
    unknown = [rank for rank in timeline.ranks if rank.alignment.error is None]
    if unknown:
        yield (
            f"the clock of {some_ranks(r.rank for r in unknown)} was not compared with rank 0's: "
            "its times are its own"
        )
    compared = [rank for rank in timeline.ranks if rank.alignment.error]
    if compared:
        bound = max(rank.alignment.error or 0.0 for rank in compared)
        yield (
            f"{some_ranks(r.rank for r in compared)} read other clocks than rank 0: "
            f"their times are wrong by {bound * 1e6:.3f} us at most"
        )


def about(timeline: Timeline) -> dict[str, Any]:
    """Return metadata for programs: the run, and `notes`."""
    at = moment(timeline.epoch)
    return {
        "tool": f"omb-py {VERSION}",
        "run": plain(timeline.run.about),
        "ranks": timeline.run.size,
        "zero": at,
        "zero_epoch_ns": timeline.epoch or None,
        "notes": notes(timeline),
    }


def moment(epoch: int) -> str | None:
    """Return a time (ns since 1970) as ISO 8601, None if it is invalid."""
    try:
        return datetime.fromtimestamp(epoch * NS, UTC).isoformat() if epoch else None
    except (ValueError, OverflowError, OSError):
        return None


def plain(value: Any) -> Any:
    """Return a value of JSON, in which numbers that not every reader takes are texts, and all
    UTF-8."""
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return str(value) if isinstance(value, int) and abs(value) >> 53 else value


def were(number: int, noun: str) -> str:
    """Return a number of things, as the subject of a passive sentence."""
    return f"{count(number, noun)} {'was' if number == 1 else 'were'}"
