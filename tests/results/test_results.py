"""Files of results: whole records only, whatever happens while they are written."""

from __future__ import annotations

import csv
import errno
import fcntl
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.table import load
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.files import is_file_or_free
from omb_py.results.columns import OverheadRow, Row
from omb_py.results.csv_json import CsvWriter, JsonWriter, cell, header_of, open_csv, open_json
from omb_py.results.writer import Collector
from tests import ROOT
from tests.helpers.reading import read_file
from tests.helpers.refusals import refuses

METADATA = {"run": "r", "command": "omb-py latency # not a comment\nnor a line"}


def some_row(**values: object) -> Row:
    base: dict[str, object] = {"run": "r", "benchmark": "latency", "bytes": 8, "latency_us": 1.25}
    return Row(**base | values)


def open_file(path: Path, clear: bool = False) -> CsvWriter | JsonWriter:
    return open_csv(path, Row, clear) if path.suffix == ".csv" else open_json(path, clear)


def test_tables_of_different_kinds_are_not_mixed(tmp_path: Path) -> None:
    writer = open_file(tmp_path / "rows.csv")
    writer.start(METADATA)
    writer.row(some_row())
    with refuses(UsageError, "--force"):
        open_csv(tmp_path / "rows.csv", OverheadRow, clear=False)


