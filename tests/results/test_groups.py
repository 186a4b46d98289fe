"""The text of groups of ranks."""

from __future__ import annotations

import io

from omb_py.benchmarks import find_benchmark
from omb_py.core.datatypes import find_types
from omb_py.core.options import Options
from omb_py.results.row import Row
from omb_py.results.text import GroupsWriter


def row(group: str, size: int, latency: float, low: float, high: float, ranks: int = 4) -> Row:
    interval = {"median_low_us": low, "median_high_us": high}
    return Row(group=group, bytes=size, ranks=ranks, latency_us=latency, **interval)


def text(*sizes: list[Row]) -> list[str]:
    stream = io.StringIO()
    hosts = {"0-3": "node1", "4-7": "node2"}
    writer = GroupsWriter(stream, find_benchmark("allreduce"), Options(split="2"), hosts)
    writer.start({"ranks": "8"})
    writer.section(find_types(["mpi_int"])[0])
    for rows in sizes:
        writer.together(rows)
    writer.finish()
    return stream.getvalue().splitlines()


def test_the_slowest_group_of_each_size_is_marked_and_counted() -> None:
    lines = text(
        [row("0-3", 4, 2.0, 1.9, 2.1), row("4-7", 4, 3.0, 2.9, 3.1)],
        [row("0-3", 8, 2.0, 1.9, 2.9), row("4-7", 8, 2.5, 2.4, 2.6)],
        [row("0-3", 16, 4.0, 1.9, 2.9), row("4-7", 16, 2.5, 2.4, 2.6)],
    )
    assert lines[1].endswith("ranks 8, split 2)")
    assert lines[2:4] == ["# Group 0-3: node1", "# Group 4-7: node2"]
    assert lines[5].split() == ["#", "Size", "Avg", "Latency(us)", "Group"]
    assert lines[6].split() == ["4", "2.00", "0-3"]
    assert lines[7].split() == ["4", "3.00", "4-7", "slowest,", "1.50", "x"]
    assert lines[10].split()[2:] == ["0-3", "slowest,", "1.60", "x"]
    assert lines[12] == (
        "# Slowest of 2 groups: 4-7 at 2 of 3 sizes, at 1 of them beyond the 95 % intervals of all "
        "others"
    )


def test_groups_of_unequal_size_are_not_compared() -> None:
    lines = text([row("0-3", 4, 2.0, 1.9, 2.1), row("4-6", 4, 3.0, 2.9, 3.1, ranks=3)])
    assert not any("slowest," in line or "Slowest" in line for line in lines)
    assert "not compared" in lines[-1]


def test_groups_of_the_usual_size_are_compared() -> None:
    odd = row("8-9", 4, 9.0, 8.9, 9.1, ranks=2)
    lines = text([row("0-3", 4, 2.0, 1.9, 2.1), row("4-7", 4, 3.0, 2.9, 3.1), odd])
    assert [line.split()[2] for line in lines if line.endswith(" x")] == ["4-7"]
    assert lines[-2] == "# Not compared, for they have another number of ranks: 8-9"
    assert lines[-1].startswith("# Slowest of 2 groups: 4-7 ")


def test_nothing_is_said_of_one_group_or_none() -> None:
    assert text([row("0-3", 4, 2.0, 1.9, 2.1)])[-1].split() == ["4", "2.00", "0-3"]
    assert text()[-1].startswith("# Size")
