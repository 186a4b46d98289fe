"""Standard output has native OMB's layout, to the column: real outputs are the model."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

import pytest

from omb_py.benchmarks import all_benchmarks, find_benchmark
from omb_py.core.dataclass import replace
from omb_py.core.datatypes import find_types, parse_layout
from omb_py.core.options import Options
from omb_py.results.columns import Row
from omb_py.results.readers.omb_text import ONE_TYPE
from omb_py.results.text import TextWriter, VariedWindowWriter
from tests import ROOT
from tests.helpers.reading import read_file

DATA = ROOT / "tests" / "data" / "omb"
OTHERWISE = {
    *("osu_init", "osu_hello", "osu_ibcast", "osu_ialltoallv", "osu_ialltoallw", "osu_latency_mp"),
    *("osu_latency_mt", "osu_neighbor_alltoallv", "osu_neighbor_alltoallw"),
}
"""Programs without a table, and those whose title or order of comments is not ours."""

NATIVE = sorted({path.stem for path in DATA.glob("osu_*.txt")} - OTHERWISE)
OTHER_LINES = re.compile(r"(?m)^(?:Time took|Dimensions size|\[vm:| $).*\n")
"""What is about the topology, or is Open MPI's."""

TAIL = (50, 90, 99)
WITH_OPTIONS = {
    "allreduce_full": Options(full=True),
    "allreduce_tail": Options(percentiles=TAIL),
    "allreduce_validated": Options(validate=True),
    "allreduce_types": Options(),
    "allgather_vector": Options(layout=parse_layout("vect:8:4")),
    "barrier_full_tail": Options(full=True, percentiles=TAIL),
    "bw_validated_tail": Options(validate=True, percentiles=TAIL),
    "iallreduce_full": Options(test_calls=100, full=True),
    "iallreduce_validated_tail": Options(full=True, validate=True, percentiles=(99,)),
    "latency_validated_tail": Options(validate=True, percentiles=TAIL),
    "mbw_mr_no_rate": Options(print_rate=False),
    "mbw_mr_varied": Options(vary_window=True),
    "put_latency_tail": Options(percentiles=TAIL),
}


def row_of(found: dict[str, object]) -> Row:
    """A row that was read, as it would be measured."""
    values = {name: found[name] for name in Row.columns if name in found}
    pairs = [one[1:].split("=") for one in str(values.pop("percentiles", "")).split()]
    values["percentiles"] = tuple((float(percent), float(value)) for percent, value in pairs)
    return Row(**values)


def written(rows: Iterable[Row], options: Options) -> str:
    """The text of rows of a benchmark, without what native OMB does not say."""
    rows = list(rows)
    first = rows[-1]
    if first.window_kind is not None:
        options = replace(options, window_kind=first.window_kind, window_sync=first.window_sync)
    if first.threads is not None:
        sender, receiver = map(int, first.threads.split(":"))
        options = replace(options, threads=(sender, receiver))
    benchmark = find_benchmark(first.benchmark)
    stream = io.StringIO()
    kind = VariedWindowWriter if options.vary_window else TextWriter
    writer = kind(stream, benchmark, options)
    writer.start({"ranks": str(first.ranks or 2)})
    types = list(dict.fromkeys(row.mpi_type for row in rows if row.part is None))
    for mpi_type in types:
        printed = mpi_type and benchmark.name not in ONE_TYPE
        writer.section(find_types([mpi_type.lower()])[0] if printed else None)
        for row in rows:
            if row.mpi_type == mpi_type:
                writer.row(row)
    writer.finish()
    return re.sub(r"(?m)^(# OSU MPI.*v7\.4) \(omb-py .*\)$", r"\1", stream.getvalue())


@pytest.mark.parametrize("name", [*NATIVE, *WITH_OPTIONS])
def test_layout_is_native_ombs(name: str) -> None:
    path = DATA / f"{name}.txt"
    native = OTHER_LINES.sub("", path.read_text())
    rows = [row_of(row) for row in read_file(path).rows if "part" not in row]
    assert written(rows, WITH_OPTIONS.get(name, Options())) == native


def start_of(name: str, options: Options) -> list[str]:
    """The lines above the table of a benchmark."""
    stream = io.StringIO()
    TextWriter(stream, find_benchmark(name), options).start({"ranks": "4"})
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("name", [one.name for one in all_benchmarks() if not one.native])
def test_what_native_omb_lacks_does_not_bear_its_name(name: str) -> None:
    if find_benchmark(name).planned:
        lines = start_of(name, Options(window_kind="allocate"))
        assert any(line.startswith("# OMB-Py MPI") for line in lines)
        assert not any("OSU" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("latency_mt", "# Number of Sender threads: 3"),
        ("latency_mt", "# Number of Receiver threads: 4"),
        ("latency_mp", "# Number of forked processes in sender: 3"),
        ("put_mr", "# [ pairs: 2 ] [ window size: 64 ]"),
    ],
)
def test_options_of_the_family_are_named_below_the_banner(name: str, line: str) -> None:
    assert line in start_of(name, Options(threads=(3, 4)))


def test_fractional_percentiles_keep_columns_apart() -> None:
    stream = io.StringIO()
    TextWriter(stream, find_benchmark("latency"), Options(percentiles=(99, 99.9))).section(None)
    assert stream.getvalue().split("Tail")[1:] == [" Lat(us) P99.9 ", " Lat(us)\n"]
