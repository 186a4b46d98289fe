"""Files of samples: whole at any time, never another file's end."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from omb_py.core.errors import OmbError, UsageError
from omb_py.results.destinations import check_output
from omb_py.results.samples import (
    DTYPE,
    HEADER_BYTES,
    OF_ROW,
    SampleFile,
    description,
    header,
    is_samples,
)
from tests.helpers.refusals import refuses
from tests.helpers.samples import read


def samples(count: int, size: int = 8, every: int = 1) -> np.ndarray[Any, Any]:
    """Samples of one rank at one message size."""
    made = np.zeros(count, DTYPE)
    made["run"], made["benchmark"], made["bytes"], made["window"] = b"r", b"latency", size, -1
    made["every"], made["iteration"] = every, np.arange(count) * every
    made["sample_us"] = np.arange(count) + 0.5
    return made


def filled(path: Path, *parts: np.ndarray[Any, Any], clear: bool = False) -> None:
    """Add parts to a file and complete it."""
    file = SampleFile(path, clear)
    for part in parts:
        file.append(part)
    file.finish()


def test_what_is_added_is_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "run.npy"
    filled(path, samples(5), samples(3, 16))
    filled(path, samples(2, 32))
    table = read(path).to_dict("list")
    assert table["bytes"] == [8] * 5 + [16] * 3 + [32] * 2
    assert table["iteration"] == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1]
    assert table["benchmark"] == ["latency"] * 10
    assert (table["window"], table["variant"]) == ([-1] * 10, [""] * 10)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    filled(path, samples(1), clear=True)
    assert len(read(path)) == 1


def test_numpy_reads_an_npy_file_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "run.npy"
    filled(path, samples(5))
    assert (np.load(path) == samples(5)).all()


def test_headers_are_alike_long() -> None:
    assert {len(header(count)) for count in (0, 9, 10**6, 2**40)} == {HEADER_BYTES}


def test_a_run_that_is_killed_leaves_all_counted_samples(tmp_path: Path) -> None:
    path = tmp_path / "run.npy"
    killed = SampleFile(path, clear=False)
    killed.append(samples(5))
    with path.open("ab") as file:
        file.write(b"half of a sample")
    assert len(np.load(path)) == 5
    assert is_samples(path)
    killed._file.close()
    filled(path, samples(3, 16))
    assert read(path)["bytes"].tolist() == [8] * 5 + [16] * 3
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_run_without_samples_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.npy"
    filled(path, samples(5))
    old = path.read_bytes()
    SampleFile(path, clear=True).finish()
    assert path.read_bytes() == old
    filled(path, samples(3), clear=True)
    assert len(read(path)) == 3


@pytest.mark.parametrize("content", [b"something else", b"PAR1", header(0)[:20]])
def test_another_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.npy"
    path.write_bytes(content)
    assert not is_samples(path)
    with refuses(UsageError, "--force"):
        SampleFile(path, clear=False)
    assert path.read_bytes() == content


def test_file_of_something_else_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npy"
    np.save(path, np.arange(5))
    with refuses(UsageError, "run.npy not samples"):
        SampleFile(path, clear=False)
    with refuses(OmbError, "directory another --samples"):
        SampleFile(path / "run.npy", clear=False)


def test_two_jobs_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "run.npy"
    first = SampleFile(path, clear=False)
    with refuses(UsageError, "run.npy another job"):
        SampleFile(path, clear=False)
    first.finish()


@pytest.mark.parametrize("name", ["run", "run.csv", "run.parquet", "run.npy.gz"])
def test_another_ending_names_the_format(name: str) -> None:
    with refuses(UsageError, "ends in .npy"):
        check_output(None, False, name)


def test_force_needs_one_file() -> None:
    check_output(None, True, "run.npy")
    check_output(None, True, graph=("png",))
    for graph in ((), ("tty",)):
        with pytest.raises(UsageError):
            check_output(None, True, graph=graph)


def test_a_label_without_room_is_refused_not_cut() -> None:
    row = SimpleNamespace(**dict.fromkeys((*OF_ROW, "window")))
    assert description(row, 1, 1)["bytes"] == -1  # type: ignore[arg-type]
    row.variant = "é" * 33
    with refuses(UsageError, "variant more than the 64 bytes"):
        description(row, 1, 1)  # type: ignore[arg-type]
