"""Figures can be printed: nothing is cut off, hidden or written over, however much is in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from omb_py.analysis.plots.figures import Request, draw, pictures
from omb_py.analysis.plots.heat import Ratio
from omb_py.analysis.plots.style import Page
from omb_py.analysis.points import BINDINGS
from omb_py.analysis.table import Results, load, of_rows
from omb_py.core.errors import UsageError
from tests import ROOT
from tests.analysis.plots.test_figures import RUN, row
from tests.helpers.layout import faults

RESULTS = ROOT / "results"
SIZES = (0, *(2**power for power in range(21)))
LIBRARIES = ("MPICH Version: 5.0.2", "Open MPI v5.0.11", "Intel(R) MPI Library 2021.13")
WIDTHS = (8.5, 17.5)


def sampled(value: float, **more: Any) -> dict[str, Any]:
    """A median with an interval of 8 % and a spread of its samples."""
    found = {"latency_us": value * 1.1, "sample_mean_us": value * 1.1, "sample_p50_us": value}
    found |= {"median_low_us": value * 0.96, "median_high_us": value * 1.04}
    return {**found, "sample_min_us": value * 0.9, "sample_p95_us": value * 1.3, **more}


def lines(
    count: int,
    libraries: int = 1,
    ranks: tuple[int, ...] = (2,),
    sizes: tuple[int, ...] = SIZES,
    outlier: float = 1.0,
) -> Results:
    """``count`` bindings on each library and number of ranks; the first has the ``outlier``."""
    names = BINDINGS[:count] if count <= len(BINDINGS) else [f"binding {n}" for n in range(count)]
    runs = {
        f"run {number}": {**RUN["run"], "mpi_library": LIBRARIES[number]}
        for number in range(libraries)
    }
    rows = [
        row(
            run=f"run {library}",
            bytes=size,
            ranks=on,
            binding=name,
            **sampled(
                value := (1 + 0.4 * number + 0.1 * library) * on * (1 + size / 8000),
                sample_p95_us=value * (1.3 if number or size < 1000 else 1.3 * outlier),
            ),
        )
        for library in range(libraries)
        for number, name in enumerate(names)
        for on in ranks
        for size in sizes
    ]
    return of_rows(rows, runs)


def figures_of(
    results: Results, width: float, theme: str = "light", **request: Any
) -> list[Figure]:
    page = Page.parsed(width, theme)
    return [draw(one, page=page) for one in pictures(results, Request(**request)).values()]


@pytest.mark.product(strength=1)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("count", "libraries", "ranks"),
    [(1, 1, (2,)), (4, 2, (2,)), (7, 3, (2,)), (3, 1, (2, 4, 8)), (30, 1, (2,)), (9, 2, (2,))],
)
def test_lines_have_room(count: int, libraries: int, ranks: tuple[int, ...], width: float) -> None:
    (figure,) = figures_of(lines(count, libraries, ranks), width, kind="size")
    assert faults(figure) == []
    panels = [axes for axes in figure.axes if axes.get_visible()]
    drawn = [line for axes in panels for line in axes.get_lines() if line.get_label()[0] != "_"]  # type: ignore[index]
    assert len(drawn) == count * libraries * len(ranks)


@pytest.mark.parametrize("width", WIDTHS)
def test_long_names_are_wrapped(width: float) -> None:
    names = ["/scratch/project_465000123/someone/results/nightly-2026-11-22/latency.csv"]
    names += ["OSU 7.4, Open MPI 5.0.11, cupy, persistent, segments of 64 KiB, own segmented ring"]
    rows = [row(bytes=n, binding=name, **sampled(2.0 + n)) for n in (1, 2) for name in names]
    rows += [row(bytes=None, benchmark="barrier", binding=name, **sampled(2.0)) for name in names]
    for figure in figures_of(of_rows(rows, RUN), width):
        assert faults(figure) == []


def test_a_panel_is_a_library_or_a_number_of_ranks() -> None:
    of_libraries, of_ranks = (
        [axes.get_title(loc="left") for axes in figure.axes]
        for results in (lines(7, 3, sizes=(1, 2)), lines(3, ranks=(2, 4, 8), sizes=(1, 2)))
        for figure in figures_of(results, 17.5, kind="size")
    )
    assert of_libraries == ["MPICH 5.0.2", "Open MPI 5.0.11", "Intel MPI 2021.13"]
    assert of_ranks == ["2 ranks", "4 ranks", "8 ranks"]


def test_a_line_has_one_style_in_all_panels_and_one_legend() -> None:
    (figure,) = figures_of(lines(7, 3, sizes=(1, 2)), 17.5, kind="size")
    styles = {
        (line.get_label(), line.get_color(), line.get_marker())
        for axes in figure.axes
        for line in axes.get_lines()
        if line.get_label() in BINDINGS
    }
    assert len(styles) == 7
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(BINDINGS[:7])


@pytest.mark.parametrize("width", WIDTHS)
def test_outliers_of_three_decades_are_within_the_axes(width: float) -> None:
    (figure,) = figures_of(lines(3, outlier=1000.0), width, kind="size")
    assert faults(figure) == []
    low, high = figure.axes[0].get_ylim()
    assert low < 2
    assert high > 1000 * 260


def test_intervals_of_more_than_a_decade_are_a_band() -> None:
    rows = [row(bytes=size, **sampled(2.0, median_high_us=60.0)) for size in (1, 2, 4)]
    (figure,) = figures_of(of_rows(rows, RUN), 8.5, kind="size")
    bands = [one for one in figure.axes[0].collections if isinstance(one, PolyCollection)]
    assert len(bands) == 2
    assert "dark bands where they are longer than a decade" in figure.texts[1].get_text().replace(
        "\n", " "
    )
    assert faults(figure) == []


def test_an_axis_says_quantity_unit_and_statistic_and_a_title_only_the_benchmark() -> None:
    (figure,) = figures_of(lines(2), 8.5, kind="size")
    assert figure.axes[0].get_ylabel() == "Latency (µs), median"
    title, caption = (text.get_text() for text in figure.texts)
    assert title == "latency"
    assert caption.count("numpy") == 1


RANKS = (2, 4, 8, 16, 32, 64)
ALGORITHMS = {"ring": 1.0, "recursive_doubling": 1.02, "rabenseifner": 1.6, "linear": 4.0}
COMMITTED = [RESULTS / f"overhead-{mpi}.csv" for mpi in ("openmpi", "mpich")]
OTHERS: dict[str, tuple[Results, dict[str, Any]]] = {
    "ranks": (lines(2, 2, RANKS, (1, 64, 4096)), {"kind": "ranks"}),
    "heat": (lines(1, 1, RANKS), {"kind": "heat"}),
    "ratio": (lines(2, 1, RANKS), {"ratio": Ratio.parsed("binding=buffer/native")}),
    "bars": (lines(5, 3, sizes=(8,)), {"kind": "parts"}),
    "overhead": (load(COMMITTED), {"kind": "overhead"}),
    "parts": (load(RESULTS / "families-mpich.csv"), {"kind": "parts"}),
}


@pytest.mark.product(strength=1)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", OTHERS)
def test_other_kinds_have_room(kind: str, width: float) -> None:
    results, request = OTHERS[kind]
    for figure in figures_of(results, width, **request)[-2:]:
        assert faults(figure) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_map_of_winners_is_paler_where_they_lead_less(width: float) -> None:
    rows = [
        row(
            benchmark="allreduce", bytes=size, ranks=ranks, library_algorithm=word, **sampled(value)
        )
        for word, start in ALGORITHMS.items()
        for size in SIZES[1::4]
        for ranks in RANKS
        for value in [start * (1 + size * (4 if word == "ring" else 0.5) / ranks)]
    ]
    (figure,) = figures_of(of_rows(rows, RUN), width, kind="winner")
    assert faults(figure) == []
    pale = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    strong = [patch for patch in figure.axes[0].patches if not patch.get_hatch()]
    assert pale
    lightness = [np.mean(to_rgb(patch.get_facecolor())) for patch in (*pale, *strong)]
    assert min(lightness[: len(pale)]) > max(lightness[len(pale) :])


def test_bars_that_a_linear_axis_would_not_show_are_dots() -> None:
    rows = [
        row(benchmark="barrier", bytes=None, binding=name, **sampled(value))
        for name, value in (("native", 13.0), ("buffer", 15.0), ("pickle", 3100.0))
    ]
    (figure,) = figures_of(of_rows(rows, RUN), 8.5, kind="parts")
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert not axes.patches
    assert {"13.0 µs", "3.10 ms"} <= {text.get_text() for text in axes.texts}
    assert faults(figure) == []


def test_the_start_takes_time_not_latency() -> None:
    rows = [row(benchmark="init", bytes=None, latency_us=2e5)]
    (figure,) = figures_of(of_rows(rows, RUN), 8.5, kind="parts")
    assert figure.axes[0].get_xlabel() == "Time (ms), mean"


def test_cells_have_their_units() -> None:
    rows = [
        row(bytes=size, ranks=ranks, latency_us=value)
        for size, value in ((1, 0.5), (2, 11858.0))
        for ranks in (2, 4)
    ]
    for width in WIDTHS:
        (figure,) = figures_of(of_rows(rows, RUN), width, kind="heat")
        assert {text.get_text() for text in figure.axes[0].texts} == {"500 ns", "11.9 ms"}


def test_headings_that_a_column_is_too_narrow_for_are_upright() -> None:
    names = ("allreduce", "allgather", "alltoall", "scatter", "bcast", "barrier", "gather")
    rows = [
        row(bytes=n, benchmark=name, ranks=on) for n in (1, 2) for name in names for on in (2, 4)
    ]
    request: dict[str, Any] = {"lines": ("benchmark",), "ratio": Ratio.parsed("ranks=4/2")}
    for width, rotation in zip(WIDTHS, (90, 0), strict=True):
        (figure,) = figures_of(of_rows(rows, RUN), width, **request)
        labels = figure.axes[0].get_xticklabels()
        assert [label.get_text() for label in labels] == list(names)
        assert {label.get_rotation() for label in labels} == {rotation}


@pytest.mark.parametrize("width", WIDTHS)
def test_text_is_as_large_in_a_narrow_figure(width: float) -> None:
    (figure,) = figures_of(lines(2), width, kind="size")
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    sizes = {float(text.get_fontsize()) for text in texts}
    assert 7 <= min(sizes) <= max(sizes) <= 9
    assert figure.get_size_inches()[0] == pytest.approx(width / 2.54)


def test_a_dark_page_has_light_text() -> None:
    (figure,) = figures_of(lines(2, sizes=(1, 2)), 8.5, "dark", kind="size")
    page = np.mean(to_rgb(figure.get_facecolor()))
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    assert page < 0.2
    assert min(np.mean(to_rgb(text.get_color())) for text in texts) > 0.6


@pytest.mark.parametrize("width", ["wide", "", "2cm", "1.2.3cm", "-8cm"])
def test_what_is_no_width_is_refused(width: str) -> None:
    with pytest.raises(UsageError):
        Page.parsed(width)


def test_a_width_may_be_in_inches() -> None:
    assert Page.parsed("3.5in").width == pytest.approx(8.89)
