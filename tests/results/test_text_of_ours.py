"""The tables that native OMB does not have: overhead, groups of ranks, victims of congestion."""

from __future__ import annotations

import io

import pytest

from omb_py.benchmarks import find_benchmark
from omb_py.core.datatypes import find_types
from omb_py.core.options import Options
from omb_py.measure.turns import busy
from omb_py.results.columns import OverheadRow, Row
from omb_py.results.text import CONGESTION, GroupsWriter, OverheadWriter, TableWriter
from tests.helpers.refusals import missing


def overhead(
    median: float, base: float, ratio: float, low: float | None, high: float | None
) -> str:
    """The text of one size, of a binding and its base."""
    values: dict[str, object] = {"bytes": 8, "base": "native", "thread_level": "single"}
    values |= {"base_us": base}
    native = values | {"binding": "native", "median_us": base, "ratio": 1.0, "added_us": 0.0}
    other = values | {"binding": "buffer", "median_us": median, "added_us": median - base}
    other |= {"ratio": ratio, "ratio_low": low, "ratio_high": high}
    stream = io.StringIO()
    writer = OverheadWriter(stream, find_benchmark("latency"), Options(), "multiple")
    writer.start({"ranks": "2"})
    writer.section(None)
    for row in (native, other):
        writer.row(OverheadRow(**row))
    writer.finish()
    return stream.getvalue()


def test_the_text_says_that_ratios_are_within_rounds() -> None:
    lines = overhead(0.466, 0.141, 3.31, 3.234, 3.317)
    assert not missing("Added and Ratio: medians differences ratios round", lines)


def test_overhead_names_its_thread_level_first_and_its_launch_last() -> None:
    lines = overhead(0.466, 0.141, 3.31, 3.234, 3.317).splitlines()
    assert "(thread level multiple, " in lines[0]
    assert not missing("# intervals this launch alone --launches 8", lines[-1])


def test_overhead_added_stands_before_the_ratio() -> None:
    (heads,) = [
        line for line in overhead(0.5, 0.1, 5.0, 4.9, 5.1).splitlines() if "Binding" in line
    ]
    assert heads.index("Added(us)") < heads.index("Ratio")


def test_a_row_whose_medians_have_another_quotient_says_so() -> None:
    lines = overhead(8.74, 1.41, 0.904, 0.8, 1.1).splitlines()
    (place,) = [i for i, line in enumerate(lines) if line.startswith("8         buffer")]
    assert not missing("#   buffer: quotient medians 6.20", lines[place + 1])
    without_interval = overhead(8.74, 1.41, 0.904, None, None)
    assert not missing("quotient medians 6.20", without_interval)


@pytest.mark.parametrize("ratio", [3.31, 3.25])
def test_a_row_that_agrees_needs_no_word(ratio: float) -> None:
    assert "quotient" not in overhead(0.466, 0.141, ratio, ratio - 0.05, ratio + 0.05)


def test_a_busy_machine_is_said() -> None:
    assert busy([]) is None
    assert busy([0.01, 0.02, 3.0]) is None
    sentence = busy([0.05, 0.3, 0.4])
    assert sentence is not None
    assert "differ by 30%" in sentence
    assert "the machine was busy" in sentence


def member(group: str, size: int, latency: float, low: float, high: float, ranks: int = 4) -> Row:
    interval = {"median_low_us": low, "median_high_us": high}
    return Row(group=group, bytes=size, ranks=ranks, latency_us=latency, **interval)


def groups(*sizes: list[Row]) -> list[str]:
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
    lines = groups(
        [member("0-3", 4, 2.0, 1.9, 2.1), member("4-7", 4, 3.0, 2.9, 3.1)],
        [member("0-3", 8, 2.0, 1.9, 2.9), member("4-7", 8, 2.5, 2.4, 2.6)],
        [member("0-3", 16, 4.0, 1.9, 2.9), member("4-7", 16, 2.5, 2.4, 2.6)],
    )
    assert lines[1].endswith("ranks 8, split 2)")
    assert lines[2:4] == ["# Group 0-3: node1", "# Group 4-7: node2"]
    assert lines[5].split() == ["#", "Size", "Avg", "Latency(us)", "Group"]
    assert lines[6].split() == ["4", "2.00", "0-3"]
    assert lines[7].split() == ["4", "3.00", "4-7", "slowest,", "1.50", "x"]
    assert lines[10].split()[2:] == ["0-3", "slowest,", "1.60", "x"]
    assert not missing("# Slowest of 2 groups: 4-7 at 2 of 3 sizes, 1 95 %", lines[12])


def test_groups_of_unequal_size_are_not_compared() -> None:
    lines = groups([member("0-3", 4, 2.0, 1.9, 2.1), member("4-6", 4, 3.0, 2.9, 3.1, ranks=3)])
    assert not any("slowest," in line or "Slowest" in line for line in lines)
    assert "not compared" in lines[-1]


def test_groups_of_the_usual_size_are_compared() -> None:
    odd = member("8-9", 4, 9.0, 8.9, 9.1, ranks=2)
    lines = groups([member("0-3", 4, 2.0, 1.9, 2.1), member("4-7", 4, 3.0, 2.9, 3.1), odd])
    assert [line.split()[2] for line in lines if line.endswith(" x")] == ["4-7"]
    assert not missing("# Not compared, number of ranks: 8-9", lines[-2])
    assert lines[-1].startswith("# Slowest of 2 groups: 4-7 ")


def test_nothing_is_said_of_one_group_or_none() -> None:
    assert groups([member("0-3", 4, 2.0, 1.9, 2.1)])[-1].split() == ["4", "2.00", "0-3"]
    assert groups()[-1].startswith("# Size")


def victim(congestor: str, **values: object) -> Row:
    return Row(bytes=8, congestor=congestor, **values)


def test_line_has_times_and_factors_of_median_and_tail() -> None:
    stream = io.StringIO()
    options = Options(split="mod:2", congestor=("alltoall", 1024))
    groups = ["# Victim: ranks 0-2:2; congestor alltoall:1024: ranks 1-3:2"]
    writer = TableWriter(stream, find_benchmark("allreduce"), options, CONGESTION, groups)
    writer.start({"ranks": "4"})
    writer.section(find_types(["mpi_int"])[0])
    alone = victim("none", sample_p50_us=2.0, sample_p99_us=4.0, congestor_iterations=0)
    factors = {"impact": 1.5, "impact_low": 1.4, "impact_high": 1.6, "impact_p99": 2.5}
    congested = victim(
        "alltoall:1024", sample_p50_us=3.0, sample_p99_us=10.0, **factors, congestor_iterations=70
    )
    writer.together([alone, congested])
    lines = stream.getvalue().splitlines()
    assert lines[1] == "# Victim: ranks 0-2:2; congestor alltoall:1024: ranks 1-3:2"
    assert lines[-2].split() == "8 none 2.00 - - - 4.00 - - - 0".split()
    assert lines[-1].split() == ("8 alltoall:1024 3.00 1.50 1.40 1.60 10.00 2.50 - - 70".split())
    assert lines[-3].index("Impact") + len("Impact") == lines[-1].index(" 1.50") + len(" 1.50")
