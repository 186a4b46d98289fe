"""Pipelines on real ranks: what stages send arrives, whatever is divided and how."""

from __future__ import annotations

import pytest

from omb_py.apps.training.networks import network
from tests.helpers.battery import Battery, Line, completed, each_line, line

QUICK = "--repeats 1 --warmup-repeats 0 --model resnet20 --samples 80 --batch 24 --epochs 2"
"""Batches of 24 and a last one of 8, so that micro-batches are of several sizes. Stages end inside
residual blocks, too."""

BINDINGS = ("buffer", "native", "pickle")


def train(ranks: int, options: str, binding: str = "buffer") -> Line:
    """A short training."""
    return line(ranks, f"train {QUICK} {options} --binding {binding}")


LINES = [
    *(
        train(ranks, f"--strategy model --micro-batches {parts}", binding)
        for ranks in (1, 2, 3, 8)
        for parts in (1, 4, 5)
        for binding in BINDINGS
    ),
    *(
        train(ranks, f"--strategy hybrid --stages 2 --micro-batches {parts}", binding)
        for ranks in (1, 4, 8)
        for parts in (1, 3, 4)
        for binding in BINDINGS
    ),
    train(4, "--strategy hybrid --micro-batches 3 --split-wait"),
    *(
        train(4, f"--strategy hybrid --schedule 1f1b {exchange}")
        for exchange in (
            "--overlap --fusion 1K",
            "--allreduce ring --broadcast scatter_ring",
            "--fusion 10K",
        )
    ),
    *(
        train(ranks, f"--schedule {schedule} {strategy}")
        for ranks, strategy in ((3, "--strategy model"), (4, "--strategy hybrid --overlap"))
        for schedule in ("gpipe", "1f1b")
    ),
    train(4, "--strategy hybrid --stages 1 --no-split-wait"),
    train(4, "--strategy hybrid --schedule 1f1b --negotiate -T float16 --evaluation-time 1"),
    train(4, "--strategy hybrid --negotiate -T bfloat16 --allreduce ring"),
    *(train(3, f"--strategy model --layers 50 -T {half}") for half in ("float16", "bfloat16")),
    train(2, "--strategy model --buffer bytearray"),
]
FEW = train(4, "--strategy hybrid --stages 2 --micro-batches 3 --batch 3 --samples 7")
"""The last batch has one sample: a pipeline has none of it."""

COUNTED = train(3, "--strategy model --micro-batches 4")
STEPS = 2 * 4
"""Two epochs of 80 samples by 24."""


@pytest.mark.product
@each_line(*LINES, FEW)
def test_every_stage_has_what_the_ones_beside_it_sent(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    (whole,) = record.measured
    assert whole["check"] == "Pass"


@each_line(COUNTED)
def test_each_micro_batch_passes_a_boundary_once_each_way(battery: Battery, line: Line) -> None:
    record = battery(line)
    calls = [row for row in record.rows if row["calls"] is not None]
    for function in ("MPI_Isend", "MPI_Recv"):
        counts = {row["call_bytes"]: row["calls"] for row in calls if row["part"] == function}
        # rank 0 has one boundary, inside a residual block, where two arrays of 32 x 32 x 16 pass:
        # 4 parts of 6 samples in 3 steps of an epoch, of 2 in the last
        width = 4 * 32 * 32 * 16
        assert counts == {6 * width: 2 * 2 * 3 * 4, 2 * width: 2 * 2 * 4}
    assert {row["part"] for row in calls} == {"MPI_Isend", "MPI_Recv", "MPI_Wait"}


PRETENDED = train(4, "--strategy hybrid --stages 2 --allreduce hierarchical --ranks-per-node 2")


@each_line(PRETENDED)
def test_replicas_of_a_stage_are_on_the_nodes_of_their_ranks(battery: Battery, line: Line) -> None:
    """On two nodes, each with one of them: these add up what both have."""
    record = completed(battery(line))
    assert record.measured[0]["check"] == "Pass"
    functions = {row["part"] for row in record.rows if row["calls"] is not None}
    assert {"MPI_Sendrecv", "MPI_Reduce_local"} <= functions
    assert "MPI_Send" not in functions


ALONE = train(1, "--strategy model --micro-batches 4")


@each_line(ALONE)
def test_one_rank_makes_no_calls_and_has_no_bubble(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    assert all(row["calls"] is None for row in record.rows)
    assert not any((row["part"] or "").startswith("Bubble") for row in record.rows)


AVERAGED = train(8, "--strategy hybrid --stages 2 --micro-batches 3")


@each_line(AVERAGED)
def test_pipelines_sum_up_a_stage_in_one_call_for_each_step(battery: Battery, line: Line) -> None:
    record = battery(line)
    parts = {row["part"]: row for row in record.rows if row["rank"] is None}
    summed = parts["MPI_Allreduce"]
    assert summed["calls"] == STEPS
    assert summed["call_bytes"] == 4 * parts["Stage 0"]["value"]
    whole = network("resnet20").elements
    assert parts["Stage 0"]["value"] + parts["Stage 1"]["value"] == whole


REPLAY = (
    "train --repeats 1 --warmup-repeats 0 --model resnet110 --samples 16 --batch 16 --epochs 2 "
    "--sample-time 8"
)
REPLAYED = [
    line(ranks, f"{REPLAY} --schedule {schedule} {strategy}")
    for schedule in ("gpipe", "1f1b")
    for ranks, strategy in (
        (4, "--strategy model --micro-batches 8"),
        (4, "--strategy hybrid --micro-batches 4 --overlap"),
    )
]


@each_line(REPLAYED)
def test_a_pipeline_tells_its_bubble_and_what_passes(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    (whole,) = record.measured
    assert whole["check"] == "Pass"
    values = {row["part"]: row["value"] for row in record.rows}
    assert 0 < values["Bubble"] < 100
    assert values["Boundary 0-1"] >= 4 * 32 * 32 * 16
