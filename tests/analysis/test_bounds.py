"""Values as parts of bounds: where a rule holds, and nowhere else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis import bounds
from omb_py.analysis.bounds import RULES, Bounds, CopyRate, OtherLoad, bound_of
from omb_py.analysis.charts.figures import charts
from omb_py.analysis.charts.groups import Request
from omb_py.analysis.table import load
from omb_py.benchmarks import all_benchmarks
from omb_py.cli import command
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses

HOST = Bounds(
    omb_py_bounds=3,
    host="n1",
    measured="2026-11-25T12:00:00Z",
    processor="made up",
    cores=8,
    load=OtherLoad(others=0.02, stolen=0.0),
    copies=(
        CopyRate(bytes=65536, one_core=100_000.0, all_cores=400_000.0),
        CopyRate(bytes=1 << 20, one_core=20_000.0, all_cores=30_000.0),
        CopyRate(bytes=1 << 24, one_core=10_000.0, all_cores=15_000.0),
    ),
    caches={"L1": 48 << 10},
    links={"mlx5_0:1": 25_000.0, "mlx5_1:1": 25_000.0},
    gpus={},
)


def row(benchmark: str, hosts: int | None = 1, **values: Any) -> dict[str, Any]:
    plain = {"bytes": 1 << 24, "ranks": 2, "placement": "H", "part": None, "latency_us": None}
    return plain | {"benchmark": benchmark, "hosts": hosts, "bandwidth_MBps": None} | values


def write(path: Path, rate: int, sizes: tuple[int, ...] = (1 << 24,)) -> str:
    """A table of bw within one host, at one rate."""
    names = "run,benchmark,bytes,ranks,buffer,binding,placement,bandwidth_MBps,messages_per_s"
    lines = [f"# run: {path.stem}", "# omb_py: 0.1.0", "# hosts: n1:2", names]
    lines += [f"{path.stem},bw,{size},2,numpy,native,H,{rate},100" for size in sizes]
    path.write_text("\n".join([*lines, ""]))
    return str(path)


def omb(*words: str) -> str:
    done = CliRunner().invoke(command, list(words))
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (row("bw", bandwidth_MBps=15_000.0), "75 % of one copy"),
        (row("bw", bytes=1 << 30, bandwidth_MBps=5_000.0), "50 % of one copy"),
        (row("bibw", bandwidth_MBps=15_000.0), "50 % of two copies at once"),
        (row("mbw_mr", ranks=8, bandwidth_MBps=15_000.0), "50 % of copies by all cores"),
        (row("bw", 2, bandwidth_MBps=40_000.0), "80 % of the host's links"),
        (row("bibw", 2, bandwidth_MBps=40_000.0), "40 % of the host's links in both directions"),
        (row("bw", None, bandwidth_MBps=1.0), None),
        (row("bw", 3, bandwidth_MBps=1.0), None),
        (row("bw", placement="D", bandwidth_MBps=1.0), None),
        (row("bw", bytes=8, bandwidth_MBps=1.0), None),  # smaller than any copy measured
        (row("latency", bytes=8, latency_us=1.0), None),
        (row("allreduce", latency_us=1.0), None),
    ],
)
def test_a_value_is_a_part_of_its_bound(measured: dict[str, Any], text: str | None) -> None:
    known = bound_of(HOST, measured)
    assert (known and known.text) == text


def test_no_bound_is_known_without_links() -> None:
    measured = row("bw", 2, bandwidth_MBps=40_000.0)
    assert bound_of(HOST.model_copy(update={"links": {}}), measured) is None


@given(st.integers(65536, 1 << 40))
def test_the_rate_of_a_size_is_none_of_a_size_far_from_it(nbytes: int) -> None:
    rate = HOST.copy_rate(nbytes)
    near = [copy for copy in HOST.copies if nbytes / 16 <= copy.bytes <= nbytes * 16]
    assert rate in [copy.one_core for copy in near or HOST.copies[-1:]]


def test_rules_are_of_benchmarks_that_there_are() -> None:
    names = {benchmark.name for benchmark in all_benchmarks()}
    ruled = [(name, hosts) for benchmarks, hosts, *_ in RULES for name in benchmarks]
    assert {name for name, _ in ruled} <= names
    assert len(set(ruled)) == len(ruled)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / bounds.NAME).write_text(HOST.model_dump_json())
    assert bounds.read(tmp_path / bounds.NAME) == HOST
    assert bounds.find(None, [str(tmp_path)]) == HOST
    assert bounds.find(None, [str(tmp_path / "gone")]) is None


@pytest.mark.parametrize(
    "change",
    [{"host": 5}, {"more": 1}, {"omb_py_bounds": 1}, {"links": {"a": -1.0}}, {"cores": "8"}],
)
def test_a_file_with_anything_else_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(json.loads(HOST.model_dump_json()) | change))
    with refuses(UsageError, "mine.json no bounds: omb-py machine bounds"):
        bounds.read(path)


def test_all_cores_can_do_what_one_can() -> None:
    slower = CopyRate(bytes=1 << 24, one_core=10_000.0, all_cores=4_000.0)
    busy = HOST.model_copy(update={"copies": (slower,)})
    assert busy.copy_rate(1 << 24, all_cores=True) == 10_000.0


def test_bounds_of_a_busy_host_are_noted(tmp_path: Path) -> None:
    write(tmp_path / "bw.csv", 9)
    for others, noted in ((0.3, True), (0.02, False)):
        known = HOST.model_copy(update={"load": OtherLoad(others=others, stolen=0.0)})
        (tmp_path / bounds.NAME).write_text(known.model_dump_json())
        text = "other processes took 30% of the 8 cores of n1"
        assert (text in omb("show", str(tmp_path))) is noted
    assert HOST.model_copy(update={"load": None}).busy is None


def test_show_and_report_have_the_parts(tmp_path: Path) -> None:
    (tmp_path / bounds.NAME).write_text(HOST.model_dump_json())
    file = write(tmp_path / "bw.csv", 15_000)
    shown = omb("show", str(tmp_path))
    assert "75 % of one copy" in shown
    assert "left out" not in shown
    assert "of its bound" not in omb("show", file)
    page = tmp_path / "report.html"
    omb("report", str(tmp_path), "-o", str(page))
    assert re.search(r"<td[^>]*>75 % of one copy</td>", page.read_text())


@pytest.mark.slow
def test_a_comparison_has_the_parts_of_what_is_compared(tmp_path: Path) -> None:
    rates = {"before": 15_000, "after": 12_000}
    files = [write(tmp_path / f"{name}.csv", rate) for name, rate in rates.items()]
    (tmp_path / "mine.json").write_text(HOST.model_dump_json())
    chosen = ["--bounds", str(tmp_path / "mine.json")]
    assert "60 % of one copy" in omb("compare", *files, *chosen)
    assert ",60 % of one copy" in omb("compare", *files, *chosen, "--format", "csv")
    assert "of its bound" not in omb("compare", *files)


def test_figures_over_message_sizes_have_the_bounds(tmp_path: Path) -> None:
    results = load([write(tmp_path / "bw.csv", 5000, (8, 1 << 20, 1 << 24))])
    (chart,) = charts(results, Request(bounds=HOST)).values()
    found = str(chart.specification())
    for size, rate in ((1 << 20, 100_000.0), (1 << 24, 20_000.0)):
        assert f"'line': 'bound of n1: one copy', 'x': {float(size)}, 'value': {rate}" in found
    assert found.count("'bound of n1: one copy', 'x'") == 2
    (rates,) = charts(results, Request("size", value="rate", bounds=HOST)).values()
    assert "bound of" not in str(rates.specification())


@pytest.mark.long
def test_the_command_measures_and_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "bounds.json"
    output = omb("machine", "bounds", "--output", str(path))
    known = bounds.read(path)
    assert known.copies
    assert known.load is not None
    assert ("note: other processes took" in output) == bool(known.busy)
    again = CliRunner().invoke(command, ["machine", "bounds", "--output", str(path)])
    assert again.exit_code != 0
