"""Charts show the numbers of the rows, and say what they are."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis import speedup
from omb_py.analysis.charts import terminal
from omb_py.analysis.charts.bars import application_charts
from omb_py.analysis.charts.figures import by_name, charts, figures
from omb_py.analysis.charts.groups import Request
from omb_py.analysis.charts.spec import Chart
from omb_py.analysis.table import Results, load, of_rows
from omb_py.core.errors import OmbError, UsageError
from tests import RESULTS
from tests.helpers.properties import examples
from tests.helpers.refusals import missing, refuses

RUN = {"run": {"omb_py": "1", "mpi_library": "MPICH Version: 5.0.2", "hosts": "a=8"}}
SAMPLES = {"sample_p50_us": 2.0, "sample_min_us": 1.5, "sample_p95_us": 3.0, "sample_mean_us": 2.5}
INTERVAL = {"median_low_us": 1.9, "median_high_us": 2.2}


def row(**values: Any) -> dict[str, Any]:
    """A row of 8 bytes between two ranks, but for ``values``."""
    usual = {"run": "run", "benchmark": "latency", "bytes": 8, "ranks": 2, "latency_us": 1.0}
    named = {"buffer": "numpy", "binding": "buffer", "iterations": 10, "warmup": 1}
    return {**usual, **named, **values}


def rate(**values: Any) -> dict[str, Any]:
    return row(benchmark="bw", latency_us=None, **{"bandwidth_MBps": 5.0, **values})


def results(*rows: dict[str, Any]) -> Results:
    return of_rows(list(rows), RUN)


def only(found: Results, kind: str = "auto", sizes: tuple[int, ...] = (), **choice: Any) -> Chart:
    """The one chart there is."""
    (chart,) = charts(found, Request(kind, sizes=sizes, **choice)).values()
    return chart


def values(chart: Chart) -> dict[str, list[tuple[float, float]]]:
    """The points of each line."""
    return {
        str(name): list(zip(part["x"], part["value"], strict=True))
        for name, part in chart.data.groupby("line", sort=False)
    }


def measure(chart: Chart) -> Any:
    assert chart.along is not None
    return chart.along[1]


class TestOverSizes:
    @given(
        st.dictionaries(st.sampled_from([0, 1, 8, 1000, 1 << 20]), st.floats(1e-3, 1e6), min_size=2)
    )
    @examples(10)
    def test_a_line_has_the_numbers_of_the_rows(self, latencies: dict[int, float]) -> None:
        rows = [row(bytes=size, latency_us=value) for size, value in latencies.items()]
        assert list(values(only(results(*rows), "size")).values()) == [sorted(latencies.items())]

    def test_columns_that_differ_tell_lines_apart(self) -> None:
        both = [(size, binding) for binding in ("pickle", "native") for size in (1, 2)]
        rows = [row(bytes=n, binding=binding, mpi_type="MPI_CHAR") for n, binding in both]
        chart = only(results(*rows), "size")
        assert list(values(chart)) == ["native", "pickle"]
        assert "MPI_CHAR" in chart.caption[0]
        assert "binding" not in chart.caption[0]

    def test_a_binding_has_one_style_in_every_figure(self) -> None:
        styles = []
        for bindings in (("buffer", "pickle"), ("native", "buffer", "pickle")):
            rows = [row(bytes=n, binding=binding) for n in (1, 2) for binding in bindings]
            data = only(results(*rows), "size").data
            styles.append(data.groupby("line")["style"].first()[["buffer", "pickle"]].tolist())
        assert styles[0] == styles[1]

    def test_columns_that_are_not_named_make_figures(self) -> None:
        rows = [
            row(bytes=size, binding=binding, ranks=ranks)
            for binding in ("native", "buffer")
            for ranks in (2, 4)
            for size in (1, 2)
        ]
        found = charts(results(*rows), Request("size", ("binding",)))
        assert set(found) == {"latency-2-ranks", "latency-4-ranks"}
        assert all(len(values(chart)) == 2 for chart in found.values())

    def test_too_many_lines_become_panels(self) -> None:
        rows = [
            row(bytes=size, binding=binding, window=2**power)
            for binding in ("native", "buffer")
            for power in range(8)
            for size in (1, 2)
        ]
        data = only(results(*rows), "size").data
        assert data.groupby("panel")["title"].first().tolist() == ["native", "buffer"]
        assert data["line"].unique()[:2].tolist() == ["window 1", "window 2"]

    def test_what_a_suite_does_not_say_is_no_difference(self) -> None:
        ours = [row(bytes=n, suite="omb-py 1", pairs=1, sync="barrier") for n in (1, 2)]
        native = [row(bytes=n, suite="OSU 7.4", buffer=None, binding=None) for n in (1, 2)]
        chart = only(results(*ours, *native), "size")
        assert list(values(chart)) == ["omb-py 1, numpy, buffer", "OSU 7.4"]

    def test_an_unknown_number_of_ranks_is_not_a_known_one(self) -> None:
        rows = [row(bytes=n, ranks=ranks) for n in (1, 2) for ranks in (2, None)]
        chart = only(results(*rows), "size")
        assert sorted(values(chart)) == ["2 ranks", "not said: ranks"]
        assert set(chart.data["runs"]) == {1}

    @pytest.mark.parametrize(
        ("column", "value", "names"),
        [
            ("segment", 4096, ["no segments", "segments of 4 KiB"]),
            ("per_rank", True, ["not per rank", "per rank"]),
        ],
    )
    def test_a_line_without_the_option_says_so(
        self, column: str, value: object, names: list[str]
    ) -> None:
        rows = [row(bytes=n) | {column: one} for n in (1, 2) for one in (value, None)]
        assert sorted(values(only(results(*rows), "size"))) == names

    def test_a_caption_has_no_algorithm_that_some_lines_lack(self) -> None:
        rows = [
            row(bytes=n, latency_us=1) | {"algorithm": one, "segment": size}
            for n in (1, 2)
            for one, size in ((None, None), ("pipelined_chain", 8), ("pipelined_chain", 16))
        ]
        assert "chain" not in only(results(*rows), "size").caption


class TestHosts:
    def test_slow_host_is_beyond_the_limit_and_named(self) -> None:
        found = only(load(RESULTS / "hosts" / "gate.csv"), "hosts")
        beyond = found.data[found.data["beyond"]]
        assert [*beyond["host"]] == ["node7", "node7"]
        assert [*beyond["point"]] == ["latency 8 B in pairs", "latency 4 KiB in pairs"]
        assert all(beyond["ratio"] > beyond["limit"])
        assert "Slow: node7" in found.caption
        assert '"text": "node7"' in json.dumps(found.specification())

    def test_two_hosts_are_refused(self) -> None:
        with refuses(OmbError, "fewer than three hosts"):
            charts(results(row(), row(bytes=16)), Request("hosts"))


class TestRuns:
    @given(st.lists(st.floats(0.1, 100), min_size=2, max_size=7))
    @examples(10)
    def test_several_runs_are_a_median_with_a_band(self, latencies: list[float]) -> None:
        rows = [row(bytes=n, latency_us=value) for value in latencies for n in (1, 2, 4, 8)]
        chart = only(results(*rows), "size")
        for point in chart.data.itertuples():
            assert point.value == pytest.approx(np.median(latencies))
            assert (point.spread_low, point.spread_high) == (min(latencies), max(latencies))
            assert point.runs == len(latencies)
        assert f"Medians of up to {len(latencies)} runs' means" in chart.caption
        assert not missing("Bands: minimum maximum of the runs", chart.caption)

    def test_one_run_has_the_interval_and_the_spread_of_its_samples(self) -> None:
        chart = only(results(*(row(bytes=n, **SAMPLES, **INTERVAL) for n in (1, 2))), "size")
        ends = ["value", "low", "high", "spread_low", "spread_high"]
        assert chart.data.iloc[0][ends].tolist() == [2.0, 1.9, 2.2, 1.5, 3.0]
        assert measure(chart).label("µs") == "Latency (µs), median"

    def test_the_band_of_each_kind_of_line_is_said(self) -> None:
        one = [row(bytes=n, binding="native", **SAMPLES) for n in (1, 2)]
        two = [row(bytes=n, run=run, **SAMPLES) for n in (1, 2) for run in ("first", "second")]
        words = only(results(*one, *two), "size").words
        assert not missing("minimum maximum runs; single smallest 95th percentile", words)
        assert "single" not in only(results(*two), "size").words


class TestOverRanks:
    rows = tuple(
        row(benchmark="allreduce", bytes=size, ranks=ranks, hosts=hosts, latency_us=ranks * size)
        for ranks, hosts in ((2, 1), (4, 2), (8, 4))
        for size in (1, 2, 4, 8, 16, 32, 64)
    )

    def test_lines_are_a_few_sizes_with_the_least_and_the_greatest(self) -> None:
        chart = only(results(*self.rows), "ranks")
        names = list(values(chart))
        assert (chart.name, names[0], names[-1]) == ("allreduce-ranks", "1 B", "64 B")
        assert len(names) == 5
        assert values(chart)["64 B"] == [(2, 128), (4, 256), (8, 512)]

    def test_hosts_that_grow_with_ranks_do_not_tear_a_line(self) -> None:
        assert "1 to 4 hosts" in only(results(*self.rows), "ranks").caption

    @pytest.mark.slow
    def test_speed_ups_are_beside_the_ideal(self) -> None:
        runs, _ = speedup.load([RESULTS / "applications-mpich.csv"])
        found = speedup.speedups(runs)
        kmeans = found[found["application"] == "kmeans"]
        chart = by_name(application_charts(found))["kmeans-speedup"]
        assert chart.data["value"].tolist() == kmeans["speedup"].dropna().tolist()
        rows = [row for rows in chart.specification()["datasets"].values() for row in rows]
        ideal = [
            (row["x"], row["value"]) for row in rows if row.get("line") == "ideal" and "x" in row
        ]
        assert ideal == [(ranks, ranks) for ranks in (1, 2, 4, 8)]
        with refuses(UsageError, "no column 'nosuch' choose from application"):
            list(application_charts(found, chosen=["nosuch"]))
        with refuses(UsageError, "no value 'p99' choose from speedup, sequential_speedup"):
            list(application_charts(found, value="p99"))
        together = by_name(application_charts(found, "speedup", ["application"]))
        assert together["applications-speedup"].data["line"].nunique() == 5
        over = by_name(application_charts(found, value="sequential_speedup"))["kmeans-speedup"]
        assert over.data["value"].tolist() == kmeans["sequential_speedup"].tolist()
        phases = by_name(application_charts(found, "phases"))["kmeans-phases"]
        assert chart.data[chart.data["crowded"]]["x"].tolist() == [4, 8]
        assert not missing("Hollow marks: more threads than cores", chart.words)
        bars = phases.data.groupby("line")["end"].max()
        assert bars.tolist() == [pytest.approx(100)] * 4


def encodings(view: Any, channel: str) -> list[dict[str, Any]]:
    """What all views of a specification say of a channel."""
    if isinstance(view, list):
        return [found for part in view for found in encodings(part, channel)]
    if not isinstance(view, dict):
        return []
    own = view.get("encoding", {}).get(channel)
    below = [view.get(name) for name in ("layer", "concat", "vconcat", "hconcat")]
    return [*([own] if own else []), *(one for part in below for one in encodings(part, channel))]


class TestOverhead:
    def test_the_committed_tables_make_a_panel_for_each_library(self) -> None:
        files = [RESULTS / f"overhead-{mpi}.csv" for mpi in ("openmpi", "mpich")]
        data = only(load(files), "overhead").data
        assert list(dict.fromkeys(data["title"])) == ["Open MPI 5.0.11", "MPICH 5.0.2"]
        bars = data[data["bar"] & (data["panel"] == 0)]
        assert set(bars["x"]) == {8}
        assert bars["line"].tolist() == ["buffer", "array", "persistent", "prebound"]

    def test_a_difference_that_may_be_none_is_not_drawn(self) -> None:
        rows = [
            overhead(bytes=size, added_us=added, added_low_us=low, ratio=2.0)
            for size, added, low in ((1, 1.0, 0.9), (2, 1.0, 0.8), (4, 0.1, -0.2), (8, 1.0, 0.9))
        ]
        shown = points_of(only(of_rows(rows, RUN), "overhead"), "buffer")
        assert [point["x"] for point in shown] == [1, 2, 8]

    def test_time_that_is_saved_is_drawn_too(self) -> None:
        saved = {"added_us": -0.2, "added_low_us": -0.3, "added_high_us": -0.1}
        rows = [overhead(bytes=size, **saved) for size in (1, 2)]
        chart = only(of_rows(rows, RUN), "overhead")
        assert [point["value"] for point in points_of(chart, "buffer")] == [-0.2, -0.2]
        assert "'symlog'" in str(chart.specification())

    def test_launches_are_drawn_with_the_interval_over_them(self) -> None:
        added = [0.4, 0.41, 0.42, 0.43, 0.44, 0.45, 0.46, 0.47, 1.9]  # the ends are ranks 2 and 8
        rows = [
            overhead(run=f"run{n}", bytes=size, added_us=one, added_low_us=one, added_high_us=one)
            for size in (1, 2)
            for n, one in enumerate(added)
        ]
        chart = only(of_rows(rows, RUN), "overhead")
        for point in points_of(chart, "buffer"):
            drawn = (point["value"], point["spread_low"], point["spread_high"])
            assert drawn == (0.44, 0.41, 0.47)
        assert "9 launches" in chart.words
        assert "95 % intervals of the difference over the launches" in chart.words

    def test_few_launches_are_drawn_with_their_range(self) -> None:
        rows = [
            overhead(run=f"run{n}", bytes=size, added_us=one, added_low_us=one)
            for size in (1, 2)
            for n, one in enumerate([0.4, 0.5, 0.6])
        ]
        chart = only(of_rows(rows, RUN), "overhead")
        for point in points_of(chart, "buffer"):
            assert (point["spread_low"], point["spread_high"]) == (0.4, 0.6)
        assert "fewer than 6 the minimum to the maximum" in chart.words

    def test_line_ends_where_no_difference_is_known(self) -> None:
        rows = [
            overhead(bytes=1 << power, added_us=1.0, added_low_us=0.9 if power != 3 else -0.1)
            for power in range(7)
        ]
        shown = points_of(only(of_rows(rows, RUN), "overhead"), "buffer")
        assert [point["x"] for point in shown] == [1, 2, 4, 16, 32, 64]
        assert shown[2]["piece"] != shown[3]["piece"] == shown[4]["piece"]

    def test_libraries_side_by_side_have_one_axis_of_times(self) -> None:
        files = [RESULTS / f"overhead-{mpi}.csv" for mpi in ("openmpi", "mpich")]
        found = only(load(files), "overhead")
        assert "+325 ns (3.31\N{MULTIPLICATION SIGN})" in set(found.data["text"])
        bars = [one for one in encodings(found.specification(), "x") if one["field"] == "start"]
        axes = [(one["scale"]["domain"], one["axis"]["title"]) for one in bars]
        assert len(axes) == 2
        assert axes[0] == axes[1]

    def test_sizes_choose_the_bars(self) -> None:
        found = only(load(RESULTS / "overhead-mpich.csv"), "overhead", (1024,))
        assert set(found.data[found.data["bar"]]["x"]) == {1024}


def points_of(chart: Chart, line: str) -> list[dict[str, Any]]:
    """The points of a line as the specification has them."""
    for rows in chart.specification()["datasets"].values():
        if found := [one for one in rows if one.get("line") == line and "spread_low" in one]:
            return found
    return []


def overhead(**values: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"run": "run", "benchmark": "latency", "ranks": 2, "buffer": "numpy"}
    usual |= {"base": "native", "median_us": 2.0, "base_us": 1.0, "rounds": 5, "iterations": 10}
    usual |= {"binding": "buffer", "added_high_us": 1.2, "ratio": 1.2, "thread_level": "single"}
    return {**usual, **values}


class TestBars:
    @pytest.mark.slow
    def test_parts_of_the_start_add_up_to_the_total(self) -> None:
        every = charts(load(RESULTS / "families-mpich.csv"), Request("parts"))
        data = every["import_time-parts"].data
        assert "total" not in set(data["part"])
        assert data["start"].tolist()[1:] == data["end"].tolist()[:-1]
        assert data["end"].iloc[-1] == pytest.approx(359e3, rel=0.01)
        assert data["text"].iloc[-1] == "359 ms"

    def test_numbers_without_sizes_are_bars(self) -> None:
        rows = [row(benchmark="barrier", bytes=None, binding=b) for b in ("native", "buffer")]
        chart = only(results(*rows))
        assert chart.name == "barrier-bars"
        assert chart.data["line"].tolist() == ["native", "buffer"]

    def test_bars_that_a_linear_axis_would_not_show_are_dots(self) -> None:
        values = {"native": 13.0, "buffer": 15.0, "pickle": 3100.0}
        usual = {"benchmark": "barrier", "bytes": None}
        rows = [row(binding=name, latency_us=value, **usual) for name, value in values.items()]
        found = only(results(*rows), "parts").specification()
        assert encodings(found, "x")[0]["scale"]["type"] == "log"
        assert "'bar'" not in str(found)

    def test_a_part_beside_sizes_is_a_figure_of_its_own(self) -> None:
        rows = [row(benchmark="neighbor_allgather", bytes=n) for n in (1, 2)]
        rows += [row(benchmark="neighbor_allgather", bytes=None, part="topology creation")]
        names = {"neighbor_allgather", "neighbor_allgather-bars-topology-creation"}
        assert set(charts(results(*rows), Request())) == names


class TestValues:
    def shown(self, value: str, **columns: Any) -> tuple[Any, float]:
        rows = [row(bytes=n, **columns) for n in (1, 2)]
        chart = only(results(*rows), "size", value=value)
        return measure(chart), chart.data["value"].iloc[0]

    CASES: ClassVar[dict[str, tuple[dict[str, Any], str, float]]] = {
        "busbw": ({"busbw_GBps": 2.0}, "MB/s", 2000.0),
        "slowest": ({"slowest_mean_us": 5.0, "slowest_p50_us": 4.0}, "us", 4.0),
        "overlap": ({"overlap_percent": 0.0}, "%", 0.0),
        "rate": ({"latency_us": None, "messages_per_s": 1e6}, "msg/s", 1e6),
    }

    @pytest.mark.parametrize("value", CASES)
    def test_another_value_has_its_own_unit(self, value: str) -> None:
        columns, unit, number = self.CASES[value]
        shown, found = self.shown(value, **columns)
        assert (shown.unit, found) == (unit, number)

    @pytest.mark.parametrize(
        ("value", "words"), [("busbw", "no row bus bandwidth"), ("speed", "from auto, latency")]
    )
    def test_value_that_no_row_has_refused(self, value: str, words: str) -> None:
        with refuses(UsageError, words):
            self.shown(value)


class TestTerminal:
    rows = tuple(row(bytes=n, binding=b) for n in (0, 1, 1 << 20) for b in ("native", "buffer"))

    def test_text_fits_names_lines_and_has_no_colours(self) -> None:
        for rows, kind in ((self.rows, "size"), (TestOverRanks.rows, "ranks")):
            text = terminal.text(only(results(*rows), kind), 80, 20)
            assert "\x1b" not in text
            assert max(map(len, text.splitlines())) <= 80
        text = terminal.text(only(results(*self.rows), "size"), 80, 20)
        names = {"● native", "■ buffer", "latency: Latency, mean over message size"}
        assert names <= set(text.splitlines())
        assert "0 B" in text
        assert "1 MiB" in text


class TestRequests:
    @pytest.mark.long
    def test_what_was_loaded_and_its_rows_make_the_same_figures(self) -> None:
        found = results(row(bytes=1), row(bytes=2))
        assert set(figures(found)) == set(figures(found.rows)) == {"latency"}
        assert set(figures(load(RESULTS / "overhead-mpich.csv").overhead)) == {"latency-overhead"}

    @pytest.mark.parametrize(
        "options",
        [
            {"kind": "pie"},
            {"lines": ["nothing"]},
            {"value": "nothing"},
            {"sizes": [3]},
            {"sizes": ["large"]},
            {"kind": "ranks"},
            {"kind": "overhead"},
        ],
    )
    def test_options_that_mean_nothing_are_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(OmbError):
            figures(results(row(bytes=1), row(bytes=2)), **options)

    @pytest.mark.long
    def test_every_benchmark_of_the_committed_results_is_drawn(self) -> None:
        found = load([RESULTS / "families-mpich.csv", RESULTS / "families-openmpi.csv"])
        every = charts(found, Request())
        assert {name.split("-")[0] for name in every} == set(found.rows["benchmark"])
        for name in ("import_time-parts", "barrier-bars", "put_latency", "bw_fan_in"):
            assert every[name].specification()["vconcat"]

    def test_drawing_leaves_the_rows_as_they_are(self) -> None:
        found = load(RESULTS / "two-core-vm.csv")
        before = found.rows.copy()
        assert charts(found, Request("size", ("mpi",), value="rate"))
        pd.testing.assert_frame_equal(found.rows, before)
