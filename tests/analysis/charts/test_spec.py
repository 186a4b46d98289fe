"""Charts can be printed: as wide as the page, their text of one size, their legend in no panel."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.charts.figures import charts
from omb_py.analysis.charts.groups import Request
from omb_py.analysis.charts.spec import (
    MAX_LINES,
    Chart,
    Measure,
    Page,
    ticks_along,
    value_axis,
    wrap,
)
from omb_py.analysis.points import BINDINGS
from omb_py.analysis.table import Results, load, of_rows
from omb_py.core.errors import UsageError
from tests import RESULTS, ROOT
from tests.analysis.charts.test_figures import INTERVAL, RUN, SAMPLES, encodings, only, rate, row
from tests.helpers.refusals import missing

SIZES = (0, *(2**power for power in range(21)))
LIBRARIES = ("MPICH Version: 5.0.2", "Open MPI v5.0.11", "Intel(R) MPI Library 2021.13")
WIDTHS = (8.5, 17.5)
BEGINNINGS = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg"}
HOSTILE = ("/scratch/project_465000123/someone/results/nightly-2026-11-22/latency.csv",)


def lines(
    count: int, libraries: int = 1, ranks: tuple[int, ...] = (2,), sizes: tuple[int, ...] = SIZES
) -> Results:
    """``count`` bindings on each library and number of ranks."""
    names = BINDINGS[:count] if count <= len(BINDINGS) else [f"binding {n}" for n in range(count)]
    runs = {f"run {at}": {**RUN["run"], "mpi_library": LIBRARIES[at]} for at in range(libraries)}
    rows = [
        row(run=run, bytes=size, ranks=on, binding=name, **SAMPLES, **INTERVAL)
        for run in runs
        for name in names
        for on in ranks
        for size in sizes
    ]
    return of_rows(rows, runs)


def drawn(results: Results, **request: Any) -> list[Chart]:
    return list(charts(results, Request(**request)).values())


RANKS = (2, 4, 8, 16, 32, 64)
CASES: dict[str, Callable[[], list[Chart]]] = {
    "size": lambda: drawn(lines(4), kind="size"),
    "libraries": lambda: drawn(lines(7, 3), kind="size"),
    "many": lambda: drawn(lines(30), kind="size"),
    "ranks": lambda: drawn(lines(2, 2, RANKS, (1, 64, 4096)), kind="ranks"),
    "bars": lambda: drawn(lines(5, 3, sizes=(8,)), kind="parts"),
    "overhead": lambda: drawn(load(RESULTS / "overhead-mpich.csv"), kind="overhead"),
    "pairs": lambda: drawn(load(ROOT / "tests/data/pairs/one-slow-card.csv"), kind="pairs"),
    "parts": lambda: drawn(load(RESULTS / "families-mpich.csv"), kind="parts"),
    "hostile": lambda: drawn(
        of_rows([row(bytes=n, binding=HOSTILE[0] * 3) for n in (1, 2)] * 2, RUN)
    ),
}
"""Charts of every kind."""


@pytest.mark.long
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CASES)
def test_a_figure_is_as_wide_as_the_page(name: str, width: float) -> None:
    text = CASES[name]()[-1].image("svg", Page(width)).decode()
    found = re.search(r'<svg [^>]*width="([0-9.]+)pt"', text)
    assert found is not None
    assert float(found[1]) == pytest.approx(width / 2.54 * 72, abs=1)
    sizes = {float(size) for size in re.findall(r'font-size="([0-9.]+)px"', text)}
    assert 7 <= min(sizes) <= max(sizes) <= 9


@pytest.mark.slow
@pytest.mark.parametrize("form", BEGINNINGS)
def test_the_same_data_makes_the_same_file(form: str) -> None:
    (chart,) = drawn(lines(2, sizes=(1, 2, 4)), kind="size")
    content = chart.image(form)
    assert content.startswith(BEGINNINGS[form])
    again = chart.image(form)
    assert again == content or (form == "pdf" and len(again) == len(content))


@pytest.mark.long
def test_a_specification_needs_no_other_place() -> None:
    for chart in drawn(load(RESULTS / "two-core-vm.csv")):
        found = chart.specification()
        assert chart.words not in json.dumps(found, ensure_ascii=False)
        text = json.dumps({**found, "$schema": ""})
        assert "http" not in text
        assert "NaN" not in text
        assert re.findall(rb'(?:href|src)="http', chart.image("svg")) == []


@pytest.mark.parametrize(
    ("found", "titles"),
    [
        (lines(7, 3, sizes=(1, 2)), ["MPICH 5.0.2", "Open MPI 5.0.11", "Intel MPI 2021.13"]),
        (lines(3, ranks=(2, 4, 8), sizes=(1, 2)), ["2 ranks", "4 ranks", "8 ranks"]),
    ],
)
def test_a_panel_is_a_library_or_a_number_of_ranks(found: Results, titles: list[str]) -> None:
    (chart,) = drawn(found, kind="size")
    assert list(dict.fromkeys(chart.data["title"])) == titles
    _, panels, _ = chart.specification(captioned=True)["vconcat"]
    assert len(panels["concat"]) == 3
    assert legends(chart) == [list(dict.fromkeys(chart.data["line"]))]


def test_a_line_has_one_style_in_all_panels() -> None:
    (chart,) = drawn(lines(7, 3, sizes=(1, 2)), kind="size")
    assert (chart.data.groupby("line")["style"].nunique() == 1).all()
    rows = [row for rows in chart.specification()["datasets"].values() for row in rows]
    pairs = {(row["line"], row["color"]) for row in rows if "line" in row}
    assert len(pairs) == len({color for _, color in pairs}) == 7


def legends(chart: Chart) -> list[list[str]]:
    """The names in each legend."""
    every = chart.specification()["datasets"].values()
    return [[" ".join(row["text"]) for row in rows] for rows in every if "middle" in rows[0]]


@pytest.mark.slow
def test_legends_are_views_beside_the_panels() -> None:
    for found, count in ((lines(4, sizes=(1, 2)), 1), (lines(30, sizes=(1, 2)), 4)):
        (chart,) = drawn(found, kind="size")
        assert len(legends(chart)) == count
        assert all(len(names) <= MAX_LINES for names in legends(chart))
        channels = [
            one for name in ("color", "shape") for one in encodings(chart.specification(), name)
        ]
        assert all(one.get("legend") is None for one in channels)


def test_a_dark_page_has_light_text() -> None:
    (chart,) = drawn(lines(2, sizes=(1, 2)), kind="size")
    config = chart.specification(Page(theme="dark"))["config"]
    assert config["background"] == "#16181D"
    assert config["axis"]["labelColor"] == config["title"]["color"] == "#F2F2F2"


def test_title_and_caption_stand_for_all_lines() -> None:
    (chart,) = drawn(lines(2), kind="size")
    found = chart.specification(Page(8.5), captioned=True)
    assert found["title"]["text"] == ["latency"]
    assert chart.words.count("numpy") == 1
    below = found["vconcat"][-1]["mark"]["text"]
    assert " ".join(below) == chart.words


def test_rates_are_decimal() -> None:
    found = of_rows([rate(bytes=n, bandwidth_MBps=float(n)) for n in (1, 1024)], RUN)
    chart = only(found, "size")
    assert "MB are 1,000,000 bytes" in chart.caption
    assert chart.data["value"].tolist() == [1.0, 1024.0]
    titles = [one["axis"]["title"] for one in encodings(chart.specification(), "y")]
    assert "Bandwidth (MB/s), mean" in titles


def test_axes_hold_all_that_is_drawn() -> None:
    outlier = {**SAMPLES, "sample_p95_us": 3000.0}
    (chart,) = drawn(of_rows([row(bytes=n, **outlier) for n in (1, 2)], RUN), kind="size")
    low, high = encodings(chart.specification(), "y")[0]["scale"]["domain"]
    assert low < 1.5
    assert high > 3000


def test_0_bytes_stand_apart_from_the_line() -> None:
    (chart,) = drawn(of_rows([row(bytes=n) for n in (0, 1, 2, 4)], RUN), kind="size")
    assert pieces(chart, "piece") == [[0.0], [1.0], [2.0], [4.0]]
    (chart,) = drawn(of_rows([row(bytes=n) for n in (0, 1, 2, 4, 8)], RUN), kind="size")
    assert pieces(chart, "piece") == [[0.0], [1.0, 2.0, 4.0, 8.0]]
    found = chart.specification()
    assert {one["field"] for one in encodings(found, "detail")} == {"piece"}
    assert encodings(found, "x")[0]["scale"]["domain"] == [0, 1, 2, 4, 8]


def pieces(chart: Chart, of: str) -> list[list[float]]:
    """The sizes or ranks that a continuous mark joins, ``of`` a line (piece) or a band (area)."""
    return [part["x"].tolist() for _, part in chart.data.groupby(of)]


def shapes(view: Any) -> list[str]:
    """The marks of a specification, without those of its legend."""
    views = view["vconcat"][-1] if "vconcat" in view else view
    found = re.findall(r"'mark': \{'type': '(\w+)'", str(views))
    return [name for name in found if name not in ("rule", "tick", "text")]


def test_band_ends_at_a_size_without_a_spread() -> None:
    sizes = [2**power for power in range(6)]
    of_mean = {"sample_p50_us": 2.0, "sample_min_us": 6.3, "sample_p95_us": 6.9}
    rows = [row(bytes=n, **(SAMPLES | (of_mean if n == 8 else {}))) for n in sizes]
    (chart,) = drawn(of_rows(rows, RUN), kind="size")
    assert pieces(chart, "piece") == [sizes]
    assert pieces(chart, "area") == [[1, 2, 4], [8], [16, 32]]
    assert chart.data[~chart.data["spans"]]["x"].tolist() == [8]
    areas = [one["field"] for one in encodings(chart.specification(), "detail")]
    assert sorted(set(areas)) == ["area", "piece"]


def test_spread_without_a_neighbour_is_a_bar() -> None:
    sizes, of_mean = [2**power for power in range(5)], {"sample_p50_us": 1.0}
    rows = [row(bytes=n, **(SAMPLES if n in (1, 2, 16) else of_mean)) for n in sizes]
    (chart,) = drawn(of_rows(rows, RUN), kind="size")
    assert chart.data[chart.data["spans"]]["x"].tolist() == [1, 2]


def test_fewer_than_four_sizes_are_points_alone() -> None:
    every = {"point", "line", "area"}
    for sizes, marks, handle in (((8, 16, 1 << 20), {"point"}, False), ((1, 2, 4, 8), every, True)):
        rows = [row(bytes=n, binding=b, **SAMPLES) for n in sizes for b in ("native", "buffer")]
        (chart,) = drawn(of_rows(rows, RUN), kind="size")
        assert set(shapes(chart.specification())) == marks
        legend = chart.specification()["vconcat"][0]
        assert ("'strokeDash'" in str(legend)) is handle
        assert ("Thin bars" in chart.words) is not handle


def test_few_numbers_of_ranks_are_joined() -> None:
    (chart,) = drawn(lines(1, ranks=(2, 4), sizes=(8,)), kind="ranks")
    assert "line" in shapes(chart.specification())


def test_runs_with_more_ranks_than_cores_are_hollow() -> None:
    host = {**RUN["run"], "processor": "Some, 4 logical cores"}
    runs = {f"on {n}": {**host, "hosts": f"a:{n}"} for n in (2, 4, 8)}
    rows = [row(run=f"on {n}", ranks=n, bytes=8) for n in (2, 4, 8)]
    (chart,) = drawn(of_rows(rows, runs), kind="ranks")
    assert chart.data[chart.data["crowded"]]["x"].tolist() == [8]
    assert not missing("Hollow marks: 1 of 3 runs, ranks shared cores", chart.words)
    bars = of_rows([one | {"bytes": None, "benchmark": "barrier"} for one in rows[2:]], runs)
    assert not missing("1 of 1 run, ranks shared cores", drawn(bars, kind="parts")[0].words)
    assert "cores" not in drawn(of_rows(rows[:2], runs), kind="ranks")[0].words


def test_runs_beside_other_processes_are_in_the_caption() -> None:
    runs = {
        name: {**RUN["run"], "other_processes": f"{used}% of 4 cores of a, steal 0.0%"}
        for name, used in (("busy", 30.0), ("quiet", 1.0))
    }
    rows = [row(run=name, bytes=n) for name in runs for n in (1, 2)]
    (chart,) = drawn(of_rows(rows, runs), kind="size")
    assert not missing("1 of 2 runs, other programs used 5 % cores", chart.words)


@given(st.sets(st.integers(0, 40).map(lambda n: 2**n if n else 0), min_size=1))
def test_sizes_have_few_labels_all_within_the_data(sizes: set[int]) -> None:
    ticks = ticks_along("bytes", sizes, 7)
    assert 1 <= len(ticks) <= 7
    assert set(ticks) <= sizes


@given(st.floats(1e-3, 1e9), st.floats(1, 1e6), st.sampled_from(["us", "MB/s", "msg/s"]))
def test_an_axis_of_values_has_ticks(low: float, factor: float, unit: str) -> None:
    axis = value_axis([low, low * factor], Measure("", unit))
    assert 2 <= len(axis.ticks) <= 20
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks)
    assert len(set(axis.ticks.values())) == len(axis.ticks)


def test_words_longer_than_a_line_are_cut() -> None:
    assert "".join(wrap(HOSTILE[0], 7, 100)) == HOSTILE[0]
    assert len(wrap(HOSTILE[0], 7, 100)) >= 3


@pytest.mark.parametrize("width", ["wide", "", "2cm", "1.2.3cm", "-8cm", "0cm"])
def test_what_is_no_width_is_refused(width: str) -> None:
    with pytest.raises(UsageError):
        Page.parsed(width)
