"""Samples in files, and threads that read them ahead: what is written comes back, in its order."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.train import check
from omb_py.apps.training import Training
from omb_py.apps.training.data import Range
from omb_py.apps.training.loading import (
    DESCRIPTION,
    MAX_FILES,
    DataSet,
    ReadAhead,
    SampleFiles,
    Slot,
    provide,
)
from omb_py.core.errors import OmbError, UsageError

SET = DataSet("generated", 10, (2, 3), "float32", 1)


def content(start: int, stop: int) -> tuple[Any, Any]:
    """Samples whose every number is their own, and labels that are another."""
    labels = np.arange(start, stop, dtype=np.int64)
    return np.multiply.outer(labels + 1, np.ones((2, 3))).astype(np.float32), 100 + labels


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    provide(SET, content, tmp_path / "a" / "samples")
    return tmp_path / "a" / "samples"


@pytest.fixture
def files(folder: Path) -> SampleFiles:
    return SampleFiles(SET, folder)


def test_samples_and_labels_are_read_as_they_were_written(files: SampleFiles) -> None:
    slot = Slot(SET, SET.samples)
    for place in range(SET.samples):
        slot.read(files, SET.samples - 1 - place, place)
    samples, labels = content(0, SET.samples)
    assert np.array_equal(slot.samples, samples[::-1])
    assert np.array_equal(slot.labels, labels[::-1])


def test_files_have_the_bytes_and_nothing_else(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {DESCRIPTION, "samples-00.bin"}
    assert (folder / "samples-00.bin").stat().st_size == 10 * (2 * 3 * 4 + 8)
    assert list(folder.parent.iterdir()) == [folder]


@given(st.integers(1, 10**9), st.integers(1, 10**6))
def test_every_sample_has_its_place_in_one_of_few_files(samples: int, size: int) -> None:
    made = replace(SET, samples=samples, shape=(size,))
    assert len(made.names) <= MAX_FILES
    last, place = divmod(samples - 1, made.samples_of_file)
    assert last == len(made.names) - 1
    assert place < made.samples_of_file


def test_a_folder_with_the_same_samples_is_used_again(folder: Path) -> None:
    before = (folder / "samples-00.bin").stat().st_mtime_ns
    provide(SET, lambda start, stop: pytest.fail("is written again"), folder)
    assert (folder / "samples-00.bin").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2}, "seed 1, not 2"),
        ({"samples": 11}, "samples 10, not 11"),
        ({"shape": (3, 2)}, r"shape \[2, 3\], not \[3, 2\]"),
        ({"data": "digits"}, "data generated, not digits"),
    ],
)
def test_a_folder_with_other_samples_is_refused(
    folder: Path, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=f"{words}: choose another --data-folder"):
        provide(replace(SET, **change), content, folder)


@pytest.mark.parametrize(
    "text",
    [None, "", "[]", "{}", '{"seed": 1}', "\x00", "[" * 100_000],
    ids=["none", "empty", "list", "object", "part", "byte", "deep"],
)
def test_a_folder_with_something_else_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / DESCRIPTION).write_text(text)
    with pytest.raises(UsageError, match="holds no samples that omb-py train wrote"):
        provide(SET, content, tmp_path)


@pytest.mark.parametrize(
    "name",
    ["file/samples", "long" * 100, "long" * 100 + "/samples"],
    ids=["in a file", "long", "in a long one"],
)
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OmbError, match=r"cannot write samples to .*; choose another --data-folder"):
        provide(SET, content, tmp_path / name)


def test_a_folder_that_another_node_has_written_meanwhile_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "samples"

    def meanwhile(start: int, stop: int) -> tuple[Any, Any]:
        if not folder.exists():
            provide(SET, content, folder)
        return content(start, stop)

    provide(SET, meanwhile, folder)
    assert list(tmp_path.iterdir()) == [folder]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    def full(start: int, stop: int) -> Any:
        raise OSError(28, "No space left on device")

    with pytest.raises(OmbError, match="No space left on device"):
        provide(SET, full, tmp_path / "samples")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "samples-00.bin").unlink()
    with pytest.raises(OmbError, match=r"cannot read .*samples-00.bin: No such file"):
        SampleFiles(SET, folder)


def test_a_file_that_is_cut_is_named(folder: Path, files: SampleFiles) -> None:
    with (folder / "samples-00.bin").open("r+b") as file:
        file.truncate(SET.record_bytes * 4 + 5)
    slot = Slot(SET, 1)
    slot.read(files, 3, 0)
    with pytest.raises(OmbError, match=r"samples-00.bin ends within sample 4: delete "):
        slot.read(files, 4, 0)


def threads() -> set[str]:
    """Those of loaders that run."""
    return {one.name for one in threading.enumerate() if one.name.startswith("loader")}


@given(
    st.lists(st.integers(0, 4), max_size=8).map(
        lambda sizes: list(zip(np.cumsum([0, *sizes]).tolist(), np.cumsum(sizes), strict=False))
    ),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_batches_come_whole_and_in_order_however_many_threads_read(
    batches: list[Range], workers: int, ahead: int
) -> None:
    def read(slot: Slot, number: int, place: int, stop: threading.Event) -> None:
        time.sleep(0.0001 * (number % 3))
        slot.labels[place] = number

    slots = [Slot(SET, 4) for _ in range(ahead + 1)]
    with (reader := ReadAhead(slots, batches, workers, read)):
        for start, stop in batches:
            found = reader.next((start, stop)).labels[: stop - start].copy()
            time.sleep(0.0001)
            assert found.tolist() == list(range(start, stop))
    assert not threads()


def test_no_more_batches_are_read_ahead_than_there_is_room_for() -> None:
    began: list[int] = []

    def read(slot: Slot, number: int, place: int, stop: threading.Event) -> None:
        began.append(number)

    def settled() -> list[int]:
        time.sleep(0.05)
        return sorted(began)

    batches = [(number, number + 1) for number in range(9)]
    with (reader := ReadAhead([Slot(SET, 1) for _ in range(3)], batches, 4, read)):
        assert settled() == [0, 1]
        reader.next(batches[0])
        assert settled() == [0, 1, 2]
        reader.next(batches[1])
        assert settled() == [0, 1, 2, 3]


@pytest.fixture
def failing() -> Iterator[ReadAhead]:
    def read(slot: Slot, number: int, place: int, stop: threading.Event) -> None:
        if number == 1:
            raise OmbError("the disk is gone")

    yield ReadAhead([Slot(SET, 1) for _ in range(3)], [(0, 1), (1, 2), (2, 3)], 2, read)
    assert not threads()


def test_what_a_thread_fails_by_ends_the_training(failing: ReadAhead) -> None:
    with pytest.raises(OmbError, match="the disk is gone"), failing:
        list(map(failing.next, [(0, 1), (1, 2), (2, 3)]))


def test_threads_end_at_once_with_a_training_that_is_interrupted() -> None:
    def read(slot: Slot, number: int, place: int, stop: threading.Event) -> None:
        stop.wait(60)

    began = time.monotonic()
    with (
        pytest.raises(KeyboardInterrupt),
        ReadAhead([Slot(SET, 1) for _ in range(3)], [(0, 1), (1, 2)], 4, read),
    ):
        raise KeyboardInterrupt
    assert not threads()
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"workers": 2}, "--workers is for --loader files"),
        ({"preprocess_time": 1.0}, "--preprocess-time is for --loader files"),
        ({"data_folder": "x"}, "--data-folder is for --loader files"),
    ],
)
def test_options_that_mean_nothing_are_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(Training(**values))


def test_the_description_is_json_that_a_person_can_read(folder: Path) -> None:
    found = json.loads((folder / DESCRIPTION).read_text())
    assert found["samples"] == 10
    assert found["shape"] == [2, 3]
    assert found["label_bytes"] == 8
