"""Training on real ranks: every way to exchange gradients, and the calls that it makes."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import run
from tests.helpers.battery import Battery, Line, Record, line

BINDINGS = ("buffer", "native")
ONCE = "--repeats 1 --warmup-repeats 0 --no-references"

SMALL = (
    "train --model resnet20 --samples 24 --batch 10 --epochs 2 --fusion 1K "
    f"--sample-time 0.1 {ONCE}"
)
"""Batches, the last of them smaller, in which 3 and more ranks have different shares, or none."""

WAYS = (
    "",
    "--fusion 0",
    "--buckets ddp",
    "--overlap",
    "--overlap --fusion 0",
    "--allreduce ring --broadcast scatter_ring",
    "--allreduce rabenseifner",
    "--allreduce hierarchical --ranks-per-node 2",
)
NEW = (
    "--negotiate",
    "--negotiate --overlap -T float16",
    "-T float16 --fusion 0 --evaluation-time 1",
    "-T float16 --fusion 0 --overlap",
    "-T float16 --allreduce parameter_server --negotiate",
)
EXCHANGES = [
    *(
        line(ranks, f"{SMALL} {way} --binding {binding}")
        for ranks in (1, 2, 3, 4)
        for way in (*WAYS, *NEW)
        for binding in BINDINGS
    ),
    *(
        line(3, f"{SMALL} -T bfloat16 --allreduce {algorithm} --negotiate --fusion {fusion}")
        for algorithm, fusion in (
            ("ring", "1K"),
            ("rabenseifner", "0"),
            ("parameter_server", "64M"),
        )
    ),
    *(
        line(2, f"{SMALL} --negotiate -T float16 --binding {binding}")
        for binding in ("tcp", "pickle", "prebound")
    ),
    line(2, f"{SMALL} --model mobilenet --samples 6"),
] + [
    line(8, f"{SMALL} {way} --binding {binding}")
    for way in ("--overlap", "--allreduce hierarchical --ranks-per-node 4")
    for binding in BINDINGS
]

STEPS = 2
REPLAY = f"train --samples 4 --batch 4 --epochs 2 --sample-time 0 {ONCE}"
TENSORS = 442
"""Of resnet110."""

DEEP = [
    line(ranks, f"{REPLAY} --model resnet110 {way} --binding {binding}")
    for ranks in (1, 3, 4)
    for way in (
        "--sample-time 0.2",
        "--fusion 100K --overlap",
        "--fusion 1M --allreduce hierarchical --ranks-per-node 2",
    )
    for binding in BINDINGS
]


def on(*lines: Line) -> pytest.MarkDecorator:
    """For a test of what came of these lines."""
    return pytest.mark.parametrize("line", lines, ids=str)


def calls(record: Record) -> Counter[tuple[str, float]]:
    """How often rank 0 called each function with messages of each size."""
    assert not record.error, record.error
    assert record.measured[0]["check"] == "Pass"
    return Counter(
        {
            (row["part"].removeprefix("MPI_"), row["call_bytes"]): row["calls"]
            for row in record.rows
            if row["part"] is not None and row["part"].startswith("MPI_")
        }
    )


def exchanged(record: Record) -> Counter[tuple[str, float]]:
    """The calls, without the broadcast of each first weight."""
    found = calls(record)
    assert of(found, "Bcast") >= TENSORS
    return Counter({key: times for key, times in found.items() if key[0] != "Bcast"})


def of(found: Counter[tuple[str, float]], function: str) -> int:
    """The calls of a function with messages of any size."""
    return sum(times for (name, _), times in found.items() if name == function)


def value(record: Record, part: str) -> float:
    """What a part says."""
    (row,) = [row for row in record.rows if row["part"] == part]
    return float(row["value"])


@pytest.mark.product
@on(*EXCHANGES)
def test_gradients_are_averaged_in_every_way(battery: Battery, line: Line) -> None:
    found = calls(battery(line))
    assert (line.ranks > 1) == (len(found) > 0)


@pytest.mark.product(strength=1)
@on(*DEEP)
def test_gradients_of_many_layers_are_averaged_on_every_rank(battery: Battery, line: Line) -> None:
    found = calls(battery(line))
    assert (line.ranks > 1) == (len(found) > 0)


OBJECTS = line(2, f"{SMALL} --binding pickle")
WEAK = line(3, f"{SMALL} --scaling weak")


@on(OBJECTS)
def test_gradients_may_be_pickled(battery: Battery, line: Line) -> None:
    calls(battery(line))


@on(WEAK)
def test_weak_scaling_has_as_many_samples_for_each_rank(battery: Battery, line: Line) -> None:
    record = battery(line)
    calls(record)
    assert value(record, "Samples of an epoch") == 3 * 24


SINGLE = line(2, f"{REPLAY} --model resnet110 --fusion 0")
FUSED = line(2, f"{REPLAY} --model resnet110 --fusion 1M")
DDP = line(2, f"{REPLAY} --model resnet1001 --buckets ddp")
EARLY = line(2, f"{REPLAY} --model resnet110 --fusion 1M --overlap")


@pytest.mark.parametrize(("line", "buckets"), [(SINGLE, TENSORS), (FUSED, 7), (DDP, 6)], ids=str)
def test_each_bucket_is_one_allreduce(battery: Battery, line: Line, buckets: int) -> None:
    record = battery(line)
    found = exchanged(record)
    assert of(found, "Allreduce") == sum(found.values()) == buckets * STEPS
    assert value(record, "Buckets of a step") == buckets
    total = sum(size * times for (_, size), times in found.items())
    assert total == 4 * (30_347_658 if line is DDP else 1_734_666) * STEPS
    assert [row["wait_s"] for row in record.measured] == [0]  # no barrier


NEGOTIATED = line(8, f"{SMALL} --negotiate --overlap --samples 72 --batch 12 --sample-time 2")
EVALUATED = line(2, f"{REPLAY} --sample-time 1 --evaluation-time 2")


@on(NEGOTIATED)
def test_ranks_negotiate_by_8_bytes_until_all_are_ready(battery: Battery, line: Line) -> None:
    """Half of them have twice as many samples as the others."""
    record = battery(line)
    calls(record)
    (row,) = [row for row in record.rows if row["part"] == "Negotiation, mean of the ranks"]
    assert row["call_bytes"] == 8
    assert row["calls"] > 2 * 6  # one for each step at least, and more while slow ranks compute
    assert 0 < row["value"] <= 100
    (whole,) = record.measured
    assert 0 < row["time_s"] <= whole["wait_s"]


@on(EVALUATED)
def test_first_epoch_and_evaluation_are_parts(battery: Battery, line: Line) -> None:
    record = battery(line)
    calls(record)
    parts = {row["part"]: row for row in record.rows}
    assert parts["Epoch 1: communicator"]["time_s"] > 0
    assert parts["Evaluation of each epoch"]["time_s"] >= 0.002
    assert value(record, "Evaluation of each epoch") == 1 + 4 / 2


RING = line(4, f"{REPLAY} --model resnet110 --fusion 1M --allreduce ring")


@on(RING)
def test_a_ring_sends_a_part_of_each_bucket_twice_around(battery: Battery, line: Line) -> None:
    """To the neighbour alone: 3 parts that grow, and 3 sums."""
    found = calls(battery(line))
    assert of(found, "Sendrecv") == 6 * 7 * STEPS
    assert of(found, "Reduce_local") == 3 * 7 * STEPS
    assert of(found, "Allreduce") == 0


@on(EARLY)
def test_overlapping_buckets_are_started_and_waited_for(battery: Battery, line: Line) -> None:
    found = calls(battery(line))
    assert of(found, "Iallreduce") == of(found, "Wait") == 7 * STEPS
    assert of(found, "Allreduce") == 0


FAULTS = """
from omb_py.cli import main
from omb_py.apps.training import exchange, kernel

class Faulty(exchange.GradientExchange):
    def __init__(self, team, gradients, training):
        super().__init__(team, gradients, training)
        self.last = self.averages[-1].data.reshape(-1)

    def finish(self):
        super().finish()
        {fault}

kernel.GradientExchange = Faulty
main()
"""


@pytest.mark.any_library
@pytest.mark.parametrize("options", ["", "-T float16"])
@pytest.mark.parametrize("fault", ["self.last[0] *= 1.001", "self.last[1] = self.last[2]"])
def test_gradients_that_are_exchanged_wrongly_are_found(
    mpi: str, tmp_path: Path, fault: str, options: str
) -> None:
    program = tmp_path / "faulty.py"
    program.write_text(FAULTS.format(fault=fault))
    command = [mpi, "-n", "2", sys.executable, str(program), *SMALL.split(), *options.split()]
    done = run(command, {}, tmp_path, 60)
    assert done.code != 0
    assert "averages differ from those expected" in done.sentences[-1]
