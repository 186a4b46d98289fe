"""Arrows of receives in random orders are those that the messages themselves tell of."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest

from omb_py.tracing.timeline import assembly
from tests.conftest import OMB_PY, run, succeeded

PROGRAM = Path(__file__).parents[1] / "programs" / "random_receives.py"

Messages = set[tuple[int, ...]]
"""When each receive was posted, who sent its message, the ordinal among the sender's messages."""


def told_and_drawn(
    mpi: str, folder: Path, seed: int, events: int
) -> tuple[Messages, Messages, list[str]]:
    """Return the messages of a run by the program itself, by arrows, and the timeline's notes."""
    profile = [OMB_PY, "profile", "-q", "--events", str(events), str(PROGRAM), str(seed), "400"]
    done = run([mpi, "-n", "3", *profile], {}, folder, 240)
    succeeded(done)
    lines = [line.split() for line in done.out.splitlines()]
    told = {tuple(map(int, line)) for line in lines if line[0] != "sent"}
    times = {int(line[1]): list(map(int, line[2:])) for line in lines if line[0] == "sent"}
    times[0] = sorted(message[0] for message in told)
    timeline = assembly.read(folder / "omb-profile")

    def event(index: int, place: int) -> Any:
        return timeline.ranks[index].events[timeline.ranks[index].slices["event"][place]]

    drawn: Messages = set()
    for sender, send, receiver, receive in timeline.messages.arrows.tolist():
        out, into = event(sender, send), event(receiver, receive)
        if timeline.ranks[receiver].record.communicators[into["communicator"]].label == "data":
            ordinal = bisect_right(times[sender], out["began"]) - 1
            posted = times[0][bisect_right(times[0], into["began"]) - 1]
            drawn.add((posted, sender, ordinal))
    return told, drawn, assembly.notes(timeline)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_receive_has_the_arrow_of_its_message(mpi: str, tmp_path: Path, seed: int) -> None:
    told, drawn, notes = told_and_drawn(mpi, tmp_path, seed, 100_000)
    assert len(told) > 50
    assert drawn == told
    assert notes == []


def test_arrows_of_a_short_ring_are_right_or_absent(mpi: str, tmp_path: Path) -> None:
    told, drawn, notes = told_and_drawn(mpi, tmp_path, 3, 300)
    assert drawn
    assert drawn < told
    assert any("wildcards received" in note for note in notes)
