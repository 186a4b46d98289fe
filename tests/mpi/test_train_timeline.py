"""Horovod's phases of every gradient in the timeline of a training on real ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from omb_py.tracing import records
from omb_py.tracing.records import Kind, Record
from tests.conftest import OMB_PY, Finished

TRAIN = (
    "train --data generated --samples 24 --batch 10 --epochs 2 --hidden 8 --layers 3 "
    "--repeats 1 --warmup-repeats 0 --no-references"
)
STEPS = 6
"""Three batches in each of two epochs."""

GRADIENTS = {f"dense{layer}.{kind}" for layer in (1, 2, 3) for kind in ("weight", "bias")}

MEMCPY = {"MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"}
INSIDE = {"ALLREDUCE", "QUEUE", "MPI_ALLREDUCE"}


@dataclass(frozen=True)
class Slice:
    """What a rank said, with times of its clock."""

    lane: str
    name: str
    began: int
    ended: int


def slices(record: Record, kind: Kind = Kind.SPAN) -> Iterator[Slice]:
    """Those of a rank, or its marks."""
    for event in record.events:
        if event["kind"] == kind:
            lane, name = (record.name(int(event[field])) for field in ("lane", "name"))
            yield Slice(lane, name, int(event["began"]), int(event["ended"]))


@pytest.fixture
def recorded(mpiexec: Callable[..., Finished], tmp_path: Path) -> Callable[..., list[Record]]:
    """``recorded(ranks, options)`` trains on real ranks with a timeline, and reads the records."""

    def start(ranks: int, options: str) -> list[Record]:
        profile = ("profile", "--timeline", "timeline.json", OMB_PY)
        done = mpiexec(ranks, *profile, *TRAIN.split(), *options.split())
        assert done.code == 0, done.err
        assert "Pass: loss falls" in done.out
        return records.read_folder(tmp_path / "omb-profile")

    return start


def check_lane(lane: list[Slice], names: set[str]) -> None:
    """Each step has these slices once; those in an allreduce follow each other inside of it."""
    assert {one.name for one in lane} == names
    assert {name: sum(one.name == name for one in lane) for name in names} == dict.fromkeys(
        names, STEPS
    )
    for whole in (one for one in lane if one.name == "ALLREDUCE"):
        inside = [
            one
            for one in lane
            if one is not whole and whole.began <= one.began and one.ended <= whole.ended
        ]
        assert {one.name for one in inside} == names - {"ALLREDUCE", "NEGOTIATE_ALLREDUCE"}
        inside.sort(key=lambda one: one.began)
        assert all(a.ended <= b.began for a, b in pairwise(inside))


@pytest.mark.parametrize("negotiation", ["cached", "uncached"])
def test_gradients_are_negotiated_and_then_reduced(
    recorded: Callable[..., list[Record]], negotiation: str
) -> None:
    found = recorded(3, f"--negotiation {negotiation} --cycle-time 0.1 --fusion 0")
    for record in found:
        said = list(slices(record))
        assert {one.lane for one in said} == {"", *GRADIENTS}
        for gradient in GRADIENTS:
            lane = [one for one in said if one.lane == gradient]
            check_lane(lane, INSIDE | {"NEGOTIATE_ALLREDUCE"})
            asked = [one.ended for one in lane if one.name == "NEGOTIATE_ALLREDUCE"]
            assert asked == [one.began for one in lane if one.name == "ALLREDUCE"]
        marks = [one for one in slices(record, Kind.INSTANT) if not one.lane]
        assert {one.name for one in marks} == {"CYCLE_START"}
        assert len(marks) >= STEPS
    ticks = [one for one in slices(found[0], Kind.INSTANT) if one.lane in GRADIENTS]
    assert {one.name for one in ticks} == {"0", "1", "2"}
    steps = 1 if negotiation == "cached" else STEPS
    assert len(ticks) == 3 * steps * len(GRADIENTS)


@pytest.mark.any_library
@pytest.mark.parametrize("options", ["", "--overlap", "--compression fp16"])
def test_fused_gradients_are_copied_in_and_out(
    recorded: Callable[..., list[Record]], options: str
) -> None:
    for record in recorded(3, f"--fusion 10M {options}"):
        said = list(slices(record))
        for gradient in GRADIENTS:
            first = gradient == "dense1.weight"  # the last one to come waits for no other
            others = set() if first else {"WAIT_FOR_OTHER_TENSOR_DATA"}
            lane = [one for one in said if one.lane == gradient]
            check_lane(lane, INSIDE | MEMCPY | others)


def test_a_hierarchy_has_the_calls_that_it_makes(recorded: Callable[..., list[Record]]) -> None:
    found = recorded(4, "--fusion 10M --hierarchical --ranks-per-node 2")
    lane = [one for one in slices(found[0]) if one.lane == "dense1.weight"]
    check_lane(lane, INSIDE | MEMCPY | {"MPI_REDUCESCATTER", "MPI_ALLGATHER"})


@pytest.mark.any_library
@pytest.mark.parametrize("strategy", ["data", "model"])
def test_ranks_say_what_they_train(recorded: Callable[..., list[Record]], strategy: str) -> None:
    for record in recorded(2, f"--strategy {strategy}"):
        own = [one for one in slices(record) if not one.lane]
        epochs = [one for one in own if one.name.startswith("epoch")]
        assert [one.name for one in epochs] == ["epoch 1", "epoch 2"]
        for epoch in epochs:
            inside = [
                one.name for one in own if epoch.began < one.began and one.ended < epoch.ended
            ]
            assert set(inside) == {"forward", "backward", "optimizer"}
            assert inside.count("optimizer") == STEPS / 2
