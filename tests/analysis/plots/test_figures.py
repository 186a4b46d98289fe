"""Figures show the numbers of the rows, say what they are, and come out the same every time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from omb_py.analysis.plots import terminal as terminal_plot
from omb_py.analysis.plots.axes import quantity_text, ticks_of_sizes
from omb_py.analysis.plots.bars import BarChart
from omb_py.analysis.plots.charts import Chart, Line
from omb_py.analysis.plots.figures import Request, draw, figures, message_sizes, pictures
from omb_py.analysis.plots.heat import Ratio
from omb_py.analysis.plots.overhead import Overhead
from omb_py.analysis.plots.style import FORMATS, MAX_LINES, Page, apply_style, image, line_style
from omb_py.analysis.select import where
from omb_py.analysis.table import Results, load, of_rows
from omb_py.core.errors import OmbError, UsageError
from omb_py.results.row import OverheadRow
from tests import ROOT
from tests.helpers.properties import examples

RESULTS = ROOT / "results"
RUN = {"run": {"omb_py": "1", "mpi_library": "MPICH Version: 5.0.2", "hosts": "a=8"}}


def row(**values: Any) -> dict[str, Any]:
    """A row of 8 bytes between two ranks, but for ``values``."""
    usual = {"run": "run", "benchmark": "latency", "bytes": 8, "ranks": 2, "latency_us": 1.0}
    named = {"buffer": "numpy", "binding": "buffer", "iterations": 10, "warmup": 1}
    return {**usual, **named, **values}


def results(*rows: dict[str, Any]) -> Results:
    return of_rows(list(rows), RUN)


def only(found: Results, **request: Any) -> Any:
    """The one picture there is."""
    (picture,) = pictures(found, Request(**request)).values()
    return picture


def values(line: Line) -> list[tuple[float, float]]:
    return [(point.x, point.value) for point in line.points]


def words_in(figure: Figure) -> str:
    """All that is written below a figure, on one line."""
    return " ".join(figure.texts[1].get_text().split())


class TestOverSizes:
    @given(
        st.dictionaries(st.sampled_from([0, 1, 8, 1000, 1 << 20]), st.floats(1e-3, 1e6), min_size=2)
    )
    @examples(10)
    def test_a_line_has_the_numbers_of_the_rows(self, latencies: dict[int, float]) -> None:
        rows = [row(bytes=size, latency_us=value) for size, value in latencies.items()]
        chart = only(results(*rows), kind="size")
        (line,) = chart.lines
        assert values(line) == sorted(latencies.items())
        axes = draw(chart).axes[0]
        # 0 bytes apart
        shown = np.concatenate([np.asarray(part.get_ydata()) for part in axes.get_lines()[:2]])
        assert sorted(shown) == sorted(latencies.values())

    def test_columns_that_differ_tell_lines_apart(self) -> None:
        rows = [
            row(bytes=size, binding=binding, mpi_type="MPI_CHAR")
            for binding in ("pickle", "native")
            for size in (1, 2)
        ]
        chart = only(results(*rows), kind="size")
        assert [line.name for line in chart.lines] == ["native", "pickle"]
        assert "MPI_CHAR" in chart.caption[0]
        assert "binding" not in chart.caption[0]

    def test_a_binding_has_one_style_in_every_figure(self) -> None:
        alone = [row(bytes=n, binding=b) for n in (1, 2) for b in ("buffer", "pickle")]
        more = [row(bytes=n, binding=b) for n in (1, 2) for b in ("native", "buffer", "pickle")]
        styles = [
            {line.name: line.style for line in only(results(*rows), kind="size").lines}
            for rows in (alone, more)
        ]
        assert styles[0]["pickle"] == styles[1]["pickle"]
        assert styles[0]["buffer"] == styles[1]["buffer"]

    def test_columns_that_are_not_named_make_figures(self) -> None:
        rows = [
            row(bytes=size, binding=binding, ranks=ranks)
            for binding in ("native", "buffer")
            for ranks in (2, 4)
            for size in (1, 2)
        ]
        found = pictures(results(*rows), Request("size", lines=("binding",)))
        assert set(found) == {"latency-2-ranks", "latency-4-ranks"}
        assert all(len(chart.lines) == 2 for chart in found.values())  # type: ignore[union-attr]

    def test_too_many_lines_become_panels(self) -> None:
        rows = [
            row(bytes=size, binding=binding, window=window)
            for binding in ("native", "buffer")
            for window in (1, 2, 4, 8, 16, 32, 64, 128)
            for size in (1, 2)
        ]
        chart = only(results(*rows), kind="size")
        assert [panel.title for panel in chart.panels] == ["native", "buffer"]
        assert [line.name for line in chart.panels[0].lines][:2] == ["window 1", "window 2"]

    def test_benchmarks_may_be_lines(self) -> None:
        rows = [row(bytes=n, benchmark=name) for n in (1, 2) for name in ("bcast", "allreduce")]
        chart = only(results(*rows), kind="size", lines=("benchmark",))
        assert [line.name for line in chart.lines] == ["bcast", "allreduce"]

    def test_latencies_and_bandwidths_never_share_an_axis(self) -> None:
        rows = [row(bytes=n) for n in (1, 2)]
        rows += [row(bytes=n, benchmark="bw", latency_us=None, bandwidth_MBps=5.0) for n in (1, 2)]
        found = pictures(results(*rows), Request("size", lines=("benchmark",)))
        assert sorted(chart.measure.unit for chart in found.values()) == ["MB/s", "us"]  # type: ignore[union-attr]

    def test_what_a_suite_does_not_say_is_no_difference(self) -> None:
        ours = [row(bytes=n, suite="omb-py 1", pairs=1, sync="barrier") for n in (1, 2)]
        native = [row(bytes=n, suite="OSU 7.4", buffer=None, binding=None) for n in (1, 2)]
        chart = only(results(*ours, *native), kind="size")
        assert [line.name for line in chart.lines] == ["omb-py 1, numpy, buffer", "OSU 7.4"]

    def test_an_unknown_number_of_ranks_is_not_a_known_one(self) -> None:
        rows = [row(bytes=n, ranks=ranks) for n in (1, 2) for ranks in (2, None)]
        chart = only(results(*rows), kind="size")
        assert sorted(line.name for line in chart.lines) == ["2 ranks", "not said: ranks"]
        assert all(point.runs == 1 for line in chart.lines for point in line.points)


class TestRuns:
    @given(st.lists(st.floats(0.1, 100), min_size=2, max_size=7))
    @examples(10)
    def test_several_runs_are_a_median_with_a_band(self, latencies: list[float]) -> None:
        rows = [row(bytes=n, latency_us=value) for value in latencies for n in (1, 2)]
        chart = only(results(*rows), kind="size")
        for point in chart.lines[0].points:
            assert point.value == pytest.approx(np.median(latencies))
            assert point.spread == (min(latencies), max(latencies))
            assert point.runs == len(latencies)
        caption = words_in(draw(chart))
        assert f"Points are medians of up to {len(latencies)} runs' means" in caption
        assert "span the minimum to the maximum of the runs" in caption

    def test_runs_can_be_lines_themselves(self) -> None:
        rows = [row(bytes=n, run=run) for run in ("first", "second") for n in (1, 2)]
        chart = only(results(*rows), kind="size", lines=("run",))
        assert [line.name for line in chart.lines] == ["first", "second"]

    def test_one_run_has_the_interval_and_the_spread_of_its_samples(self) -> None:
        samples = {"sample_p50_us": 2.0, "median_low_us": 1.9, "median_high_us": 2.2}
        samples |= {"sample_min_us": 1.5, "sample_p95_us": 3.0, "sample_mean_us": 2.5}
        chart = only(results(*(row(bytes=n, **samples) for n in (1, 2))), kind="size")
        point = chart.lines[0].points[0]
        assert (point.value, point.interval, point.spread) == (2.0, (1.9, 2.2), (1.5, 3.0))
        assert chart.measure.label("µs") == "Latency (µs), median"
        assert len(chart.marks) == 2

    SAMPLES: ClassVar[dict[str, float]] = {
        "sample_p50_us": 2.0,
        "sample_min_us": 1.5,
        "sample_p95_us": 3.0,
        "sample_mean_us": 2.5,
    }

    def test_the_band_of_each_kind_of_line_is_said(self) -> None:
        one = [row(bytes=n, binding="native", **self.SAMPLES) for n in (1, 2)]
        two = [row(bytes=n, run=run, **self.SAMPLES) for n in (1, 2) for run in ("first", "second")]
        caption = words_in(draw(only(results(*one, *two), kind="size")))
        assert (
            "Bands span the minimum to the maximum of the runs; of single runs, from the smallest "
            "sample to the 95th percentile." in caption
        )
        assert "single" not in words_in(draw(only(results(*two), kind="size")))

    def test_the_value_of_a_single_run_is_within_its_band(self) -> None:
        """A mean that one preemption made long has none, and that is said."""
        rows = [row(bytes=n, latency_us=mean, **self.SAMPLES) for n, mean in ((1, 2.5), (2, 9.0))]
        chart = only(results(*rows), kind="size", statistic="mean")
        inside, outside = chart.lines[0].points
        assert inside.spread == (1.5, 3.0)
        assert np.isnan(outside.spread).all()
        assert "No band where there are no samples, or a mean is outside it" in chart.marks

    def test_samples_are_no_thin_bars_of_runs(self) -> None:
        rows = [row(bytes=n, window=w, **self.SAMPLES) for n in (1, 2) for w in (1, 2, 4, 8, 16)]
        rows += [row(bytes=1, window=1, **self.SAMPLES)]
        chart = only(results(*rows), kind="size")
        assert "Thin bars span the minimum to the maximum of the runs" in chart.marks
        drawn_bars = [
            collection
            for collection in draw(chart).axes[0].collections
            if isinstance(collection, LineCollection)
            and np.asarray(collection.get_linewidth())[0] == 0.6
        ]
        assert len(drawn_bars) == 1

    def test_whiskers_of_each_kind_of_bar_are_said(self) -> None:
        interval = {"median_low_us": 1.9, "median_high_us": 2.1, **self.SAMPLES}
        rows = [row(bytes=None, benchmark="barrier", binding="native", **interval)]
        rows += [row(bytes=None, benchmark="barrier", run=run, **interval) for run in ("a", "b")]
        chart = only(results(*rows), kind="parts")
        (mark,) = chart.marks
        assert mark.startswith("Whiskers: the minimum and maximum of the runs; of single runs, 95")


class TestAxes:
    def test_0_bytes_stand_apart_from_the_line(self) -> None:
        chart = only(results(*(row(bytes=n) for n in (0, 1, 2, 4))), kind="size")
        axes = draw(chart).axes[0]
        line, alone = axes.get_lines()
        assert alone.get_linestyle() == "None"
        assert np.max(alone.get_xdata()) < np.min(line.get_xdata()) == 1
        assert [label.get_text() for label in axes.get_xticklabels()][:2] == ["0 B", "1 B"]
        assert "//" in [text.get_text() for text in axes.texts]

    @given(st.sets(st.integers(0, 40).map(lambda n: 2**n if n else 0), min_size=1))
    def test_sizes_have_few_labels_all_within_the_data(self, sizes: set[int]) -> None:
        ticks = ticks_of_sizes(list(sizes))
        assert 1 <= len(ticks) <= 9
        assert min(sizes) <= min(ticks)
        assert max(ticks) <= max(sizes)

    def test_rates_are_decimal_unless_told_otherwise(self) -> None:
        rates = {1: 1.0, 1024: 1048.576}
        rows = [
            row(benchmark="bw", bytes=n, latency_us=None, bandwidth_MBps=rate)
            for n, rate in rates.items()
        ]
        for units, unit in (("decimal", "MB are 10⁶ bytes"), ("binary", "MiB are 2²⁰ bytes")):
            (figure,) = figures(results(*rows), "size", units=units).values()
            axes = figure.axes[0]
            assert unit in words_in(figure)
            assert np.asarray(axes.get_lines()[0].get_ydata()).tolist() == list(rates.values())
        assert quantity_text(1048.576, "MB/s", binary=True) == "1000 MiB/s"
        assert quantity_text(1024 * 1.048576, "MB/s", binary=True) == "1.00 GiB/s"

    def test_values_close_together_start_at_0(self) -> None:
        chart = only(results(row(bytes=1), row(bytes=2, latency_us=1.1)), kind="size")
        axes = draw(chart).axes[0]
        assert axes.get_yscale() == "linear"
        assert axes.get_ylim()[0] == 0


def lines_of(count: int, name: str) -> Results:
    """Lines over the usual sizes whose names are as long as ``name``."""
    sizes = [0, *(2**n for n in range(23))]
    return results(
        *(
            row(bytes=size, latency_us=1.0 + size / 1000 + line, binding=f"{name} {line}")
            for line in range(count)
            for size in sizes
        )
    )


class TestStyle:
    def test_no_two_lines_of_a_panel_share_a_colour(self) -> None:
        for theme in ("light", "dark"):
            with apply_style(Page(theme=theme)):
                assert len({line_style(number).color for number in range(MAX_LINES)}) == MAX_LINES

    @pytest.mark.parametrize("form", FORMATS)
    def test_the_same_data_makes_the_same_file_whatever_the_users_settings(self, form: str) -> None:
        chart = only(lines_of(3, "name"), kind="size")
        before = image(draw(chart), form)
        with mpl.rc_context({"font.size": 20, "svg.hashsalt": None, "lines.linewidth": 9}):
            settings_before = dict(mpl.rcParams)
            assert image(draw(chart), form) == before
            assert dict(mpl.rcParams) == settings_before

    def test_no_window_system_is_touched(self) -> None:
        program = (
            "import sys, omb_py.analysis.plots.figures as f, omb_py.analysis.table as t\n"
            f"f.figures(t.load({str(RESULTS / 'two-core-vm.csv')!r}).rows.iloc[:24])\n"
            "assert 'matplotlib.pyplot' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


class TestOverRanks:
    rows = tuple(
        row(benchmark="allreduce", bytes=size, ranks=ranks, hosts=hosts, latency_us=ranks * size)
        for ranks, hosts in ((2, 1), (4, 2), (8, 4))
        for size in (1, 2, 4, 8, 16, 32, 64)
    )

    def test_lines_are_a_few_sizes_with_the_least_and_the_greatest(self) -> None:
        chart = only(results(*self.rows), kind="ranks")
        assert chart.name == "allreduce-ranks"
        assert [line.name for line in chart.lines][:: len(chart.lines) - 1] == ["1 B", "64 B"]
        assert len(chart.lines) == 5
        assert values(chart.lines[-1]) == [(2, 128), (4, 256), (8, 512)]

    def test_sizes_can_be_named(self) -> None:
        sizes = message_sizes(iter(["2", "32"]))
        chart = only(results(*self.rows), kind="ranks", sizes=sizes)
        assert [line.name for line in chart.lines] == ["2 B", "32 B"]

    def test_hosts_that_grow_with_ranks_do_not_tear_a_line(self) -> None:
        chart = only(results(*self.rows), kind="ranks")
        assert "1 to 4 hosts" in chart.caption

    def test_one_number_of_ranks_is_no_scaling(self) -> None:
        with pytest.raises(OmbError, match="two numbers of ranks"):
            pictures(results(row(bytes=1), row(bytes=2)), Request("ranks"))

    def test_a_barrier_needs_no_sizes(self) -> None:
        rows = [row(benchmark="barrier", bytes=None, ranks=n, latency_us=n) for n in (2, 4)]
        chart = only(results(*rows), kind="auto")
        assert values(chart.lines[0]) == [(2, 2), (4, 4)]


class TestHeatMaps:
    def test_cells_are_the_values(self) -> None:
        heat = only(results(*TestOverRanks.rows), kind="heat")
        assert heat.rows == ("2 ranks", "4 ranks", "8 ranks")
        assert heat.cells[2, 6] == 8 * 64
        written = [text.get_text() for text in draw(heat).axes[0].texts]
        assert len(written) == 21
        assert "512 µs" in written

    def test_a_ratio_is_centred_at_1(self) -> None:
        rows = [
            row(bytes=size, binding=binding, latency_us=latency)
            for size in (1, 2)
            for binding, latency in (("native", 2.0), ("buffer", 3.0))
        ]
        heat = only(results(*rows), ratio=Ratio.parsed("binding=buffer/native"))
        assert heat.cells.tolist() == [[1.5, 1.5]]
        assert "Above 1, buffer is slower than native" in heat.caption
        (colors,) = draw(heat).axes[0].get_images()
        assert colors.norm(np.array([1.0])) == pytest.approx(0.5)

    def test_numbers_of_ranks_can_be_divided(self) -> None:
        heat = only(results(*TestOverRanks.rows), ratio=Ratio.parsed("ranks=8/2"))
        assert heat.rows == ("allreduce",)
        assert heat.cells.tolist() == [[4.0] * 7]

    def test_rows_that_differ_in_more_than_that_are_not_divided(self) -> None:
        rows = [row(bytes=n, binding="native", mpi_type="MPI_CHAR") for n in (1, 2)]
        rows += [row(bytes=n, binding="buffer", mpi_type="MPI_INT") for n in (1, 2)]
        with pytest.raises(OmbError, match="all other columns alike"):
            pictures(results(*rows), Request(ratio=Ratio.parsed("binding=buffer/native")))

    def test_a_higher_bandwidth_is_faster(self) -> None:
        rows = [
            row(bytes=size, binding=binding, latency_us=None, bandwidth_MBps=5.0)
            for size in (1, 2)
            for binding in ("native", "buffer")
        ]
        heat = only(results(*rows), ratio=Ratio.parsed("binding=buffer/native"))
        assert "Above 1, buffer is faster than native" in heat.caption

    @pytest.mark.parametrize(
        "text", ["binding", "binding=a", "binding=a/a", "nothing=a/b", "bytes=1/2", "ranks=x/y"]
    )
    def test_what_is_no_ratio_is_refused(self, text: str) -> None:
        with pytest.raises(UsageError):
            Ratio.parsed(text)

    def test_a_side_that_is_not_there_is_named(self) -> None:
        with pytest.raises(OmbError, match="binding=pickle and native"):
            pictures(
                results(row(bytes=1), row(bytes=2)),
                Request(ratio=Ratio.parsed("binding=pickle/native")),
            )


class TestOverhead:
    def test_the_committed_tables_make_a_panel_for_each_library(self) -> None:
        files = [RESULTS / f"overhead-{mpi}.csv" for mpi in ("openmpi", "mpich")]
        found = only(load(files), kind="overhead")
        assert isinstance(found, Overhead)
        assert [panel.title for panel in found.panels] == ["Open MPI 5.0.11", "MPICH 5.0.2"]
        assert (found.base, found.size) == ("native", 8)
        bars, _, lines, _ = draw(found).axes
        names = [label.get_text() for label in bars.get_yticklabels()]
        assert names == ["native", "buffer", "array", "persistent", "prebound"]
        assert len([line for line in lines.get_lines() if line.get_label()[0] != "_"]) == 7  # type: ignore[index]

    def test_a_difference_that_may_be_none_is_not_drawn(self) -> None:
        rows = [
            overhead(bytes=size, binding=binding, added_us=added, added_low_us=low, ratio=2.0)
            for size, added, low in ((1, 1.0, 0.9), (2, 1.0, 0.8), (4, 0.1, -0.2), (8, 1.0, 0.9))
            for binding in ("native", "buffer")
        ]
        found = only(of_rows(rows, RUN, OverheadRow), kind="overhead")
        _, axes = draw(found).axes
        (line,) = [line for line in axes.get_lines() if line.get_label() == "buffer"]
        assert np.asarray(line.get_xdata()).tolist() == [1, 2, 8]

    def test_time_that_is_saved_is_drawn_too(self) -> None:
        rows = [
            overhead(
                bytes=size, binding="buffer", added_us=-0.2, added_low_us=-0.3, added_high_us=-0.1
            )
            for size in (1, 2)
        ]
        axes = draw(only(of_rows(rows, RUN, OverheadRow), kind="overhead")).axes[1]
        (line,) = [line for line in axes.get_lines() if line.get_label() == "buffer"]
        assert np.asarray(line.get_ydata()).tolist() == [-0.2, -0.2]
        assert axes.get_yscale() == "symlog"

    def test_sizes_choose_the_bars(self) -> None:
        found = only(load(RESULTS / "overhead-mpich.csv"), kind="overhead", sizes=(1024,))
        assert found.size == 1024


def overhead(**values: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"run": "run", "benchmark": "latency", "ranks": 2, "buffer": "numpy"}
    usual |= {"base": "native", "median_us": 2.0, "base_us": 1.0, "rounds": 5, "iterations": 10}
    return {**usual, "added_high_us": 1.2, "ratio": 1.2, "thread_level": "single", **values}


class TestBars:
    def test_parts_of_the_start_add_up_to_the_total(self) -> None:
        rows = where(load(RESULTS / "families-mpich.csv").rows, ["benchmark=import_time"])
        chart = only(Results(rows, rows.iloc[:0].assign(), {}, ()), kind="parts")
        assert isinstance(chart, BarChart)
        (bar,) = chart.bars
        assert "total" not in dict(bar.parts)
        assert sum(value for _, value in bar.parts) == pytest.approx(bar.value, rel=1e-3)

    def test_numbers_without_sizes_are_bars(self) -> None:
        rows = [row(benchmark="barrier", bytes=None, binding=b) for b in ("native", "buffer")]
        chart = only(results(*rows))
        assert chart.name == "barrier-bars"
        assert [bar.name for bar in chart.bars] == ["native", "buffer"]

    def test_a_part_beside_sizes_is_a_figure_of_its_own(self) -> None:
        rows = [row(benchmark="neighbor_allgather", bytes=n) for n in (1, 2)]
        rows += [row(benchmark="neighbor_allgather", bytes=None, part="topology creation")]
        found = pictures(results(*rows), Request())
        assert set(found) == {"neighbor_allgather", "neighbor_allgather-bars-topology-creation"}


class TestValues:
    def shown(self, value: str, **columns: Any) -> tuple[Chart, float]:
        chart = only(results(*(row(bytes=n, **columns) for n in (1, 2))), kind="size", value=value)
        return chart, chart.lines[0].points[0].value

    def test_bus_bandwidth_is_in_the_units_of_bandwidths(self) -> None:
        chart, value = self.shown("busbw", busbw_GBps=2.0)
        assert (chart.measure.unit, chart.measure.words, value) == ("MB/s", "Bus bandwidth", 2000.0)

    def test_the_slowest_rank(self) -> None:
        _, value = self.shown("slowest", slowest_mean_us=5.0, slowest_p50_us=4.0)
        assert value == 4.0

    def test_overlap_is_a_percentage(self) -> None:
        chart, value = self.shown("overlap", overlap_percent=0.0)
        assert (chart.measure.unit, value) == ("%", 0.0)
        assert draw(chart).axes[0].get_ylim() == (0, 105)

    def test_a_rate_of_messages(self) -> None:
        chart, value = self.shown(
            "rate", latency_us=None, bandwidth_MBps=1.0, messages_per_s=1e6, benchmark="mbw_mr"
        )
        assert (chart.measure.unit, value) == ("msg/s", 1e6)

    def test_a_value_that_no_row_has_is_said(self) -> None:
        with pytest.raises(UsageError, match="no row has bus bandwidth"):
            self.shown("busbw")
        with pytest.raises(UsageError, match="choose from auto, latency"):
            self.shown("speed")


class TestTerminal:
    def drawings(self) -> Iterator[str]:
        for found in (
            only(lines_of(5, "name"), kind="size"),
            only(results(*TestOverRanks.rows), kind="ranks"),
            only(results(*TestOverRanks.rows), kind="heat"),
            only(results(row(bytes=None, benchmark="barrier"))),
            only(load(RESULTS / "overhead-mpich.csv")),
        ):
            yield terminal_plot.text(found, 80, 20)

    def test_text_fits_and_has_no_colours(self) -> None:
        for text in self.drawings():
            assert "\x1b" not in text
            assert max(map(len, text.splitlines())) <= 80

    def test_lines_are_named_and_sizes_labelled(self) -> None:
        text = next(self.drawings())
        assert all(f"name {line}" in text for line in range(5))
        assert "0 B" in text
        assert "MiB" in text

    def test_colours_if_wanted(self) -> None:
        assert "\x1b[" in terminal_plot.text(only(lines_of(2, "n"), kind="size"), 80, 20, True)

    def test_nothing_goes_to_a_terminal_that_is_none(self) -> None:
        assert terminal_plot.terminal_size() == (80, 24)
        assert not terminal_plot.uses_color()


class TestRequests:
    def test_what_was_loaded_and_its_rows_make_the_same_figures(self) -> None:
        found = results(row(bytes=1), row(bytes=2))
        assert set(figures(found)) == set(figures(found.rows)) == {"latency"}
        assert set(figures(load(RESULTS / "overhead-mpich.csv").overhead)) == {"latency-overhead"}

    def test_a_table_may_lack_columns(self) -> None:
        few = results(row(bytes=1), row(bytes=2)).rows[["benchmark", "bytes", "latency_us"]]
        assert set(figures(few)) == {"latency"}

    @pytest.mark.parametrize(
        "options",
        [
            {"kind": "pie"},
            {"units": "metric"},
            {"lines": ["nothing"]},
            {"value": "nothing"},
            {"sizes": [3]},
            {"sizes": ["large"]},
            {"ratio": "binding=a/b", "kind": "size"},
        ],
    )
    def test_options_that_mean_nothing_are_refused(self, options: dict[str, Any]) -> None:
        rows = results(row(bytes=1), row(bytes=2))
        with pytest.raises(UsageError):
            figures(rows, **options)

    def test_a_table_without_rows_has_nothing_to_draw(self) -> None:
        with pytest.raises(OmbError, match="nothing to draw"):
            figures(results().rows)


def test_every_benchmark_of_the_committed_results_can_be_drawn() -> None:
    found = load([RESULTS / "families-mpich.csv", RESULTS / "families-openmpi.csv"])
    every = pictures(found, Request())
    benchmarks = set(found.rows["benchmark"])
    assert {name.split("-")[0] for name in every} == benchmarks
    for name in ("import_time-parts", "barrier-bars", "put_latency", "bw_fan_in"):
        assert isinstance(draw(every[name]), Figure)


def test_drawing_leaves_the_rows_as_they_are() -> None:
    found = load(RESULTS / "two-core-vm.csv")
    before = found.rows.copy()
    assert pictures(found, Request("heat", lines=("mpi",), value="rate"))
    pd.testing.assert_frame_equal(found.rows, before)
