"""Numbers that cannot be are found, and no number of a machine is accused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from omb_py.analysis.impossible import impossible
from omb_py.analysis.table import load, of_rows
from omb_py.analysis.values import value_column
from tests import ROOT
from tests.conftest import Run, succeeded

KIB, MIB = 1 << 10, 1 << 20


def line(points: dict[int, float], **columns: Any) -> list[dict[str, Any]]:
    """Rows of one latency line: microseconds by message size."""
    same = {"run": "r", "benchmark": "latency", "ranks": 2, "buffer": "numpy", "binding": "buffer"}
    return [same | columns | {"bytes": size, "latency_us": t} for size, t in points.items()]


def found(rows: list[dict[str, Any]]) -> list[tuple[Any, str]]:
    """Sizes and sentences of what cannot be among rows."""
    values = value_column(of_rows(rows, {"r": {}}).rows)
    return [(values.loc[one.row, "bytes"], one.sentence) for one in impossible(values)]


GH200 = {1: 3.37, MIB: 2.84, 2 * MIB: 2.85, 4 * MIB: 8.94}
"""Published: osu_latency D D between two GPUs whose links carry 450 GB/s in one direction."""


@pytest.mark.parametrize(
    ("rows", "size", "word"),
    [
        (
            line(GH200, buffer="cupy", placement="D D"),
            2 * MIB,
            "2.85 µs is the time of 1 MiB, too, and would be 736 GB/s; the bytes beyond it have "
            "344 GB/s",
        ),
        (
            line({MIB: 2.84, 2 * MIB: 2.85, 4 * MIB: 7.9}, placement="D"),
            2 * MIB,
            "2.85 µs is the time of 1 MiB, too, and would be 736 GB/s; the bytes beyond it have "
            "415 GB/s",
        ),
        (line({MIB: 5.0}), MIB, "one core copies at most 200 GB/s"),
        (line({MIB: 1.0}, placement="D"), MIB, "device carry at most 900 GB/s"),
        (line({8: 3.0}, latency_min_us=1.0, latency_max_us=2.0), 8, "above the slowest rank's"),
        (line({8: 3.0}, latency_min_us=4.0, latency_max_us=5.0), 8, "below the fastest rank's"),
        (line({8: 300.0, KIB: 2.0}), 8, "150 times the time of a larger message"),
        (
            line({MIB: 100.0}, benchmark="alltoall", ranks=256, hosts=2),
            MIB,
            "links of a node carry at most 800 GB/s",
        ),
        (
            line({MIB: 2.5, 4 * MIB: 10.0, 16 * MIB: 70.0}, placement="D", benchmark="latency_mt"),
            MIB,
            "loses a third",
        ),
    ],
    ids="flat alone core device above below slow network falling".split(),
)
def test_impossible_number_is_found_once(rows: list[dict[str, Any]], size: int, word: str) -> None:
    ((at, sentence),) = found(rows)
    assert at == size
    assert word in sentence


def test_rounding_of_two_decimals_is_no_contradiction() -> None:
    assert found(line({8: 0.24}, latency_min_us=0.23, latency_max_us=0.23)) == []


def test_racks_that_share_nvlink_exceed_network_cards() -> None:
    published = line(
        {512 * MIB: 18_000.0}, benchmark="alltoall", ranks=16, hosts=4, placement="D", buffer="cuda"
    )
    assert found(published) == []


def sane(seed: int) -> list[dict[str, Any]]:
    """A line of a machine: start, rate, a cache and a protocol switch, noise, interval, ranks."""
    draw = random.Random(seed)
    device = draw.random() < 0.5
    start, rate = draw.uniform(0.2, 30), draw.uniform(1, 450 if device else 60) * 1e3
    cached = 1.0 if device else draw.uniform(1, 3)
    switch, cost = draw.choice([KIB, 8 * KIB, 64 * KIB]), draw.uniform(0.5, 4)
    rows = []
    for size in (1 << power for power in range(27)):
        faster = cached if size < MIB else 1.0
        t = start * (cost if size >= switch else 1) + size / (rate * faster)
        t *= draw.lognormvariate(0, 0.05)
        rows += line({size: t}, latency_min_us=t * 0.9, latency_max_us=t * 1.1)
    return [row | {"placement": "D" if device else "H", "variant": f"{seed}"} for row in rows]


def test_sane_lines_have_no_impossible_number() -> None:
    assert found([row for seed in range(100) for row in sane(seed)]) == []


PUBLISHED = "# OSU MPI-CUDA Latency Test v7.5\n# Size  Avg Latency(us)\n" + "".join(
    f"{size}  {time}\n" for size, time in GH200.items()
)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "compare"])
def test_command_notes_an_impossible_number(in_process: Run, tmp_path: Path, command: str) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(PUBLISHED)
    done = succeeded(in_process(command, *(["a.txt"] if command == "show" else ["a.txt", "b.txt"])))
    assert done.err.count("impossible: latency") == (1 if command == "show" else 2)


@pytest.mark.slow
def test_committed_results_have_no_impossible_number() -> None:
    values = value_column(load(ROOT / "results").rows)
    assert len(values) > 1000
    assert impossible(values) == []
