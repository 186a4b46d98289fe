"""Own algorithms on real ranks: right data through each kind of binding, and what is refused."""

from __future__ import annotations

import pytest

from tests.helpers.battery import Battery, Line, completed, each_line, line, passes, refused
from tests.mpi.own_lines import SEGMENT, in_place, own_lines

CHECKED = "-i 2 -x 1 -u 1 -c"
EVERY = own_lines(CHECKED) + own_lines(f"{CHECKED} --binding native")
OTHERS = [
    one
    for binding in ("array", "prebound")
    for one in own_lines(f"{CHECKED} --binding {binding}", (3,))
]
TYPES = [
    line(3, f"allreduce --p2p-algorithm {word} -T all --sizes 96 {CHECKED} --binding {binding}")
    for word in ("ring", "rabenseifner")
    for binding in ("buffer", "native")
]
RING = "allreduce --p2p-algorithm ring"
HIERARCHICAL = "allreduce --p2p-algorithm hierarchical"
SUFFICIENT = "allreduce --p2p-algorithm recursive_doubling --sizes 8,4096 -i 20 -x 2"


@pytest.mark.product
@each_line(EVERY, in_place(EVERY), OTHERS, TYPES)
def test_every_algorithm_moves_the_right_data(battery: Battery, line: Line) -> None:
    record = passes(battery(line), rows=4)
    words = line.arguments
    word = words[words.index("--p2p-algorithm") + 1]
    assert {row["algorithm"] for row in record.rows} == {word}
    assert {row["segment"] for row in record.rows} == {SEGMENT if "--segment" in words else None}
    assert f"own algorithm {word}" in record.out


@pytest.mark.product
@each_line(
    line(3, f"{SUFFICIENT} --binding {binding} {more}")
    for binding in ("buffer", "native")
    for more in ("", "--sync clock", "-l", "-f --busbw", "--buffer bytearray")
)
def test_times_come_as_for_any_collective(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    assert [row["bytes"] for row in record.rows] == [8, 4096]
    assert all(row["latency_us"] > 0 for row in record.rows)
    assert {row["iterations"] for row in record.rows} == {20}


@each_line(
    line(3, f"bcast --p2p-algorithm pipelined_chain {CHECKED} --sizes 200000 --binding {binding}")
    for binding in ("persistent", "tcp", "coroutine")
)
def test_segments_without_an_option_have_64_kib(battery: Battery, line: Line) -> None:
    (row,) = passes(battery(line)).rows
    assert row["segment"] == 65536


@each_line(line(4, f"bcast --p2p-algorithm library {CHECKED} --sizes 8"))
def test_the_librarys_own_is_asked_for_by_name(battery: Battery, line: Line) -> None:
    record = passes(battery(line))
    (row,) = record.rows
    assert row["algorithm"] == "library"


@each_line(line(4, f"bcast {CHECKED} --sizes 8"))
def test_without_the_option_the_columns_are_empty(battery: Battery, line: Line) -> None:
    (row,) = battery(line).rows
    assert (row["algorithm"], row["nodes"]) == (None, None)


@each_line(line(4, f"allreduce --p2p-algorithm hierarchical --node-map 0,1,1,1 {CHECKED}"))
def test_a_row_says_how_many_nodes_a_hierarchy_had(battery: Battery, line: Line) -> None:
    assert {row["nodes"] for row in battery(line).rows} == {2}


@each_line(
    line(2, f"{name} --p2p-algorithm {word} --sizes 64 --binding {binding}")
    for name, word in (("bcast", "binomial"), ("allreduce", "ring"))
    for binding in ("pickle", "pkl5")
)
def test_bindings_that_return_objects_cannot_pass_data_on(battery: Battery, line: Line) -> None:
    refused(battery(line), "--p2p-algorithm --binding buffer")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (line(2, f"{RING} --binding persistent"), "MPI cannot set up"),
        (line(2, "allreduce --p2p-algorithm hierarchical"), "1 node several"),
        (line(2, f"{HIERARCHICAL} --node-map 0,1,1"), "3 ranks"),
        (
            line(2, "allreduce --p2p-algorithm ring --node-map 1"),
            "--node-map --p2p-algorithm hierarchical",
        ),
        (line(2, "allreduce --node-map 1"), "--node-map --p2p-algorithm hierarchical"),
        (line(2, "bcast --p2p-algorithm binomial --coll-algorithm binomial"), "leave out one"),
        (line(2, "bcast --segment 4K"), "--segment --p2p-algorithm pipelined_chain"),
        (line(2, "bcast --p2p-algorithm binomial -M 1 --sizes 64"), "memory limit"),
    ],
    ids=str,
)
def test_what_cannot_be_says_what_to_do(battery: Battery, line: Line, words: str) -> None:
    refused(battery(line), words)
