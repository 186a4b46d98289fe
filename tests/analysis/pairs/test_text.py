"""Rows of pairs as text, as a figure, and as other commands see them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import omb_py
from omb_py.analysis.pairs.findings import PairsWriter, drawn
from omb_py.analysis.pairs.matrix import Matrix, matrices, matrix
from omb_py.cli import command
from omb_py.results.columns import PairRow
from tests import ROOT
from tests.helpers.refusals import missing

FILE = ROOT / "tests/data/pairs/one-slow-card.csv"
"""Twelve ranks on six hosts; what node4 sends is limited to 2 Gbit/s."""


def rows() -> list[PairRow]:
    frame = omb_py.load(FILE).pairs[list(PairRow.columns)].astype(object)
    return [PairRow(**row) for row in frame.where(frame.notna(), None).to_dict("records")]


def omb(*words: str) -> str:
    done = CliRunner().invoke(command, list(words))
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
def test_text_names_the_slowest_pairs_and_their_host() -> None:
    out = io.StringIO()
    PairsWriter(out, "Bandwidth", worst=2).together(rows())
    lines = out.getvalue().splitlines()
    assert lines[0].endswith(f" v{omb_py.__version__} (buffer numpy, binding buffer)")
    assert not missing("# 12 ranks 6 hosts; 66 pairs disjoint medians 3 repeats", lines[1])
    assert lines[2] == ""
    assert lines[3] == "# 64 KiB: median 383 MB/s, fastest 1.46 GB/s, slowest 107 MB/s"
    assert lines[4] == "# Sender    Receiver       Bandwidth    x median"
    assert lines[5].split() == ["6", "(node4)", "8", "(node5)", "107", "MB/s", "3.59"]
    assert not missing("# slow: most pairs host node4 sends 3.00", lines[-2])
    assert not missing("# within hosts, no pair slow: 5.36", lines[-1])


def test_a_map_has_a_shade_for_each_pair_and_each_host_once() -> None:
    values = np.array([[np.nan, 1, 1], [1, np.nan, 1.4], [9, 1, np.nan]])
    lines = list(drawn(Matrix("latency", 8, "us", (0, 1, 2), ("a", "a", "b"), values)))
    assert lines[1:] == ["# 0  .. a", "# 1 . +", "# 2 #.  b"]


@pytest.mark.parametrize("ranks", [2, 100])
def test_there_is_no_map_of_too_few_or_too_many(ranks: int) -> None:
    values = np.ones((ranks, ranks))
    assert (
        list(drawn(Matrix("latency", 8, "us", tuple(range(ranks)), ("a",) * ranks, values))) == []
    )


def test_ranks_are_ordered_by_host() -> None:
    found = [
        {"benchmark": "latency", "bytes": 8, "sender": a, "receiver": b, "latency_us": 1.0 + a}
        | {"sender_host": "ab"[a % 2], "receiver_host": "ab"[b % 2]}
        for a in range(4)
        for b in range(4)
        if a != b
    ]
    made = matrix(found)
    assert (made.ranks, made.hosts) == ((0, 2, 1, 3), ("a", "a", "b", "b"))
    assert made.values[1, 0] == 3.0
    twice = matrix([*found, *(row | {"latency_us": 100.0} for row in found[:3])])
    assert twice.values[0, 2] == 50.5


def test_each_size_and_each_variant_is_a_matrix_of_its_own() -> None:
    whole = omb_py.load(FILE).pairs.to_dict("records")
    others = [row | {"bytes": 8} for row in whole] + [row | {"variant": "x"} for row in whole]
    assert [found.bytes for found in matrices([*whole, *others])] == [65536, 8, 65536]


@pytest.mark.slow
def test_other_commands_read_the_rows(tmp_path: Path) -> None:
    assert "132 rows" in omb("show", str(FILE))
    assert "sender" in omb("show", str(FILE))
    omb("show", str(FILE), "--output", str(tmp_path / "p.parquet"))
    again = omb_py.load(tmp_path / "p.parquet").pairs
    assert list(again.bandwidth_MBps) == list(omb_py.load(FILE).pairs.bandwidth_MBps)
    model = CliRunner().invoke(command, ["model", str(FILE)])
    assert not missing("left out: omb-py model benchmarks", model.output)


def test_figure_has_a_cell_for_each_pair() -> None:
    (chart,) = omb_py.figures(omb_py.load(FILE).pairs, kind="pairs").values()
    found = chart.to_dict()
    assert sorted(map(len, found["datasets"].values()))[-1] == 132
    caption = " ".join(found["vconcat"][-1]["mark"]["text"])
    assert not missing("Slow: most pairs host node4 sends", caption)
    assert "'title': 'Sender'" in str(found)
