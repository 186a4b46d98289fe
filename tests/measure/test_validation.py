"""The data that messages carry, and the check that finds any byte of it changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omb_py.benchmarks import CheckedIteration, Content
from omb_py.buffers import BUFFERS, PAGE, Buffer
from omb_py.core.datatypes import TYPES, Datatype
from omb_py.core.errors import OmbError
from omb_py.measure.validation import (
    MIN_PERIOD_OF_SUMS,
    UNTOUCHED,
    DataCheck,
    check_log,
    tile,
    weight,
    write_log,
)
from tests.helpers.properties import examples
from tests.helpers.refusals import assert_names, refuses

DATATYPES = st.sampled_from(TYPES)
BUFFER_NAMES = ("bytearray", "numpy")


def contents(datatype: Datatype, content: Content, ranks: int, iteration: int) -> np.ndarray:
    return np.frombuffer(tile(content, datatype, ranks, 64, iteration), datatype.dtype)


def content_of(buffer: Buffer, datatype: Datatype, elements: int, sources: range) -> Content:
    memory = buffer.allocate(elements * datatype.itemsize, datatype)
    return Content(memory, sources, added=len(sources) > 1)


@pytest.mark.parametrize("name", BUFFER_NAMES)
@given(datatype=DATATYPES, elements=st.integers(1, 3000), data=st.data())
@examples(60)
def test_any_byte_is_found(
    name: str, datatype: Datatype, elements: int, data: st.DataObject
) -> None:
    content = content_of(BUFFERS.load(name), datatype, elements, range(3, 4))
    memory = content.memory
    check = DataCheck(rank=1, ranks=4, size=memory.nbytes, datatype=datatype)
    iteration = CheckedIteration((), inputs=(content,), outputs=(content,))
    check.fill(iteration, 5)
    assert check.faults(iteration, 5) == []
    offset = data.draw(st.integers(0, memory.nbytes - 1))
    whole = bytearray(memory.read(0, memory.nbytes))
    whole[offset] ^= data.draw(st.integers(1, 255))
    memory.write(whole if name == "bytearray" else memoryview(whole))
    faults = check.faults(iteration, 5)
    if datatype.without_padding(bytes(whole)) == datatype.without_padding(
        memory_before(check, content)
    ):
        assert faults == []
    else:
        assert f"rank 1, offset {offset} of {memory.nbytes} bytes of block 0 of rank 3" in faults[0]


PADDED = [datatype for datatype in TYPES if datatype.padded]


@pytest.mark.skipif(not PADDED, reason="no type has padding on this machine")
@pytest.mark.parametrize("name", BUFFER_NAMES)
@pytest.mark.parametrize("datatype", PADDED, ids=lambda datatype: datatype.name)
def test_only_bytes_without_a_value_may_differ(name: str, datatype: Datatype) -> None:
    content = content_of(BUFFERS.load(name), datatype, 3, range(3, 4))
    check = DataCheck(rank=1, ranks=4, size=content.memory.nbytes, datatype=datatype)
    iteration = CheckedIteration((), inputs=(content,), outputs=(content,))
    check.fill(iteration, 5)
    whole = content.memory.read(0, content.memory.nbytes)
    carries = datatype.without_padding(b"\xff" * len(whole))
    found = []
    for offset in range(len(whole)):
        changed = bytearray(whole)
        changed[offset] ^= 0xFF
        content.memory.write(changed if name == "bytearray" else memoryview(changed))
        found.append(bool(check.faults(iteration, 5)))
    assert found == [byte != 0 for byte in carries]
    assert True in found
    assert False in found


def memory_before(check: DataCheck, content: Content) -> bytes:
    pattern = tile(content, check.datatype, check.ranks, check.size, 5)
    return (pattern * (content.memory.nbytes // len(pattern) + 1))[: content.memory.nbytes]


@pytest.mark.parametrize("name", BUFFER_NAMES)
@pytest.mark.parametrize("datatype", TYPES, ids=lambda datatype: datatype.name)
def test_memory_that_nothing_was_written_to_is_found(name: str, datatype: Datatype) -> None:
    content = content_of(BUFFERS.load(name), datatype, 3, range(1))
    check = DataCheck(0, 1, content.memory.nbytes, datatype)
    iteration = CheckedIteration((), outputs=(content,))
    check.fill(iteration, 0)
    assert len(check.faults(iteration, 0)) == 1


@given(DATATYPES, st.integers(1, 600), st.integers(0, 100))
def test_sums_are_exact_and_fit(datatype: Datatype, ranks: int, iteration: int) -> None:
    memory = BUFFERS.load("bytearray").allocate(0, datatype)
    each = [
        contents(datatype, Content(memory, range(rank, rank + 1), added=True), ranks, iteration)
        for rank in range(ranks)
    ]
    wide = np.sum([np.asarray(values, np.complex128) for values in each], axis=0)
    assert abs(wide.real).max() <= datatype.largest
    everyone = Content(memory, range(ranks), added=True)
    assert (contents(datatype, everyone, ranks, iteration) == wide).all()
    before = Content(memory, range(ranks // 2), added=True)
    if ranks > 1:
        partial = np.sum([np.asarray(v, np.complex128) for v in each[: ranks // 2]], axis=0)
        assert (contents(datatype, before, ranks, iteration) == partial).all()


@given(DATATYPES, st.integers(1, 2000), st.integers(0, 100), st.booleans())
@example(TYPES[0], 29, 0, True)
def test_no_element_looks_untouched_and_sums_are_many_values(
    datatype: Datatype, ranks: int, iteration: int, added: bool
) -> None:
    memory = BUFFERS.load("bytearray").allocate(0, datatype)
    content = Content(memory, range(ranks if added else 1), added=added)
    data = tile(content, datatype, ranks, 64, iteration)
    elements = {data[i : i + datatype.itemsize] for i in range(0, len(data), datatype.itemsize)}
    assert UNTOUCHED * datatype.itemsize not in elements
    assert len(elements) >= MIN_PERIOD_OF_SUMS


@given(st.integers(1, 2000), DATATYPES)
def test_every_rank_contributes_in_some_iteration(ranks: int, datatype: Datatype) -> None:
    for rank in {0, ranks // 2, ranks - 1}:
        assert any(weight(rank, ranks, datatype, iteration) for iteration in range(ranks))
    assert any(weight(rank, ranks, datatype, 0) for rank in range(ranks))


@given(DATATYPES, st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_data_differs_by_place(datatype: Datatype, rank: int, block: int, iteration: int) -> None:
    memory = BUFFERS.load("bytearray").allocate(0, datatype)

    def data(source: int, index: int, step: int) -> bytes:
        return tile(Content(memory, range(source, source + 1), index), datatype, 64, 8, step)

    base = data(rank, block, iteration)
    assert base != data(rank + 1, block, iteration)
    assert base != data(rank, block + 1, iteration)
    assert base != data(rank, block, iteration + 1)


def test_a_part_of_a_sum_starts_where_the_part_does() -> None:
    (datatype,) = [datatype for datatype in TYPES if datatype.name == "int32"]
    memory = BUFFERS.load("bytearray").allocate(0, datatype)
    whole = contents(datatype, Content(memory, range(3), added=True), 3, 1)
    part = contents(datatype, Content(memory, range(3), start=7, added=True), 3, 1)
    assert (part[:100] == whole[7:107]).all()


@pytest.mark.parametrize("name", BUFFER_NAMES)
@given(nbytes=st.integers(0, 10_000), length=st.integers(1, 600), seed=st.integers(0, 1000))
def test_memory_tiles_compares_and_slices(name: str, nbytes: int, length: int, seed: int) -> None:
    (datatype,) = [datatype for datatype in TYPES if datatype.name == "uint8"]
    memory = BUFFERS.load(name).allocate(nbytes, datatype)
    assert memory.nbytes == nbytes
    pattern = np.random.default_rng(seed).integers(0, 256, length, np.uint8).tobytes()
    memory.fill(pattern)
    tiled = (pattern * (nbytes // length + 1))[:nbytes]
    assert memory.read(0, nbytes) == tiled
    assert memory.first_difference(pattern) is None
    half = memory.slice(nbytes // 2, nbytes - nbytes // 2)
    assert half.read(0, half.nbytes) == tiled[nbytes // 2 :]
    half.fill(b"\0")
    assert memory.read(0, nbytes) == tiled[: nbytes // 2] + bytes(half.nbytes)
    different = [i for i in range(nbytes) if memory.read(i, 1) != tiled[i : i + 1]]
    assert memory.first_difference(pattern) == (different[0] if different else None)


@pytest.mark.parametrize("name", BUFFER_NAMES)
@pytest.mark.parametrize("nbytes", [1, 100, 4096, 1 << 20])
def test_memory_is_aligned_to_the_page(name: str, nbytes: int) -> None:
    (datatype,) = [datatype for datatype in TYPES if datatype.name == "int8"]
    memory = BUFFERS.load(name).allocate(nbytes, datatype)
    address = np.frombuffer(memory.array, np.uint8).__array_interface__["data"][0]
    assert address % PAGE == 0


@pytest.mark.parametrize(
    ("sources", "origin", "expected", "received"),
    [
        (range(2, 3), "block 4 of rank 2", "152 (0x98000000)", "65688 (0x98000100)"),
        (range(3), "sum ranks 0 to 2", "372 (0x74010000)", "65908 (0x74010100)"),
    ],
)
def test_fault_has_place_and_value(
    sources: range, origin: str, expected: str, received: str
) -> None:
    (datatype,) = [datatype for datatype in TYPES if datatype.name == "int32"]
    memory = BUFFERS.load("bytearray").allocate(40, datatype)
    content = Content(memory, sources, block=4, added=len(sources) > 1)
    check = DataCheck(rank=5, ranks=3, size=40, datatype=datatype)
    iteration = CheckedIteration((), inputs=(content,), outputs=(content,))
    check.fill(iteration, number=1)
    data = bytearray(memory.read(0, 40))
    data[34] ^= 1
    memory.write(data)
    (fault,) = check.faults(iteration, number=1)
    assert_names(fault, f"rank 5, offset 34 of 40 {origin} iteration 1: {expected}, {received}")
    assert fault.index(expected) < fault.index(received)


def test_faults_are_added_to_the_log_of_their_rank(tmp_path: Path) -> None:
    folder = str(tmp_path / "log")
    check_log(folder, 3)
    assert list(Path(folder).iterdir()) == []
    for where in ("8 bytes", "16 bytes"):
        path = write_log(folder, 3, where, ["one", "wrong \N{HORIZONTAL ELLIPSIS}"])
        check_log(folder, 3)
    assert path == str(tmp_path / "log" / "rank-3.log")
    assert Path(path).read_text(encoding="utf-8").splitlines() == [
        "8 bytes: one",
        "8 bytes: wrong \N{HORIZONTAL ELLIPSIS}",
        "16 bytes: one",
        "16 bytes: wrong \N{HORIZONTAL ELLIPSIS}",
    ]


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with refuses(OmbError, f"cannot write {tmp_path}/file/rank-0.log: Not a directory; -clog"):
        check_log(str(tmp_path / "file"), 0)
