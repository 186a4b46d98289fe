"""Which numbers stand at the head of the page, and what is said of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.analysis.report.page import key_numbers
from omb_py.analysis.values import value_column
from tests.analysis.test_anomalies import read, row


def numbers(folder: Path, *rows: dict[str, Any]) -> Any:
    """The lines of the key numbers of rows: number, value, line and spread."""
    found = key_numbers(value_column(read(folder, list(rows)).rows))
    return [
        (number.title, line.value, line.name, line.spread)
        for number in found
        for line in number.lines
    ]


def bandwidth(nbytes: int, megabytes: float, **columns: Any) -> dict[str, Any]:
    """A row of a benchmark of bandwidth, whose samples are times."""
    time = nbytes / megabytes
    rates = {"bandwidth_MBps": megabytes, "messages_per_s": 1e6 * megabytes / nbytes}
    own = row(nbytes, time, **{"benchmark": "bw", "sample_mean_us": time} | rates | columns)
    return own | {name: None for name in own if name.startswith("latency")}


def test_key_numbers_are_latency_bandwidth_rate_and_allreduce(tmp_path: Path) -> None:
    found = numbers(
        tmp_path,
        row(8, 3.0),
        bandwidth(8, 80.0, benchmark="mbw_mr"),
        bandwidth(4 << 20, 12_000.0),
        bandwidth(8, 16.0),
        row(8, 1.5, benchmark="latency"),
        row(8, 1.0, benchmark="put_latency"),
    )
    assert [cells[:2] for cells in found] == [
        ("Latency at 8 B, 4 ranks", "1.50 µs"),
        ("Bandwidth at 4 MiB, 4 ranks", "12.0 GB/s"),
        ("Message rate at 8 B, 4 ranks", "10.0 M msg/s"),
        ("Allreduce at 8 B, 4 ranks", "3.00 µs"),
    ]


def test_results_without_any_of_them_show_what_they_have(tmp_path: Path) -> None:
    (cells,) = numbers(tmp_path, row(None, 40.0, benchmark="barrier"))
    assert cells[:2] == ("barrier, 4 ranks", "40.0 µs")


def test_unmeasured_size_is_replaced_by_the_nearest(tmp_path: Path) -> None:
    (cells,) = numbers(tmp_path, row(0), row(1), row(16, 2.5), row(1024))
    assert cells[:2] == ("Allreduce at 16 B, 4 ranks", "2.50 µs")


@pytest.mark.parametrize(
    ("times", "spread"),
    [
        ((2.0,), "95 % interval 1.98 µs to 2.02 µs"),
        ((2.0, 2.5, 2.2), "3 runs: 2.00 µs to 2.50 µs"),
        ((2.0, 2.001), "2 runs: within 0.1 %"),
    ],
)
def test_number_has_its_uncertainty(tmp_path: Path, times: tuple[float, ...], spread: str) -> None:
    rows = [row(8, time, run=f"20261121T09000{place}Z-0") for place, time in enumerate(times)]
    (cells,) = numbers(tmp_path, *rows)
    assert cells[-1] == spread


def test_the_best_line_is_the_first(tmp_path: Path) -> None:
    found = numbers(
        tmp_path,
        row(8, 1.0, benchmark="latency", binding="native"),
        *(row(8, 2.0, benchmark=name) for name in ("latency", "barrier", "bcast")),
        bandwidth(4 << 20, 9_000.0),
        bandwidth(4 << 20, 6_000.0, binding="native"),
    )
    assert [cells[1:3] for cells in found] == [
        ("1.00 µs", "native"),
        ("2.00 µs", "buffer"),
        ("9.00 GB/s", "buffer"),
        ("6.00 GB/s", "native"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("others", "verdict", "on_other"),
    [
        ([2.0] * 5, "proved better than the lines below", "2.00x slower"),
        ([0.9, 1.2, 1.01, 1.1, 0.95], "not proved better than buffer", "within noise"),
    ],
    ids=["slower", "alike"],
)
def test_repeated_launches_decide_which_line_is_best(
    tmp_path: Path, others: list[float], verdict: str, on_other: str
) -> None:
    rows = [
        row(8, time, binding=binding, run=f"20261121T09000{run}Z-{binding}")
        for binding, times in (("native", [0.98, 1.02, 0.99, 1.01, 1.0]), ("buffer", others))
        for run, time in enumerate(times)
    ]
    (number,) = key_numbers(value_column(read(tmp_path, rows).rows))
    assert number.verdict == verdict
    assert [line.verdict for line in number.lines] == ["", on_other]


def test_single_launches_prove_no_line_the_best(tmp_path: Path) -> None:
    rows = [row(8, 1.0), row(8, 9.0, binding="native")]
    (number,) = key_numbers(value_column(read(tmp_path, rows).rows))
    assert number.verdict == "the best line is unclear: repeat the launches"
    assert [line.verdict for line in number.lines] == ["", ""]


def test_lines_of_unlike_experiments_are_not_ranked(tmp_path: Path) -> None:
    rows = (row(8, time, ranks=ranks) for ranks, time in ((2, 2.0), (64, 9.0), (16, 5.0)))
    (cells,) = numbers(tmp_path, *rows)
    assert cells[:3] == ("Allreduce at 8 B, 64 ranks", "9.00 µs", "buffer, numpy")


def test_of_many_lines_only_the_best_are_shown(tmp_path: Path) -> None:
    found = numbers(tmp_path, *(row(8, 1.0 + place, variant=f"v{place}") for place in range(8)))
    assert len(found) == 5
    assert found[-1][1] == "5.00 µs"
