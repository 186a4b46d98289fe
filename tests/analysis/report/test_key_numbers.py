"""Which numbers stand at the head of the page, and what is said of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.analysis.report.key_numbers import KeyNumber, key_numbers
from omb_py.analysis.values import value_column

from .test_anomalies import read, row


def numbers(folder: Path, *rows: dict[str, Any]) -> list[KeyNumber]:
    """The key numbers of rows."""
    return key_numbers(value_column(read(folder, list(rows)).rows))


def bandwidth(nbytes: int, megabytes: float, **columns: Any) -> dict[str, Any]:
    """A row of a benchmark of bandwidth, whose samples are times."""
    time = nbytes / megabytes
    rates = {"bandwidth_MBps": megabytes, "messages_per_s": 1e6 * megabytes / nbytes}
    own = row(nbytes, time, **{"benchmark": "bw", "sample_mean_us": time} | rates | columns)
    return own | {name: None for name in own if name.startswith("latency")}


def test_they_are_those_that_people_know_in_this_order(tmp_path: Path) -> None:
    found = numbers(
        tmp_path,
        row(8, 3.0),
        bandwidth(8, 80.0, benchmark="mbw_mr"),
        bandwidth(4 << 20, 12_000.0),
        bandwidth(8, 16.0),
        row(8, 1.5, benchmark="latency"),
        row(8, 1.0, benchmark="put_latency"),
    )
    assert [(number.title, number.value) for number in found] == [
        ("Latency at 8 B, 4 ranks", "1.50 µs"),
        ("Bandwidth at 4 MiB, 4 ranks", "12.0 GB/s"),
        ("Message rate at 8 B, 4 ranks", "10.0 M msg/s"),
        ("Allreduce at 8 B, 4 ranks", "3.00 µs"),
    ]


def test_a_benchmark_that_was_not_measured_has_none(tmp_path: Path) -> None:
    assert [number.title for number in numbers(tmp_path, row(8))] == ["Allreduce at 8 B, 4 ranks"]


def test_results_without_any_of_them_show_what_they_have(tmp_path: Path) -> None:
    (number,) = numbers(tmp_path, row(None, 40.0, benchmark="barrier"))
    assert (number.title, number.value, number.nearest) == ("barrier, 4 ranks", "40.0 µs", "")


def test_the_nearest_size_stands_in_for_one_that_was_not_measured(tmp_path: Path) -> None:
    (number,) = numbers(tmp_path, row(0), row(1), row(16, 2.5), row(1024))
    assert (number.title, number.nearest) == ("Allreduce at 16 B, 4 ranks", "8 B was not measured")


@pytest.mark.parametrize(
    ("times", "spread"),
    [((2.0,), "95 % interval 1.98 to 2.02 µs"), ((2.0, 2.5, 2.2), "3 runs: 2.00 to 2.50 µs")],
)
def test_each_says_how_well_it_is_known(
    tmp_path: Path, times: tuple[float, ...], spread: str
) -> None:
    rows = [row(8, time, run=f"20261121T09000{place}Z-0") for place, time in enumerate(times)]
    (number,) = numbers(tmp_path, *rows)
    assert number.spread == spread


def test_each_card_has_its_best_line_with_its_name(tmp_path: Path) -> None:
    latency, rate = numbers(
        tmp_path,
        row(8, 1.0, benchmark="latency", binding="native"),
        *(row(8, 2.0, benchmark=name) for name in ("latency", "barrier", "bcast")),
        bandwidth(4 << 20, 9_000.0),
        bandwidth(4 << 20, 6_000.0, binding="native"),
    )
    assert (latency.value, latency.how, latency.place) == ("1.00 µs", "native", "best of 2 lines")
    assert (rate.value, rate.how, rate.place) == ("9.00 GB/s", "buffer", "best of 2 lines")


@pytest.mark.parametrize("benchmark", ["latency", "bw"])
def test_the_longest_bar_is_the_best_line(tmp_path: Path, benchmark: str) -> None:
    def of(speed: float, binding: str) -> dict[str, Any]:
        if benchmark == "bw":
            return bandwidth(4 << 20, speed, binding=binding)
        return row(8, 8 / speed, benchmark=benchmark, binding=binding)

    (number,) = numbers(tmp_path, of(2.0, "native"), of(4.0, "buffer"), of(1.0, "pkl5"))
    assert [(line.name, line.length) for line in number.lines] == [
        ("buffer", 100),
        ("native", 50),
        ("pkl5", 25),
    ]


def test_lines_of_unlike_experiments_have_no_place_among_each_other(tmp_path: Path) -> None:
    (number,) = numbers(
        tmp_path, row(8, 2.0, ranks=2), row(8, 9.0, ranks=64), row(8, 5.0, ranks=16)
    )
    assert number.title == "Allreduce at 8 B, 64 ranks"
    assert (number.value, number.place, number.lines) == ("9.00 µs", "", ())


def test_columns_that_are_named_may_differ_and_no_others(tmp_path: Path) -> None:
    rows = [
        row(8, 2.0 * ranks * len(binding), ranks=ranks, binding=binding)
        for ranks in (2, 4)
        for binding in ("buffer", "pkl5")
    ]
    (number,) = key_numbers(value_column(read(tmp_path, rows).rows), ["ranks"])
    assert number.title == "Allreduce at 8 B"
    assert [line.name for line in number.lines] == ["2 ranks", "4 ranks"]
    assert [line.value for line in number.lines] == ["24.0 µs", "48.0 µs"]


def test_of_many_lines_only_the_best_are_shown(tmp_path: Path) -> None:
    rows = [row(8, 1.0 + place, variant=f"v{place}") for place in range(8)]
    (number,) = numbers(tmp_path, *rows)
    assert len(number.lines) == 5
    assert number.lines[-1].value == "5.00 µs"
    assert number.left_out == 3