def test_link_to_no_file_yet_stays_a_link(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.symlink_to("target.csv")
    write_rows(path, "r", 2)
    assert path.is_symlink()
    assert len((tmp_path / "target.csv").read_text().splitlines()) > 2


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_what_a_killed_job_left_is_added_to(tmp_path: Path, suffix: str) -> None:
    """Wherever it ended, in the metadata, the header or a row: rows that were whole stay."""
    path = tmp_path / f"rows.{suffix}"
    write_rows(path, "r", 2)
    whole = path.read_bytes()
    ends = [whole.rindex(b"\n", 0, -1) + 1, len(whole)]
    for kept in (*range(20, len(whole) - 30, 60), *range(len(whole) - 30, len(whole) + 1)):
        path.write_bytes(whole[:kept])
        write_rows(path, "new", 1)
        old = [("r", size) for size, end in enumerate(ends) if end <= kept]
        assert rows_in(path) == [*old, ("new", 0)], kept


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_what_is_known_at_the_end_belongs_to_its_run(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows.{suffix}"
    first = open_file(path)
    first.start({"run": "first", "ranks": "2"})
    first.row(some_row(run="first"))
    second = open_file(path)
    second.start({"run": "second", "ranks": "4"})
    first.amend("first", {"other_processes": "1.0% of 2 cores"})
    second.row(some_row(run="second"))
    second.amend("second", {"other_processes": "9.0% of 2 cores"})
    for writer in (first, second):
        writer.finish()
    found = read_file(path)
    assert found.runs == {
        "first": {"run": "first", "ranks": "2", "other_processes": "1.0% of 2 cores"},
        "second": {"run": "second", "ranks": "4", "other_processes": "9.0% of 2 cores"},
    }
    assert len(load(path).rows) == 2


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
    path.write_text(header_of(Row.columns).replace("latency_us", "latency_ms"))
    with refuses(UsageError, "not a table of this version's columns"):
        open_file(path)
    old = path.read_text()
    writer = open_file(path, clear=True)
    writer.start(METADATA)
    assert path.read_text() == old
    writer.row(some_row())
    assert header_of(Row.columns) in path.read_text()
    assert "latency_ms" not in path.read_text()


@pytest.mark.parametrize(
    ("suffix", "contents"),
    [
        ("json", ["{}", "no json", "[1,\n2", "\n]\n", '{"metadata": 1}x\n']),
        ("csv", ["# x\n# of a spreadsheet", "# a note\n", "x"]),
    ],
)
def test_other_file_is_left_alone(tmp_path: Path, suffix: str, contents: list[str]) -> None:
    path = tmp_path / f"rows.{suffix}"
    for content in contents:
        path.write_text(content)
        with pytest.raises(UsageError, match=r"not a (?:file of results|table of this version)"):
            open_file(path)
        assert path.read_text() == content


def until_full(path: str, room: int, together: int) -> None:
    """Append rows, so many at once, until the file may not grow; run in a process of its own."""
    writer = open_file(Path(path))
    limit = os.path.getsize(path) + room
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    writer.start(METADATA | {"run": "limited"})
    for number in range(0, room, together):
        rows = range(number, number + together)
        writer.together([some_row(run="limited", bytes=size) for size in rows])


def fails_in_own_process(call: str) -> None:
    """Call a function of this module in a process of its own, which cannot write all."""
    code = f"from tests.results.test_results import *\ntry: {call}\nexcept OmbError as e: print(e)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "cannot write" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize(("room", "together"), [(40_000, 1), (40_000, 7), (2_000, 100)])
def test_full_disk_leaves_whole_rows(tmp_path: Path, suffix: str, room: int, together: int) -> None:
    """Of rows that belong together it takes all or none."""
    path = tmp_path / f"rows.{suffix}"
    other = open_file(path)
    other.start(METADATA)
    other.row(some_row(bytes=1))
    fails_in_own_process(f"until_full({str(path)!r}, {room}, {together})")
    other.row(some_row(bytes=2))
    rows = rows_in(path)
    sizes = [size for run, size in rows if run == "limited"]
    assert sizes == list(range(len(sizes)))
    assert len(sizes) % together == 0
    assert (len(sizes) > 10) == (room > 10_000)
    assert [size for run, size in rows if run == "r"] == [1, 2]


def rows_in(path: Path) -> list[tuple[str, int]]:
    """Run and message size of each row; the file must be whole lines, with one header."""
    assert path.read_bytes().endswith(b"\n")
    if path.suffix == ".json":
        items = map(json.loads, path.read_text().splitlines())
        return [(item["run"], item["bytes"]) for item in items if "metadata" not in item]
    lines = [line for line in path.read_text().splitlines() if line[0] != "#"]
    assert lines.count(lines[0]) == 1
    table = list(csv.DictReader(lines))
    assert all(len(row) == len(Row.columns) and None not in row.values() for row in table)
    return [(row["run"], int(row["bytes"])) for row in table]


def write_rows(path: Path, run: str, rows: int) -> None:
    writer = open_file(path)
    writer.start(METADATA | {"run": run})
    for number in range(rows):
        writer.row(some_row(run=run, bytes=number))
    writer.finish()


@pytest.mark.long
@pytest.mark.product(strength=1)
@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize(("writers", "rows"), [(8, 100), (50, 10)])
def test_jobs_share_a_file(tmp_path: Path, suffix: str, writers: int, rows: int) -> None:
    path = tmp_path / f"rows.{suffix}"
    fork = multiprocessing.get_context("fork")
    jobs = [
        fork.Process(target=write_rows, args=(path, f"run {number}", rows))
        for number in range(writers)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert [job.exitcode for job in jobs] == [0] * writers
    found = rows_in(path)
    for number in range(writers):
        assert [size for run, size in found if run == f"run {number}"] == list(range(rows))
    assert len(found) == writers * rows


def test_file_that_another_job_makes_at_the_moment_is_no_device(tmp_path: Path) -> None:
    path, ended = tmp_path / "rows.csv", threading.Event()

    def other_jobs() -> None:
        while not ended.is_set():
            path.touch()
            path.unlink()

    thread = threading.Thread(target=other_jobs)
    thread.start()
    try:
        assert all(is_file_or_free(path) for _ in range(50_000))
    finally:
        ended.set()
        thread.join()


def test_file_without_locks_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    write_rows(tmp_path / "rows.csv", "r", 3)
    assert rows_in(tmp_path / "rows.csv") == [("r", 0), ("r", 1), ("r", 2)]


def test_lock_never_released_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    write_rows(path, "r", 1)
    monkeypatch.setattr("omb_py.results.sink.LOCK_SECONDS", 0.1)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with refuses(OmbError, "cannot write another process lock"):
            open_file(path)


def remove(path: Path) -> None:
    path.unlink()


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace(path: Path) -> None:
    (path.parent / "other").write_text("of somebody else\n" * 1000)
    (path.parent / "other").rename(path)


def replace_by_table(path: Path) -> None:
    path.unlink()
    write_rows(path, "other", 1)


def truncate(path: Path) -> None:
    path.write_bytes(b"")


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize(
    ("change", "left"),
    [
        (remove, []),
        (remove_folder, []),
        (replace, []),
        (replace_by_table, [("other", 0)]),
        (truncate, []),
        (shorten, [("r", 1)]),
    ],
)
def test_the_file_that_has_the_name_gets_the_rows(
    tmp_path: Path, suffix: str, change: Callable[[Path], None], left: list[tuple[str, int]]
) -> None:
    """Whatever somebody did to the file: what has the name has rows that can be read."""
    path = tmp_path / "results" / f"rows.{suffix}"
    writer = open_file(path)
    writer.start({"run": "r", "omb_py": "0.1.0"})
    for size in (1, 2):
        writer.row(some_row(bytes=size))
    change(path)
    writer.row(some_row(bytes=3))
    writer.row(some_row(bytes=4))
    writer.amend("r", {"launch_seconds": "1"})
    found = load(path)
    pairs = zip(found.rows["run"], found.rows["bytes"], strict=True)
    assert list(pairs) == [*left, ("r", 3), ("r", 4)]
    assert found.runs["r"] == {"run": "r", "omb_py": "0.1.0", "launch_seconds": "1"}
    if suffix == "csv" and change is not replace:
        assert rows_in(path) == [*left, ("r", 3), ("r", 4)]


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_a_pipe_gets_rows_as_they_come(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows.{suffix}"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = open_file(path)
    writer.start(METADATA)
    begun = os.read(reader, 1 << 16)
    assert b"latency # not a comment" in begun
    writer.row(some_row(bytes=5))
    (tmp_path / f"got.{suffix}").write_bytes(begun + os.read(reader, 1 << 16))
    os.close(reader)
    assert rows_in(tmp_path / f"got.{suffix}") == [("r", 5)]


def test_a_device_that_is_full_fails_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").symlink_to("/dev/full")
    writer = open_file(tmp_path / "rows.csv")
    with refuses(OmbError, "cannot write rows.csv: No space left on device"):
        writer.start(METADATA)


def test_pandas_reads_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(path, "r", 3)
    table = pd.read_json(path, lines=True)
    assert table["bytes"].dropna().tolist() == [0, 1, 2]
    assert table["metadata"][0]["run"] == "r"
    assert "files" not in table


@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize("clear", [True, False])
def test_a_run_without_rows_leaves_the_file(tmp_path: Path, suffix: str, clear: bool) -> None:
    path = tmp_path / f"rows.{suffix}"
    write_rows(path, "r", 2)
    path.write_bytes(path.read_bytes()[:-5])
    old = path.read_bytes()
    writer = open_file(path, clear)
    writer.start(METADATA)
    writer.amend("r", {"ranks": "2"})
    writer.finish()
    assert path.read_bytes() == old


def clear_without_room(path: str) -> None:
    """Overwrite a file that may not grow by a row with more metadata than it has bytes."""
    writer = open_file(Path(path), clear=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + 9,) * 2)
    writer.start(METADATA | {"long": "x" * 9999})
    writer.row(some_row())


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_a_full_disk_at_the_first_row_restores_the_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows.{suffix}"
    write_rows(path, "r", 1)
    old = path.read_bytes()
    fails_in_own_process(f"clear_without_room({str(path)!r})")
    assert path.read_bytes() == old


def test_bytes_that_are_no_text_are_escaped(tmp_path: Path) -> None:
    for suffix in ("csv", "json"):
        writer = open_file(tmp_path / f"rows.{suffix}")
        writer.start({"run": "r", "command": "omb-py latency --output a\udcff.csv"})
        writer.row(some_row(layout="indx:a\udcff"))
        writer.finish()
        assert rows_in(tmp_path / f"rows.{suffix}") == [("r", 8)]


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=30)))
def test_cells_survive_a_csv_reader(value: object) -> None:
    text = cell(value)
    assert "#" not in text
    if value is None:
        assert text == ""


@given(st.floats(1e-6, 1e12))
def test_numbers_keep_nine_digits(value: float) -> None:
    assert float(cell(value)) == pytest.approx(value, rel=1e-8)


def test_percentages_keep_their_digits_in_rows_of_a_program() -> None:
    collector = Collector()
    collector.row(some_row(percentiles=((50.0, 1.25), (99.99999, 3.0))))
    assert collector.rows[0]["percentiles"] == "p50=1.25 p99.99999=3"


def test_an_array_of_older_versions_is_read_and_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(path, "r", 2)
    path.write_text("[\n" + ",\n".join(path.read_text().splitlines()) + "\n]\n")
    old = path.read_bytes()
    assert load(path).rows["bytes"].tolist() == [0, 1]
    with refuses(UsageError, "--force"):
        open_file(path)
    assert path.read_bytes() == old
