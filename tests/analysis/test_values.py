"""The number of a row: never another quantity, as exact as the file has it, never one of no use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.charts.figures import charts
from omb_py.analysis.charts.groups import Request
from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.compare.summary import conclusion, sentences
from omb_py.analysis.table import load, of_rows
from omb_py.analysis.values import value_column
from omb_py.analysis.verdict import factor, times
from omb_py.cli.compare import command as compare_command
from tests.helpers.properties import examples
from tests.helpers.tables import comparison_text

ROW = {
    "run": "r.txt:1",
    "benchmark": "mbw_mr",
    "ranks": 2,
    "binding": "C",
    "mpi": "MPICH",
    "hosts": 1,
}


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    """Rows as `load` gives them."""
    return of_rows([ROW | row for row in rows], {}).rows


def printed(size: int, rate: float) -> dict[str, Any]:
    """What native OMB prints of messages of a size: two decimals of each number."""
    bandwidth = float(f"{size * rate / 1e6:.2f}")
    return {"bytes": size, "bandwidth_MBps": bandwidth, "messages_per_s": float(f"{rate:.2f}")}


def latencies(path: Path, values: dict[int, float], run: str) -> Path:
    """Our CSV of latencies."""
    lines = [f"# run: {run}", "# mpi_library: MPICH Version: 5.0.2", "# hosts: node1:2"]
    lines += ["run,benchmark,bytes,ranks,buffer,binding,latency_us"]
    lines += [f"{run},latency,{size},2,numpy,buffer,{value}" for size, value in values.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


class TestBandwidthsPrintedWithTwoDecimals:
    @given(
        st.lists(st.tuples(st.sampled_from([1, 2, 8, 1000, 1 << 20, 1 << 22]), st.floats(1, 1e7)))
    )
    @examples(50)
    def test_stay_bandwidths_whatever_was_printed(self, rows: list[tuple[int, float]]) -> None:
        values = value_column(table({"bytes": 1}, *(printed(size, rate) for size, rate in rows)))
        assert len(values) == len(rows)
        assert set(values["unit"]) <= {"MB/s"}

    @pytest.mark.slow
    @given(st.sampled_from([1, 2, 8, 1000, 100_000]), st.floats(100, 1e7))
    @examples(100)
    def test_are_bytes_times_messages_if_more_exact(self, size: int, rate: float) -> None:
        (value,) = value_column(table(printed(size, rate)))["value"]
        assert value == pytest.approx(size * rate / 1e6, rel=1e-3)

    def test_stay_as_printed_if_the_message_rate_contradicts_them(self) -> None:
        row = {"bytes": 8, "bandwidth_MBps": 0.05, "messages_per_s": 1000.0}
        assert list(value_column(table(row))["value"]) == [0.05]

    @pytest.mark.slow
    def test_are_compared_as_bandwidths(self) -> None:
        points = compare(table(printed(1, 1000.0)), table(printed(1, 500.0)))
        assert list(points["ratio"]) == [pytest.approx(0.5)]
        assert conclusion(points, 3.0).reasons == ()


class TestRatiosOfNumbersThatWereRounded:
    def test_have_no_more_digits_than_they_tell(self) -> None:
        points = compare(
            table({"bytes": 1, "bandwidth_MBps": 0.01}), table({"bytes": 1, "bandwidth_MBps": 0.02})
        )
        assert points["rounding"].iloc[0] == pytest.approx(1.5)  # 0.8 to 5 times
        assert "(mean slowdown 0.5)" in sentences(points)["other"]
        assert " 2 " in comparison_text(points, "base")
        assert "2.000" not in comparison_text(points, "base") + sentences(points)["other"]

    @pytest.mark.slow
    def test_fail_no_guard_by_their_rounding_alone(self) -> None:
        base, near, far = (table({"bytes": 1, "latency_us": value}) for value in (0.01, 0.02, 0.09))
        assert conclusion(compare(base, near, launch_spread=0.03), 1.05).reasons == ()
        assert conclusion(compare(base, far, launch_spread=0.03), 1.05).reasons != ()

    def test_of_repeated_runs_know_of_it_in_their_interval(self) -> None:
        base, other = (
            table(*({"run": f"r.txt:{i}", "bytes": 1, "latency_us": value} for i in range(5)))
            for value in (0.01, 0.02)
        )
        (row,) = compare(base, other).to_dict("records")
        assert row["ratio_low"] < 1 < 2 < row["ratio_high"]
        assert row["verdict"] == "unclear"

    @given(st.floats(0.01, 100), st.floats(0, 3))
    @examples(100)
    def test_are_equal_if_no_digit_differs(self, slowdown: float, rounding: float) -> None:
        said = times(slowdown, rounding)
        shown = factor(max(slowdown, 1 / slowdown), rounding)
        assert (said == "equal") is (float(shown.rstrip("x")) == 1)


class TestNumbersThatAreNoTime:
    BAD = (0.0, -0.25)

    @pytest.mark.parametrize("bad", BAD)
    def test_are_named_by_file_and_line(self, tmp_path: Path, bad: float) -> None:
        path = latencies(tmp_path / "a.csv", {8: bad, 16: 1.5}, "A")
        (problem,) = load(path).problems
        assert (Path(problem.path).name, problem.line) == ("a.csv", 5)
        assert f"a latency of {bad:g} us" in problem.text

    @pytest.mark.slow
    @pytest.mark.parametrize("bad", BAD)
    def test_are_no_points_that_a_side_does_not_have(self, tmp_path: Path, bad: float) -> None:
        good = latencies(tmp_path / "good.csv", {8: 1.0, 16: 1.5}, "A")
        wrong = latencies(tmp_path / "wrong.csv", {8: bad, 16: 1.5}, "B")
        assert list(compare(wrong, good)["verdict"]) == ["no value in base", "unclear"]
        assert list(compare(good, wrong)["verdict"]) == ["no value in other", "unclear"]

    @pytest.mark.slow
    def test_are_said_in_every_form_of_a_comparison(self, tmp_path: Path) -> None:
        good = latencies(tmp_path / "good.csv", {8: 1.0, 16: 1.5}, "A")
        wrong = latencies(tmp_path / "wrong.csv", {8: 0.0, 16: 1.5}, "B")
        for files in ((good, wrong), (wrong, good)):
            result = CliRunner().invoke(compare_command, [*map(str, files), "--fail-above", "5%"])
            assert "wrong.csv:5: a latency of 0 us" in result.stderr
            assert "Without a number above 0 in wrong: latency" in result.stdout
            assert "only in" not in result.stdout.lower()
            assert result.exit_code == (4 if files[1] is wrong else 7)
        points = compare(good, wrong)
        assert "1 no value in other" in sentences(points)["wrong"]
        assert [
            reason
            for reason in conclusion(points, 1.05).reasons
            if "no number above 0, or wrong data at 8 B" in reason
        ]


def test_file_without_placement_is_on_the_host_line(tmp_path: Path) -> None:
    rows = "20260101T000000Z-{run},latency,{size},2,numpy,buffer,{value}"
    head = "run,benchmark,bytes,ranks,buffer,binding,latency_us"
    older, newer = tmp_path / "older.csv", tmp_path / "newer.csv"
    lines = [rows.format(run="a", size=8, value=1.0), rows.format(run="a", size=16, value=1.5)]
    older.write_text("\n".join([head, *lines]) + "\n")
    lines = [rows.format(run="b", size=8, value=1.1), rows.format(run="b", size=16, value=1.6)]
    newer.write_text("\n".join([f"{head},placement", *(f"{line},H" for line in lines)]) + "\n")
    rows_of_both = load([older, newer], {"mpi": "MPICH", "hosts": 1})
    (chart,) = charts(rows_of_both, Request("size")).values()
    assert chart.data["line"].nunique() == 1
    assert chart.data["runs"].tolist() == [2, 2]


def test_groups_and_congestion_compare_with_their_kind() -> None:
    def rows(*latencies: float) -> pd.DataFrame:
        told = [
            {"split": "2", "group": "0-1"},
            {"split": "2", "group": "2-3"},
            {"split": "mod:2", "group": "0+2", "congestor": "none"},
            {"split": "mod:2", "group": "0+2", "congestor": "bcast:8"},
        ]
        known = {"benchmark": "allreduce", "bytes": 8}
        both = zip(told, latencies, strict=True)
        return table(*(known | one | {"latency_us": value} for one, value in both))

    points = compare(rows(1.0, 2.0, 3.0, 4.0), rows(1.5, 3.0, 4.5, 6.0))
    assert sorted(points["base"]) == [1.0, 2.0, 3.0, 4.0]
    assert list(points["ratio"]) == [1.5] * 4
