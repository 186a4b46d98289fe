"""Standard output has native OMB's layout, to the column: real outputs are the model."""

from __future__ import annotations

import io
import re

import pytest

from omb_py.benchmarks import find_benchmark
from omb_py.core.datatypes import find_types
from omb_py.core.datatypes.layout import parse_layout
from omb_py.core.options import VARIED_WINDOWS, Options
from omb_py.results.row import Row
from omb_py.results.text import TextWriter, VariedWindowWriter
from tests import ROOT

DATA = ROOT / "tests" / "data" / "omb"


def row(name: str, size: int | None, cells: list[float], options: Options, **more: object) -> Row:
    """A row whose numbers are those of a line of native output."""
    latency = find_benchmark(name).metric.value == "latency"
    rest = iter(cells)
    values: dict[str, object] = {"benchmark": name, "bytes": size, "validation": "Pass"}
    values["latency_us" if latency else "bandwidth_MBps"] = next(rest)
    if name == "mbw_mr" and options.print_rate:
        values["messages_per_s"] = next(rest)
    if options.full:
        values |= {"latency_min_us": next(rest), "latency_max_us": next(rest)}
        values["iterations"] = int(next(rest))
    if options.percentiles:
        values["percentiles"] = tuple((percent, next(rest)) for percent in options.percentiles)
    if not options.layout.contiguous:
        values["payload_bytes"] = int(next(rest))
    return Row(**(values | more))


@pytest.mark.parametrize(
    ("file", "name", "options"),
    [
        ("osu_latency", "latency", Options()),
        ("osu_bw", "bw", Options()),
        ("osu_bibw", "bibw", Options()),
        ("osu_multi_lat", "multi_lat", Options()),
        ("osu_mbw_mr", "mbw_mr", Options()),
        ("osu_allreduce", "allreduce", Options()),
        ("osu_reduce_scatter", "reduce_scatter", Options()),
        ("osu_barrier", "barrier", Options()),
        ("allreduce_full", "allreduce", Options(full=True)),
        ("allreduce_tail", "allreduce", Options(percentiles=(50, 90, 99))),
        ("allreduce_validated", "allreduce", Options(validate=True)),
        ("allreduce_types", "allreduce", Options()),
        ("allgather_vector", "allgather", Options(layout=parse_layout("vect:8:4"))),
        ("barrier_full_tail", "barrier", Options(full=True, percentiles=(50, 90, 99))),
        ("bw_validated_tail", "bw", Options(validate=True, percentiles=(50, 90, 99))),
        ("latency_validated_tail", "latency", Options(validate=True, percentiles=(50, 90, 99))),
        ("mbw_mr_no_rate", "mbw_mr", Options(print_rate=False)),
    ],
)
def test_layout_is_native_ombs(file: str, name: str, options: Options) -> None:
    native = (DATA / f"{file}.txt").read_text()
    benchmark = find_benchmark(name)
    stream = io.StringIO()
    writer = TextWriter(stream, benchmark, options)
    writer.start({"ranks": "2"})
    if not benchmark.sized:
        writer.section(None)
    for line in native.splitlines():
        if line.startswith("# Datatype: "):
            writer.section(find_types([line.split()[-1].rstrip(".")])[0])
        elif line and not line.startswith("#"):
            cells = [float(cell) for cell in line.split() if cell != "Pass"]
            size = int(cells.pop(0)) if benchmark.sized else None
            writer.row(row(name, size, cells, options))
    ours = re.sub(r"(?m)^(# OSU MPI .*v7\.4) \(omb-py .*\)$", r"\1", stream.getvalue())
    assert ours == native


def test_layout_of_varied_windows_is_native_ombs() -> None:
    native = (DATA / "mbw_mr_varied.txt").read_text()
    lines = [line.split() for line in native.splitlines() if line and line[0] != "#"]
    half = len(lines) // 2
    stream = io.StringIO()
    options = Options(vary_window=True)
    writer = VariedWindowWriter(stream, find_benchmark("mbw_mr"), options)
    writer.start({"ranks": "2"})
    writer.section(find_types(["mpi_char"])[0])
    for bandwidths, rates in zip(lines[:half], lines[half:], strict=True):
        for column in range(1, 1 + len(VARIED_WINDOWS)):
            cells = [float(bandwidths[column]), float(rates[column])]
            writer.row(row("mbw_mr", int(bandwidths[0]), cells, options))
    writer.finish()
    ours = re.sub(r"(?m)^(# OSU MPI .*v7\.4) \(omb-py .*\)$", r"\1", stream.getvalue())
    assert ours == native


def test_a_benchmark_that_native_omb_lacks_does_not_bear_its_name() -> None:
    stream = io.StringIO()
    TextWriter(stream, find_benchmark("scan"), Options()).start({"ranks": "2"})
    assert stream.getvalue().startswith("\n# OMB-Py MPI Scan Latency Test v")


def test_fractional_percentiles_keep_columns_apart() -> None:
    stream = io.StringIO()
    TextWriter(stream, find_benchmark("latency"), Options(percentiles=(99, 99.9))).section(None)
    assert stream.getvalue().split("Tail")[1:] == [" Lat(us) P99.9 ", " Lat(us)\n"]
