"""Timelines of real runs: every message has its arrow."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import OMB_PY, Run, run, succeeded
from tests.tracing.programs.exchanges import MESSAGES_EACH, MESSAGES_TO_ROOT
from tests.tracing.timeline.rules import Content, Slice, arguments_of, of_json

PROGRAM = Path(__file__).parents[1] / "programs" / "exchanges.py"
RANKS = 4
MESSAGES = MESSAGES_EACH * RANKS + MESSAGES_TO_ROOT * (RANKS - 1)


def record(mpi: str, folder: Path, *options: str) -> None:
    """Run the program, and write its timeline."""
    profile = [OMB_PY, "profile", "-q", "--events", "100000", *options, str(PROGRAM)]
    succeeded(run([mpi, "-n", str(RANKS), *profile], {}, folder, 240))
    succeeded(run([OMB_PY, "timeline", "omb-profile", "-o", "run.json"], {}, folder, 60))


@pytest.fixture(scope="module")
def folder(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that several tests look at."""
    folder = tmp_path_factory.mktemp("run")
    record(mpi, folder)
    return folder


def read(folder: Path) -> Content:
    """The timeline in a folder."""
    return of_json((folder / "run.json").read_text(encoding="utf-8"))


def rank_of(one: Slice) -> int:
    """The rank of a slice, from the name of its process."""
    return int(one.process[5:9])


def test_every_message_has_its_arrow(folder: Path) -> None:
    found = read(folder)
    assert found.about["notes"] == []
    messages = found.messages()
    for send, receive in messages:
        sent, got = arguments_of(send), arguments_of(receive)
        assert sent["peer"] == rank_of(receive)
        assert got.get("source", got["peer"]) == rank_of(send)
        assert send.began < receive.ended
    pairs = Counter((rank_of(send), rank_of(receive)) for send, receive in messages)
    assert pairs.total() == MESSAGES
    assert all(pairs[rank, (rank + 1) % RANKS] >= MESSAGES_EACH for rank in range(RANKS))


def test_requests_and_phases_have_lanes_of_their_own(folder: Path) -> None:
    found = read(folder)
    by_kind: dict[str, set[str]] = {}
    for one in found.slices:
        by_kind.setdefault(one.category, set()).add(one.lane)
    assert by_kind["request"] == {"requests", "requests 2"}
    assert by_kind["phases"] == {"phases"}
    assert by_kind["collective"] == by_kind["completion"] == by_kind["compute"] == {"calls"}
    phases = {one.name for one in found.slices if one.category == "phases"}
    assert phases == {"requests", "persistent", "both ways", "sum"}
    inside = {dict(one.arguments).get("phase") for one in found.named("compute")}
    assert phases <= inside


def test_a_collective_call_has_the_same_name_on_all_its_ranks(folder: Path) -> None:
    calls = [one for one in read(folder).slices if one.category == "collective"]
    named: dict[str, list[Slice]] = {}
    for one in calls:
        named.setdefault(arguments_of(one)["collective"], []).append(one)
    for members in named.values():
        size = arguments_of(members[0])["communicator_size"]
        assert len({rank_of(one) for one in members}) == len(members) == size
        assert len({one.name for one in members}) == 1
        assert max(one.began for one in members) < min(one.ended for one in members) or (
            members[0].name.startswith(("MPI_Bcast", "MPI_Iallreduce"))
        )


def test_short_ring_keeps_the_last_events(mpi: str, omb_py: Run, tmp_path: Path) -> None:
    record(mpi, tmp_path, "--events", "40")
    found = read(tmp_path)
    (note,) = [note for note in found.about["notes"] if "written over" in note]
    assert "on ranks 0-3" in note
    for rank in range(RANKS):
        mine = [one for one in found.slices if rank_of(one) == rank]
        first = min(one.began for one in mine if one.category == "compute")
        assert all(one.began >= first for one in mine if one.category == "completion")
    done = omb_py("timeline", "omb-profile")
    assert any("written over" in sentence for sentence in done.sentences)
