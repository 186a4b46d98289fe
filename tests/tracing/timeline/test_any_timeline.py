"""Whatever ranks did, and whatever happened to their records: files that every viewer can read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from struct import pack, unpack
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import OmbError
from omb_py.tracing.records.layout import (
    CELL_FORMAT,
    CELLS,
    EVENT_FORMAT,
    HEADER,
    HEADER_BYTES,
    HEADER_OFFSETS,
    NAMES_BYTES,
    TEXT_BYTES,
    EventKind,
)
from omb_py.tracing.timeline import assembly
from omb_py.tracing.timeline.assembly import select
from tests.helpers.properties import examples
from tests.tracing.made_records import MadeRecord
from tests.tracing.timeline.rules import written

Event = tuple[str, int, int, dict[str, Any]]
ROUTINES = (
    "MPI_Send",
    "MPI_Recv",
    "MPI_Isend",
    "MPI_Irecv",
    "MPI_Sendrecv",
    "MPI_Bcast",
    "MPI_Wait",
)


@st.composite
def events(draw: Callable[..., Any], ranks: int) -> Event:
    """Any event: times overlap in all ways, and numbers of messages fit or do not."""
    kind = draw(st.sampled_from(list(EventKind)))
    began = draw(st.integers(0, 60))
    length = draw(st.integers(0, 30))
    spoken = kind is EventKind.PHASE
    names = ("forward", 'back \u00fc"\\ward', "") if spoken else ROUTINES
    options = {"kind": kind}
    if not spoken:
        options |= {
            "peer": draw(st.integers(-1, ranks - 1)),
            "tag": draw(st.integers(0, 1)),
            "sequence": draw(st.integers(0, 3)),
            "request": draw(st.integers(0, 3)),
            "nbytes": draw(st.integers(-1, 100)),
        }
    return draw(st.sampled_from(names)), began, began + length, options


@st.composite
def jobs(draw: Callable[..., Any]) -> tuple[list[list[Event]], int]:
    """The events of each of some ranks, and how many a ring holds."""
    ranks = draw(st.integers(1, 3))
    made = [draw(st.lists(events(ranks), max_size=14)) for _ in range(ranks)]
    return made, draw(st.sampled_from((1000, 5)))


def record(folder: str, made: list[list[Event]], room: int) -> None:
    """Write the records of a job."""
    for rank, told in enumerate(made):
        one = MadeRecord(Path(folder), rank, len(made), events=room)
        for name, began, ended, options in told:
            one.call(name, began, ended, **options)
        one.finish(100 if rank != 1 else None)


@given(jobs())
@examples(150)
def test_a_file_shows_every_event_once(job: tuple[list[list[Event]], int]) -> None:
    made, room = job
    with TemporaryDirectory() as folder:
        record(folder, made, room)
        timeline = assembly.read(folder)
        json = written(timeline)
    kept = [one for told in made for one in told[-room:]]
    inside = sum(
        int((rank.slices["other"][rank.slices["event"] >= 0] >= 0).sum()) for rank in timeline.ranks
    )
    assert len(json.instants) == len(json.arrows)
    shown = [one for one in json.slices if one.name != "compute"]
    assert len(shown) == len(kept) - inside
    messages = timeline.messages
    assert len(json.arrows) == len(messages.arrows)


@given(jobs())
@examples(60)
def test_calls_and_computing_fill_the_time_of_a_rank(job: tuple[list[list[Event]], int]) -> None:
    made, _ = job
    with TemporaryDirectory() as folder:
        record(folder, made[:1], 1000)
        found = written(assembly.read(folder))
    calls = [one for one in found.slices if one.lane.startswith("calls")]
    covered = {at for one in calls for at in range(one.began, one.ended)}
    computed = sum(one.ended - one.began for one in calls if one.name == "compute")
    called = {at for one in calls if one.name != "compute" for at in range(one.began, one.ended)}
    assert set(range(100)) <= covered
    assert computed + len(called) == len(covered)


@given(jobs(), st.data())
@examples(60)
def test_any_part_can_be_shown(job: tuple[list[list[Event]], int], data: st.DataObject) -> None:
    made, room = job
    with TemporaryDirectory() as folder:
        record(folder, made, room)
        timeline = assembly.read(folder)
    ranks = data.draw(st.lists(st.integers(0, len(made) - 1), min_size=1))
    json = written(select(timeline, ranks))
    arrows = timeline.messages.arrows
    inside = np.isin(arrows["sender"], ranks) & np.isin(arrows["receiver"], ranks)
    assert len(json.arrows) == inside.sum()


EVENTS_AT = HEADER_BYTES + TEXT_BYTES + NAMES_BYTES + CELLS * CELL_FORMAT.size
PARTS = {
    "text": (HEADER_BYTES, 40),
    "names": (HEADER_BYTES + TEXT_BYTES, 200),
    "events": (EVENTS_AT, 3 * EVENT_FORMAT.size),
}
ODD = st.sampled_from((-1, 0, 1, 2, 5, 1 << 31, 1 << 40, 1 << 61, -(1 << 63), (1 << 63) - 1))


@st.composite
def damage(draw: Callable[..., Any], content: bytes) -> bytes:
    """A record with some wrong bytes, a wrong field of its header, or without its end."""
    changed = bytearray(content)
    kind = draw(st.sampled_from((*PARTS, "header", "end")))
    if kind == "end":
        return content[: draw(st.integers(0, EVENTS_AT + 10 * EVENT_FORMAT.size))]
    if kind == "header":
        at = HEADER_OFFSETS[draw(st.sampled_from([name for name, _ in HEADER]))]
        value = draw(ODD | st.floats().map(lambda one: unpack("=q", pack("=d", one))[0]))
        changed[at : at + 8] = pack("=q", value)
        return bytes(changed)
    begin, length = PARTS[kind]
    at = begin + draw(st.integers(0, length - 1))
    noise = draw(st.binary(min_size=1, max_size=16))
    changed[at : at + len(noise)] = noise
    return bytes(changed)


@pytest.mark.slow
@given(jobs(), st.data())
@examples(300)
def test_damaged_records(job: tuple[list[list[Event]], int], data: st.DataObject) -> None:
    made, room = job
    with TemporaryDirectory() as folder:
        record(folder, made, room)
        path = data.draw(st.sampled_from(sorted(Path(folder).iterdir())))
        path.write_bytes(data.draw(damage(path.read_bytes())))
        try:
            timeline = assembly.read(folder)
        except OmbError:
            return
        written(timeline)
