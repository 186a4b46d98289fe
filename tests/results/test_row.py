"""Rows: what was measured by the names of columns, and nothing else."""

from __future__ import annotations

import copy
import pickle

import pytest

from omb_py.results.columns import OverheadRow, PairRow, Record, Row, new_run


def test_what_was_not_measured_is_none() -> None:
    row = Row(benchmark="latency", bytes=8, part=None)
    assert (row.benchmark, row.bytes, row.part, row.failed) == ("latency", 8, None, None)
    assert vars(row) == {"benchmark": "latency", "bytes": 8}


@pytest.mark.parametrize("kind", [Row, OverheadRow, PairRow])
def test_an_unknown_column_is_refused(kind: type[Record]) -> None:
    with pytest.raises(TypeError, match="no column 'latency_ms'"):
        kind(benchmark="latency", latency_ms=1.0)
    with pytest.raises(AttributeError, match="latency_ms"):
        _ = kind(benchmark="latency").latency_ms


def test_columns_are_those_of_the_kind() -> None:
    with pytest.raises(TypeError, match="no column 'added_us'"):
        Row(added_us=1.0)
    assert OverheadRow(added_us=1.0).added_us == 1.0


def test_a_row_is_frozen_and_replaced() -> None:
    row = Row(bytes=8, ranks=2)
    with pytest.raises(AttributeError, match="frozen"):
        row.bytes = 16
    assert row.replace(bytes=16, ranks=None) == Row(bytes=16)
    assert row == Row(bytes=8, ranks=2)
    assert len({row, Row(ranks=2, bytes=8), Row(bytes=8)}) == 2


def test_a_row_survives_copies_and_pickle() -> None:
    row = Row(bytes=8, percentiles=((50.0, 1.5),))
    assert row == copy.deepcopy(row) == pickle.loads(pickle.dumps(row))


def test_runs_have_names_of_their_own() -> None:
    assert len({new_run() for _ in range(100)}) == 100
