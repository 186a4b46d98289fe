"""Files of results: whole records only, whatever happens while they are written."""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import OmbError, UsageError
from omb_py.results.csv import CsvWriter, cell, header_of, open_csv
from omb_py.results.json import JsonWriter, open_json
from omb_py.results.row import COLUMNS, OverheadRow, Row, columns, new_run
from omb_py.results.sink import FileSink

METADATA = {"run": "r", "command": "omb-py latency # not a comment\nnor a line"}


def some_row(**values: object) -> Row:
    base: dict[str, object] = dict.fromkeys(COLUMNS)
    base |= {"run": "r", "benchmark": "latency", "bytes": 8, "latency_us": 1.25, "percentiles": ()}
    return Row(**(base | values))  # type: ignore[arg-type]


def open_file(path: Path, clear: bool = False) -> CsvWriter | JsonWriter:
    return open_csv(path, Row, clear) if path.suffix == ".csv" else open_json(path, clear)


def test_tables_of_different_kinds_are_not_mixed(tmp_path: Path) -> None:
    writer = open_file(tmp_path / "rows.csv")
    writer.start(METADATA)
    writer.row(some_row())
    with pytest.raises(UsageError, match="--force"):
        open_csv(tmp_path / "rows.csv", OverheadRow, clear=False)


@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize("cut", range(1, 30))
def test_a_torn_last_row_is_replaced(tmp_path: Path, suffix: str, cut: int) -> None:
    path = tmp_path / f"rows.{suffix}"
    writer = open_file(path)
    writer.start(METADATA)
    writer.row(some_row(bytes=1))
    writer.row(some_row(bytes=2))
    path.write_bytes(path.read_bytes()[:-cut])
    writer = open_file(path)
    writer.start(METADATA)
    writer.row(some_row(bytes=3))
    if suffix == "csv":
        assert list(pd.read_csv(path, comment="#").bytes) == [1, 3]
    else:
        sizes = [item.get("bytes") for item in json.loads(path.read_text())]
        assert [size for size in sizes if size is not None] in ([1, 3], [1, 2, 3])
        assert ([size for size in sizes if size] == [1, 2, 3]) == (cut <= 2)


def test_a_value_never_starts_a_comment_or_a_line(tmp_path: Path) -> None:
    writer = open_file(tmp_path / "rows.csv")
    writer.start(METADATA)
    writer.row(some_row(layout='indx:a#b,"c"', percentiles=((50.0, 1.5), (99.9, 2.5))))
    table = pd.read_csv(tmp_path / "rows.csv", comment="#")
    assert len(table) == 1
    assert table.layout[0] == 'indx:a%23b,"c"'
    assert table.percentiles[0] == "p50=1.5 p99.9=2.5"


def test_other_columns_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(header_of(COLUMNS).replace("latency_us", "latency_ms"))
    with pytest.raises(UsageError, match="not a table of this version's columns"):
        open_file(path)
    open_file(path, clear=True).start(METADATA)
    assert header_of(COLUMNS) in path.read_text()


@pytest.mark.parametrize("content", ["{}", "no json", "[1,\n2", "\n]\n"])
def test_other_json_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="not a file of results"):
        open_file(path)
    assert path.read_text() == content


def write_until_full(path: str) -> None:
    """Append records to a file that may not grow beyond 1000 bytes; run in a process of its own."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    sink = FileSink(Path(path), clear=True)
    try:
        for _ in range(100):
            sink.append(b"x" * 29 + b"\n")
    except OmbError as error:
        print(error)


def test_a_full_disk_leaves_whole_records(tmp_path: Path) -> None:
    path = tmp_path / "records.txt"
    code = f"from tests.test_results import write_until_full; write_until_full({str(path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot write" in done.stdout
    assert path.read_text() == ("x" * 29 + "\n") * 33


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=30)))
def test_cells_survive_a_csv_reader(value: object) -> None:
    text = cell(value)
    assert "#" not in text
    if value is None:
        assert text == ""


@given(st.floats(1e-6, 1e12))
def test_numbers_keep_nine_digits(value: float) -> None:
    assert float(cell(value)) == pytest.approx(value, rel=1e-8)


def test_columns_carry_units() -> None:
    measured = [name for name in COLUMNS if name.startswith(("latency", "sample", "bandwidth"))]
    assert all(name.endswith(("_us", "_MBps")) for name in measured)
    assert next(csv.reader([header_of(COLUMNS)])) == list(COLUMNS)
    overhead = columns(OverheadRow)
    assert all("_us" in name or "_" not in name for name in overhead if "added" in name)


def test_runs_have_names_of_their_own() -> None:
    assert len({new_run() for _ in range(100)}) == 100
