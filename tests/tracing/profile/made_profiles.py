"""Profiles made by hand or by chance, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from omb_py.tracing.profile.profile import CallStats, Extreme, Extremes, Profile, RankProfile
from omb_py.tracing.records.layout import Communicator
from omb_py.tracing.records.reading import RankRecord
from tests.tracing.made_records import MadeRecord

MS = 1_000_000
HALF = Communicator("half", 2, "half")


def made_rank(folder: Path, rank: int, ranks: int = 4, *, end: int | None = 100 * MS) -> RankRecord:
    """A rank that reduces 8 bytes three times and 4000 once, and sends to its right."""
    made = MadeRecord(folder, rank, ranks, host=f"node{rank // 2}")
    for turn in range(3):
        made.call("MPI_Allreduce", turn * MS, (turn + 1 + rank) * MS, nbytes=8)
    made.call("MPI_Allreduce", 20 * MS, 30 * MS, nbytes=4000)
    made.call("MPI_Isend", 30 * MS, 31 * MS, peer=(rank + 1) % ranks, nbytes=100 + rank)
    made.call("MPI_Wait", 31 * MS, 33 * MS, nbytes=-1)
    made.call("MPI_Barrier", 33 * MS, 34 * MS, communicator=HALF)
    made.call("MPI_File_write_at", 40 * MS, 45 * MS, nbytes=1000)
    record = made.finish(
        end,
        user_ns=60 * MS,
        system_ns=5 * MS,
        memory_bytes=(rank + 1) << 20,
        switches=rank,
        updated=1_000_000_000 + (end or 50 * MS),
    )
    made.file.close()
    return record


def made_run(folder: Path, ranks: int = 4) -> Path:
    """The folder of a run whose ranks all came to their end."""
    for rank in range(ranks):
        made_rank(folder, rank, ranks)
    return folder


NAMES = st.text(min_size=1, max_size=12)
COUNTS = st.integers(0, 2**62)
NUMBERS = st.one_of(COUNTS, st.floats(0, 1e15))
MAYBE = st.one_of(st.none(), st.floats(0, 1e9))
COMMUNICATORS = st.builds(Communicator, st.text(max_size=5), st.integers(0, 2**31), NAMES)
CELLS = st.builds(
    CallStats,
    routine=NAMES,
    communicator=st.one_of(st.none(), COMMUNICATORS),
    peer=st.one_of(st.none(), st.integers(0, 2**31)),
    bin=st.one_of(st.none(), st.integers(0, 62)),
    site=st.one_of(st.none(), NAMES),
    calls=COUNTS,
    nbytes=NUMBERS,
    seconds=st.floats(0, 1e9),
    least_s=MAYBE,
    greatest_s=MAYBE,
)
EXTREME = st.one_of(st.none(), st.builds(Extreme, st.floats(0, 1e9), st.integers(0, 9)))


NUMBERS_OF_A_RANK = (
    *("elapsed_s", "communication_s", "io_s", "user_s", "system_s", "memory_bytes"),
)


@st.composite
def ranks_of(draw: st.DrawFn, rank: int) -> RankProfile:
    """Anything that may be known of a rank."""
    counted = draw(st.booleans())
    known: dict[str, Any] = {name: draw(MAYBE) for name in NUMBERS_OF_A_RANK}
    return RankProfile(
        rank,
        draw(st.one_of(st.none(), NAMES)),
        draw(st.booleans()),
        **known,
        switches=draw(st.one_of(st.none(), COUNTS)),
        cells=tuple(draw(st.lists(CELLS, max_size=4))) if counted else None,
    )


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Any profile."""
    there = draw(st.sets(st.integers(0, 9), max_size=4))
    return Profile(
        ranks=10,
        members=tuple(draw(ranks_of(rank)) for rank in sorted(there)),
        extremes=Extremes(*(draw(EXTREME) for _ in range(5))),
        origin=draw(NAMES),
        began=draw(MAYBE),
        about=draw(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none()))),
        notes=tuple(draw(st.lists(st.text(max_size=20), max_size=3))),
    )
