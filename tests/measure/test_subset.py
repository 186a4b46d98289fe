"""Results of some ranks of a job: whatever is written names them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from omb_py.benchmarks import find_benchmark
from omb_py.core.datatypes import find_types
from omb_py.core.options import Options
from omb_py.measure.subset import SubsetWriter
from omb_py.results.columns import Row
from omb_py.results.csv_json import CsvWriter, JsonWriter
from omb_py.results.destinations import text_writer
from omb_py.results.sink import StreamSink
from omb_py.results.writer import Collector, Writer

METADATA = {"run": "r", "ranks": "2", "command": "omb-py mbw_mr -V"}
AT_THE_END = {"launch_seconds": "1"}
ROW = Row(run="r", benchmark="mbw_mr", ranks=2, bytes=8, bandwidth_MBps=12.5, messages_per_s=1e6)


def text(stream: io.BytesIO) -> Writer[Any]:
    lines = io.TextIOWrapper(stream, write_through=True)
    return text_writer(lines, find_benchmark("mbw_mr"), Options(vary_window=True, print_rate=True))


def csv(stream: io.BytesIO) -> Writer[Any]:
    return CsvWriter(StreamSink(stream), Row)


def json(stream: io.BytesIO) -> Writer[Any]:
    return JsonWriter(StreamSink(stream))


def measure(writer: Writer[Row], metadata: dict[str, str], row: Row) -> None:
    """Hand a writer what a run of one size has."""
    writer.start(metadata)
    writer.section(find_types(("mpi_char",))[0])
    writer.row(row)
    writer.amend("r", AT_THE_END)
    writer.finish()


@pytest.mark.parametrize("kind", [text, csv, json], ids=lambda kind: kind.__name__)
def test_part_is_written_as_a_run_that_names_its_ranks(
    kind: Callable[[io.BytesIO], Writer[Any]],
) -> None:
    whole, part = io.BytesIO(), io.BytesIO()
    own = kind(part)
    measure(SubsetWriter(own, "0+3", 4), METADATA, ROW)
    other = kind(whole)
    measure(other, METADATA | {"part": "ranks 0+3 of 4"}, ROW.replace(group="0+3"))
    assert part.getvalue() == whole.getvalue() != b""


def test_facts_of_the_end_of_a_part_belong_to_its_run() -> None:
    collector = Collector()
    measure(SubsetWriter(collector, "0+3", 4), METADATA, ROW)
    assert collector.runs == {"r": METADATA | AT_THE_END | {"part": "ranks 0+3 of 4"}}
    assert [row["group"] for row in collector.rows] == ["0+3"]
