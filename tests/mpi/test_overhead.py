"""`omb-py overhead`: bindings compared alternately, on real ranks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.results.columns import OverheadRow
from tests.conftest import Finished, Run, rows_of, run, succeeded
from tests.helpers.reading import objects
from tests.helpers.refusals import assert_names, assert_refused, missing

PROGRAMS = Path(__file__).parent / "programs"
QUICK = ("-i", "60", "-x", "2", "--rounds", "12")


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, comment="#")


@pytest.mark.long
def test_each_binding_is_compared_with_native(mpiexec: Run, tmp_path: Path) -> None:
    words = ("--sizes", "8,1024", *QUICK, "--bindings", "native,buffer,slow")
    job = succeeded(mpiexec(2, "overhead", "latency", *words, "--output", "o.csv"))
    table = read(tmp_path / "o.csv")
    assert tuple(table.columns) == OverheadRow.columns
    compared = table[table.split.isna()]
    assert list(compared.binding) == ["native", "buffer", "slow"] * 2
    assert set(compared.base) == {"native"}
    assert (compared.added_low_us <= compared.added_us).all()
    assert (compared.added_us <= compared.added_high_us).all()
    slow = compared[compared.binding == "slow"]
    assert (slow.added_low_us > 0).all()
    assert (slow.ratio_low > 1).all()
    assert set(table.rounds) == {12}
    assert set(table.iterations) == {60}
    assert {row[1] for row in job.rows} == {"native", "buffer", "slow"}
    assert "(thread level single, " in job.out.splitlines()[0]
    assert not missing("# 12 rounds --thread-level multiple", job.out)
    assert not missing("# intervals this launch alone --launches", job.out.splitlines()[-1])


@pytest.mark.every_library
@pytest.mark.parametrize("benchmark", ["allreduce_persistent", "reduce_scatter_persistent"])
def test_memory_of_persistent_reductions_outlives_their_plan(mpiexec: Run, benchmark: str) -> None:
    words = ("--sizes", "64", "-i", "20", "-x", "2", "--rounds", "6", "--bindings", "native,buffer")
    job = succeeded(mpiexec(2, "overhead", benchmark, *words))
    assert {row[1] for row in job.rows} == {"native", "buffer"}


LAUNCHES = ("overhead", "allreduce", "--launches", "2", "-n", "2", "--sizes", "8", *QUICK)


@pytest.mark.long
@pytest.mark.every_library
def test_launches_give_a_table_over_them(mpi: str, omb_py: Run, tmp_path: Path) -> None:
    words = ("--bindings", "native,buffer", "--thread-level", "multiple", "--output", "o.csv")
    job = succeeded(omb_py(*LAUNCHES, *words))
    assert not missing("Overhead of allreduce over 2 launches", job.out.splitlines()[0])
    assert job.out.splitlines()[1].startswith("thread level multiple; ")
    assert not missing("Added by buffer at 8 B: over 2 launches", job.out)
    table = read(tmp_path / "o.csv")
    table = table[table.split.isna()]
    assert list(table.binding) == ["native", "buffer"] * 2
    assert table.run.nunique() == 2
    assert set(table.ranks) == {2}
    assert "# pace: core" in (tmp_path / "o.csv").read_text()


@pytest.mark.long
@pytest.mark.any_library
def test_launches_added_to_a_file_are_combined_alone(mpi: str, omb_py: Run, tmp_path: Path) -> None:
    words = ("--bindings", "native,buffer", "--output", "o.csv", "--format", "json")
    for rows in (6, 12):
        job = succeeded(omb_py(*LAUNCHES, *words))
        assert {row["launches"] for row in json.loads(job.out)["rows"]} == {2}
        assert len(read(tmp_path / "o.csv")) == rows
    succeeded(omb_py(*LAUNCHES, *words, "--force"))
    assert len(read(tmp_path / "o.csv")) == 6


@pytest.mark.any_library
def test_launch_that_fails_leaves_earlier_rows(mpi: str, omb_py: Run, tmp_path: Path) -> None:
    script = tmp_path / "flaky"
    script.write_text(
        f'#!/bin/sh\nif [ -e there ]; then echo "node lost" >&2; exit 7; fi\n'
        f'touch there\nexec {mpi} "$@"\n'
    )
    script.chmod(0o755)
    words = ("--bindings", "native,buffer", "--output", "o.csv", "--launcher", str(script))
    job = omb_py(*LAUNCHES, *words)
    assert_refused(job, 1, "launch 2 of 2 failed exit code 7 node lost")
    assert read(tmp_path / "o.csv").run.nunique() == 1


@pytest.mark.any_library
def test_launches_that_hang_are_ended(mpi: str, omb_py: Run, tmp_path: Path) -> None:
    job = omb_py(*LAUNCHES, "--launcher", "sleep 50", "--timeout", "1")
    assert job.code != 0
    assert len(job.sentences) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-n", "2"), "--ranks is for --launches mpiexec"),
        (("--launcher", "mpiexec"), "--launcher is for --launches"),
        (("--launches", "2", "--graph", "tty"), "--graph --output omb-py plot"),
        (("--launches", "1"), "--launches"),
        (("--launches", "2", "--launcher", "no-such-launcher"), "no launcher no-such-launcher"),
    ],
)
def test_options_of_launches_that_cannot_be_are_refused(
    in_process: Run, arguments: tuple[str, ...], words: str
) -> None:
    assert_refused(in_process("overhead", "latency", *arguments), 2, words)


@pytest.mark.any_library
def test_json_holds_the_same_columns(mpiexec: Run) -> None:
    options = ("--bindings", "native,buffer", "--format", "json")
    job = succeeded(mpiexec(3, "overhead", "allreduce", "--sizes", "8", *QUICK, *options))
    items = [item for item in objects(job.out) if "metadata" not in item]
    for item in items:
        assert [name for name in OverheadRow.columns if name in item] == list(item)
        assert None not in item.values()
    assert len(items) == 3


@pytest.mark.long
def test_splits_have_names(mpiexec: Run, tmp_path: Path) -> None:
    job = mpiexec(
        *(2, "overhead", "multi_lat", "--sizes", "8", *QUICK, "--bindings", "all"),
        *("--output", "o.csv"),
    )
    assert job.code == 0, job.err
    table = read(tmp_path / "o.csv")
    splits = table[table.split.notna()]
    pairs = {(row.split, row.binding, row.base) for row in splits.itertuples()}
    assert ("pickle", "pickle", "buffer") in pairs
    assert ("persistent requests", "persistent", "buffer") in pairs
    assert ("pickle with data out of band", "pkl5", "pickle") in pairs
    assert ("count and type left to mpi4py", "array", "buffer") in pairs
    for split in splits.itertuples():
        assert [split.binding, split.base] in [row[1:3] for row in job.rows]
        assert f"  {split.split}\n" in job.out


def test_what_does_not_apply_is_left_out_with_a_note(mpiexec: Run) -> None:
    job = succeeded(mpiexec(2, "overhead", "alltoallv", "--sizes", "8", *QUICK))
    assert {row[1] for row in job.rows} == {"native", "buffer"}
    notes = [text for text in job.sentences if "busy" not in text]
    assert len(notes) == 1
    assert_names(notes[0], "left out: binding pickle alltoallv")


@pytest.fixture
def choosy(mpi: str, tmp_path: Path) -> Callable[..., tuple[Finished, list[tuple[str, str]]]]:
    """Compares bindings of which some refuse a size or a type; returns type or bytes, and binding,
    of each comparison."""

    def start(bindings: str, about: str, *words: str) -> tuple[Finished, list[tuple[str, str]]]:
        program = [sys.executable, str(PROGRAMS / "choosy.py"), "overhead", "bcast", *QUICK]
        command = [mpi, "-n", "2", *program, *words, "--output", "o.csv"]
        job = run(command, {"CHOOSY": bindings, "CHOOSY_ABOUT": about}, tmp_path, 60)
        rows = [row for row in rows_of(tmp_path / "o.csv") if not row["split"]]
        key = "bytes" if about == "size" else "mpi_type"
        return job, [(row[key], row["binding"]) for row in rows]

    return start


TWO, THREE = ("native", "buffer"), ("native", "buffer", "pickle")
TYPES = ("-T", "float32", "-T", "float64")  # measured in this order


@pytest.mark.parametrize(
    ("bindings", "about", "words", "code", "measured", "note"),
    [
        (
            *("pickle", "size", ("--sizes", "8,16,32"), 0),
            [("8", THREE), ("16", TWO), ("32", THREE)],
            "note: left out: binding pickle at 16 bytes: 16 is not liked",
        ),
        (
            *("buffer,pickle", "size", ("--sizes", "8,16,32"), 3),
            [("8", THREE), ("32", THREE)],
            "left out messages of 16 bytes: fewer than two bindings",
        ),
        (
            *("pickle", "type", ("--sizes", "8,16", *TYPES), 0),
            [("MPI_FLOAT", TWO), ("MPI_FLOAT", TWO), ("MPI_DOUBLE", THREE), ("MPI_DOUBLE", THREE)],
            "note: left out: binding pickle: floats are not liked",
        ),
        (
            *("buffer,pickle", "type", ("--sizes", "8", *TYPES), 3),
            [("MPI_DOUBLE", THREE)],
            "left out type float32: fewer than two bindings",
        ),
    ],
    ids=["a size of one", "a size of two", "a type of one", "a type of two"],
)
def test_binding_that_cannot_do_a_size_or_type_is_left_out_there(
    choosy: Any,
    bindings: str,
    about: str,
    words: tuple[str, ...],
    code: int,
    measured: list[tuple[str, tuple[str, ...]]],
    note: str,
) -> None:
    job, found = choosy(bindings, about, *words)
    assert job.code == code, job.err
    assert found == [(what, name) for what, names in measured for name in names]
    notes = [text for text in job.sentences if "busy" not in text]
    assert_names(notes[-1], note)
    assert len(notes) == 1 or code == 3


@pytest.mark.any_library
def test_warm_up_can_be_automatic(mpiexec: Run) -> None:
    options = ("--bindings", "native,buffer", "--rounds", "6", "-i", "60", "-x", "auto")
    job = succeeded(mpiexec(2, "overhead", "bcast", "--sizes", "8", *options, "--sync", "clock"))
    assert len(job.rows) == 3


@pytest.mark.any_library
def test_few_rounds_have_no_interval(mpiexec: Run) -> None:
    job = mpiexec(2, "overhead", "barrier", "-i", "20", "--rounds", "3", "--bindings=native,buffer")
    assert job.code == 0
    assert job.rows[1][5:7] == ["-", "-"]


def test_windows_are_compared_by_the_message(mpiexec: Run, tmp_path: Path) -> None:
    arguments = ("--sizes", "8", "-W", "16", "--rounds", "8", "--bindings", "native,persistent")
    job = succeeded(mpiexec(2, "overhead", "bw", *arguments, "--output", "o.csv"))
    assert "one message of a window" in job.out
    assert set(read(tmp_path / "o.csv").window) == {16}


@pytest.mark.any_library
def test_the_protocol_of_pickle_is_an_option(mpiexec: Run, tmp_path: Path) -> None:
    for protocol in ("2", "4"):
        options = ("--binding", "pickle", "--pickle-protocol", protocol, "-c", "-i", "2")
        job = mpiexec(2, "latency", "--sizes", "8", *options, "--output", f"p{protocol}.csv")
        assert job.code == 0, job.err
        assert f"# pickle_protocol: {protocol}" in (tmp_path / f"p{protocol}.csv").read_text()
    job = mpiexec(2, "latency", "--sizes", "8", "--binding", "pkl5", "--pickle-protocol", "4")
    assert_refused(job, 2, "pkl5 needs protocol 5")


def test_transports_run_collectives_by_own_algorithms(mpiexec: Run, tmp_path: Path) -> None:
    words = ("--sizes", "8,64", *QUICK, "--bindings", "buffer,tcp,asyncio")
    job = succeeded(mpiexec(3, "overhead", "bcast", *words, "--output", "o.csv"))
    table = read(tmp_path / "o.csv")
    table = table[table.split.isna()]
    assert list(table.binding) == ["buffer", "tcp", "asyncio"] * 2
    assert list(table.algorithm.fillna("library")) == ["library", "by_size", "by_size"] * 2
    assert job.out.count("  own algorithm by_size\n") == 4
    metadata = (tmp_path / "o.csv").read_text()
    assert "# serialization: none" in metadata
