"""Pipelines on real ranks: the result is the sequential one, whatever is divided and how."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omb_py.apps.train import prepare
from omb_py.apps.training import Training
from tests.helpers.battery import Battery, Line, line, refused

SHORT = "--repeats 1 --warmup-repeats 0 --samples 80 --batch 24 --epochs 2"
QUICK = f"{SHORT} --data generated --hidden 12"
"""Batches of 24 and a last one of 8, so that micro-batches are of several sizes."""

RESNET = (
    "--repeats 1 --warmup-repeats 0 --model resnet --layers 8 --image 8 --compute real "
    "--samples 12 --batch 8 --epochs 1 --learning-rate 0.01"
)
"""Stages end inside residual blocks, too."""

BINDINGS = ("buffer", "native", "pickle")


def train(ranks: int, options: str, binding: str = "buffer") -> Line:
    """A short training."""
    return line(ranks, f"train {QUICK} {options} --binding {binding}")


LINES = [
    *(
        train(ranks, f"--strategy model --layers 8 --micro-batches {parts}", binding)
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
    line(3, f"train {SHORT} --strategy model --model cnn --micro-batches 3"),
    line(4, f"train {SHORT} --strategy hybrid --model cnn --micro-batches 3 --split-wait"),
    *(
        train(4, f"--strategy hybrid --schedule 1f1b {exchange}")
        for exchange in (
            "--overlap --fusion 1K",
            "--allreduce ring --broadcast pipelined_chain",
            "--compression fp16",
        )
    ),
    *(
        line(ranks, f"train {RESNET} --schedule {schedule} {strategy}")
        for ranks, strategy in (
            (3, "--strategy model"),
            (3, "--strategy model --partition 3,11,3 --test parallel --test-samples 5"),
            (4, "--strategy hybrid --overlap --test sequential --test-samples 5"),
        )
        for schedule in ("gpipe", "1f1b")
    ),
    train(4, "--strategy hybrid --stages 1 --no-split-wait"),
    train(2, "--strategy model --data digits"),
    train(2, "--strategy model --buffer bytearray"),
    train(4, "--strategy hybrid --test parallel --test-samples 5"),
]
FEW = train(4, "--strategy hybrid --stages 2 --micro-batches 3 --batch 3 --samples 7")
"""The last batch has one sample: a pipeline has none of it."""

COUNTED = train(3, "--strategy model --layers 8 --micro-batches 4")
STEPS = 2 * 4
"""Two epochs of 80 samples by 24."""

REFUSED = [
    (train(8, "--strategy model --layers 4"), "can be cut into 4 stages, not 8"),
    (line(4, "train --strategy model --model cnn"), "--model mlp or resnet with more --layers"),
    (line(2, "train --strategy model --partition 1,2"), "2 numbers whose sum is 4"),
    (line(2, "train --strategy model --partition a,2"), "such as 10,12,12"),
    (train(3, "--strategy hybrid --stages 2"), "multiple of 2 ranks"),
    (train(2, "--strategy hybrid --negotiation cached"), "--negotiation is for --strategy data"),
    (train(2, "--strategy model --overlap"), "--overlap is for --strategy data and hybrid"),
]


@pytest.mark.product
@pytest.mark.parametrize("line", [*LINES, FEW], ids=str)
def test_losses_and_weights_are_those_of_sequential_training(battery: Battery, line: Line) -> None:
    record = battery(line)
    assert not record.error, record.error
    (whole,) = record.measured
    assert whole["check"] == "Pass"


@pytest.mark.parametrize("line", [COUNTED], ids=str)
def test_each_micro_batch_passes_a_boundary_once_each_way(battery: Battery, line: Line) -> None:
    record = battery(line)
    calls = [row for row in record.rows if row["calls"] is not None]
    for function in ("MPI_Isend", "MPI_Recv"):
        counts = {row["call_bytes"]: row["calls"] for row in calls if row["part"] == function}
        # rank 0 has one boundary: 4 parts of 6 samples in 3 steps of an epoch, of 2 in the last
        width = 12 * 4
        assert counts == {6 * width: 2 * 3 * 4, 2 * width: 2 * 4}
    assert {row["part"] for row in calls} == {"MPI_Isend", "MPI_Recv", "MPI_Wait"}


PRETENDED = train(4, "--strategy hybrid --stages 2 --hierarchical --ranks-per-node 2")


@pytest.mark.parametrize("line", [PRETENDED], ids=str)
def test_replicas_of_a_stage_are_on_the_nodes_of_their_ranks(battery: Battery, line: Line) -> None:
    record = battery(line)
    assert not record.error, record.error
    values = {row["part"]: row["value"] for row in record.rows}
    assert values["Stage 0: Nodes, pretended"] == 2


ALONE = train(1, "--strategy model --layers 8 --micro-batches 4")


@pytest.mark.parametrize("line", [ALONE], ids=str)
def test_one_rank_makes_no_calls_and_has_no_bubble(battery: Battery, line: Line) -> None:
    record = battery(line)
    assert not record.error, record.error
    assert all(row["calls"] is None for row in record.rows)
    assert not any((row["part"] or "").startswith("Bubble") for row in record.rows)


AVERAGED = train(8, "--strategy hybrid --stages 2 --micro-batches 3")


@pytest.mark.parametrize("line", [AVERAGED], ids=str)
def test_pipelines_sum_up_a_stage_in_one_call_for_each_step(battery: Battery, line: Line) -> None:
    record = battery(line)
    parts = {row["part"]: row for row in record.rows if row["rank"] is None}
    summed = parts["MPI_Allreduce"]
    assert summed["calls"] == STEPS
    assert summed["call_bytes"] == 4 * parts["Stage 0"]["value"]
    assert parts["Stage 0"]["value"] + parts["Stage 1"]["value"] == (
        (64 + 1) * 12 + 2 * (12 + 1) * 12 + (12 + 1) * 10
    )


@pytest.mark.parametrize("line", [COUNTED, AVERAGED], ids=str)
def test_the_loss_is_that_of_sequential_training(battery: Battery, line: Line) -> None:
    training = Training(data="generated", samples=80, batch=24, epochs=2, hidden=12)
    reference = prepare(replace(training, layers=8) if line is COUNTED else training)()
    values = {row["part"]: row["value"] for row in battery(line).rows}
    found = [values["Loss of the first epoch"], values["Loss of the last epoch"]]
    assert found == pytest.approx(reference["losses"], rel=1e-4)


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


@pytest.mark.parametrize("line", REPLAYED, ids=str)
def test_a_replayed_network_tells_its_bubble_and_what_passes(battery: Battery, line: Line) -> None:
    record = battery(line)
    assert not record.error, record.error
    (whole,) = record.measured
    assert whole["check"] == "Pass"
    assert whole["alternative"] == "data-parallel"
    assert whole["alternative_speedup"] > 0
    assert whole["sequential_speedup"] == whole["speedup"]
    values = {row["part"]: row["value"] for row in record.rows}
    assert 0 < values["Bubble expected"] < 100
    assert 0 < values["Bubble measured"] < 100
    assert values["Boundary 0-1"] >= 4 * 32 * 32 * 16


@pytest.mark.parametrize(("line", "words"), REFUSED, ids=[str(one) for one, _ in REFUSED])
def test_what_cannot_be_divided_is_refused(battery: Battery, line: Line, words: str) -> None:
    refused(battery(line), words)
