"""What columns mean is said once: `help(omb_py.load)` and docs/results.md follow from a table."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator

import click
import pytest

import omb_py
from docs.generate import COLUMN_TABLES, column_table
from omb_py.benchmarks import all_benchmarks
from omb_py.options.table import parameters
from omb_py.results.application import ApplicationRow
from omb_py.results.columns import (
    COLUMNS,
    CONFIGURATION,
    EXPERIMENT,
    LOADED,
    OverheadRow,
    PairRow,
    Record,
    Row,
    new_run,
)
from tests import RESULTS, ROOT

UNITS = {"_us": "us", "_MBps": "MB/s", "_GBps": "GB/s", "_per_s": "1/s", "_percent": "%"}


@pytest.mark.parametrize("part", COLUMN_TABLES)
def test_page_has_the_tables_of_columns(part: str) -> None:
    assert f"\n<!-- generated: {part} -->\n" in (ROOT / "docs" / "results.md").read_text()


def test_tables_of_columns_have_each_column_that_files_have_once() -> None:
    rows = [row for part in COLUMN_TABLES for row in column_table(part).splitlines()[2:]]
    new = [row.split(" | ")[0] for row in rows if not row.endswith("| as above |")]
    names = re.findall(r"`(\w+)`", " ".join(new))
    assert sorted(names) == sorted({*Row.columns, *LOADED, *OverheadRow.columns, *PairRow.columns})


def test_each_column_is_of_some_kind_of_row() -> None:
    used = {*Row.columns, *OverheadRow.columns, *PairRow.columns, *LOADED}
    assert used == set(COLUMNS)


def test_columns_have_types_units_and_roles() -> None:
    for name, column in COLUMNS.items():
        unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), None)
        assert unit in (None, column.unit), name
        assert column.type in ("int", "float", "bool", "str"), name
    roles = {column.role for column in COLUMNS.values()}
    assert roles == {*("run", "experiment", "configuration", "size", "detail"), *ROLES_OF_NUMBERS}


ROLES_OF_NUMBERS = ("value", "statistic", "effort")


def test_names_of_lines_keep_their_order() -> None:
    assert EXPERIMENT[:6] == ("benchmark", "part", "ranks", "hosts", "mpi_type", "window")
    assert CONFIGURATION[:5] == ("suite", "mpi", "buffer", "binding", "placement")
    assert (EXPERIMENT[-1], CONFIGURATION[-1]) == ("validated", "source")


def test_no_column_of_applications_is_left_out() -> None:
    head = "| column | meaning |\n|---|---|\n"
    table = (ROOT / "docs" / "applications.md").read_text().split(head)[-1]
    names = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    assert sorted(", ".join(names).replace("`", "").split(", ")) == sorted(ApplicationRow.columns)


def test_help_shows_columns_with_their_units() -> None:
    text = omb_py.load.__doc__ or ""
    assert "    latency_us (float, us)\n        latency (definitions)" in text
    assert "    suite (str)\n        the program that measured" in text
    assert "    ratio, ratio_low, ratio_high (float)\n" in text


def test_runs_have_their_metadata_by_name() -> None:
    results = omb_py.load(RESULTS / "families-mpich.csv")
    known = results.runs[results.rows.run.iloc[0]]
    assert known["mpi_library"].startswith("MPICH")
    assert known["hosts"]
    assert known["omb_py"]


def known_parameters() -> Iterator[click.Parameter]:
    for benchmark in all_benchmarks():
        yield from parameters(benchmark)


def test_options_that_columns_name_are_there() -> None:
    words = [*(column.meaning for column in COLUMNS.values()), ApplicationRow.__doc__ or ""]
    named = {option for text in words for option in re.findall(r"`(--[a-z0-9-]+)`", text)}
    known = {option for parameter in known_parameters() for option in parameter.opts}
    assert "--p2p-algorithm" in named
    assert named <= known, named - known


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
