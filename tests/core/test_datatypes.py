"""The types that -T takes are NumPy's, element for element and byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.datatypes import CONTIGUOUS, TYPES, Datatype, Layout, find_types, parse_layout
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses


@pytest.mark.parametrize("datatype", TYPES, ids=lambda datatype: datatype.name)
def test_an_element_is_numpys(datatype: Datatype) -> None:
    assert datatype.itemsize == np.dtype(datatype.dtype).itemsize
    packed = np.frombuffer(datatype.pack([1, 2, 100]), datatype.dtype)
    wanted = np.array([1, 2, 100])
    assert (packed.real == wanted).all()
    if datatype.components == 2:
        assert (packed.imag == wanted).all()


@pytest.mark.parametrize("datatype", TYPES, ids=lambda datatype: datatype.name)
def test_the_largest_exact_integer_is_exact(datatype: Datatype) -> None:
    values = np.frombuffer(datatype.pack([datatype.largest, datatype.largest - 1]), datatype.dtype)
    assert int(values[0].real) == datatype.largest
    assert values[0] != values[1]


def test_native_names_and_mpi_names_are_known() -> None:
    assert [found.mpi for found in find_types(["mpi_int", "MPI_DOUBLE", "float64"])] == [
        "INT",
        "DOUBLE",
    ]


def test_all_is_every_type_once() -> None:
    found = find_types(["all"])
    assert {datatype.mpi for datatype in found} == {datatype.mpi for datatype in TYPES}
    assert len({datatype.mpi for datatype in found}) == len(found)


def test_an_unknown_type_names_the_known_ones() -> None:
    with refuses(UsageError, "unknown type 'quad': all, mpi_char"):
        find_types(["quad"])


@given(st.binary(min_size=16, max_size=64).filter(lambda data: len(data) % 16 == 0))
def test_padding_does_not_count(data: bytes) -> None:
    (datatype,) = find_types(["longdouble"])
    if not datatype.padded:
        pytest.skip("no padding on this machine")
    clean = datatype.without_padding(data)
    for start in range(0, len(data), 16):
        assert clean[start : start + 10] == data[start : start + 10]
        assert clean[start + 10 : start + 16] == bytes(6)


@given(st.lists(st.integers(0, 2**8), min_size=1))
def test_bfloat16_is_the_first_half_of_a_float(values: list[int]) -> None:
    (brain,) = find_types(["bfloat16"])
    packed = np.frombuffer(brain.pack(values), np.uint16).astype(np.uint32) << 16
    assert packed.view(np.float32).tolist() == values
    assert brain.describe(brain.pack(values[:1])) == str(float(values[0]))


@given(st.lists(st.tuples(st.integers(0, 127), st.integers(0, 128)), min_size=1))
def test_sum_of_bfloat16_is_exact_where_it_fits(pairs: list[tuple[int, int]]) -> None:
    from omb_py.bindings.buffer import add_brain

    (brain,) = find_types(["bfloat16"])
    first, second = (
        np.frombuffer(brain.pack(part), np.uint16).copy() for part in zip(*pairs, strict=True)
    )
    add_brain(first, second)
    assert second.tobytes() == brain.pack(map(sum, pairs))


def test_contiguous_sends_everything() -> None:
    assert parse_layout("cont") == CONTIGUOUS
    assert CONTIGUOUS.pieces(5) == ((0, 5),)
    assert CONTIGUOUS.transmitted(5) == 5


@pytest.mark.parametrize(("size", "transmitted"), [(8, 4), (16, 8), (32, 16), (64, 32)])
def test_a_vector_sends_what_native_omb_sends(size: int, transmitted: int) -> None:
    assert parse_layout("vect:8:4").transmitted(size) == transmitted


@given(st.integers(1, 50), st.data(), st.integers(0, 500))
def test_pieces_of_a_vector_lie_within_the_message(
    stride: int, data: st.DataObject, elements: int
) -> None:
    layout = Layout("", stride=stride, length=data.draw(st.integers(1, stride)))
    pieces = layout.pieces(elements)
    assert all(start + length <= elements for start, length in pieces)
    assert layout.transmitted(elements) == sum(length for _, length in pieces)


def test_a_file_keeps_its_last_block(tmp_path: Path) -> None:
    path = tmp_path / "layout.txt"
    path.write_text("# displacement, length\n0,2\n\n5, 3  # gap before\n12,5")
    layout = parse_layout(f"indx:{path}")
    assert layout.blocks == ((0, 2), (5, 3), (12, 5))
    assert layout.transmitted(17) == 10
    assert layout.transmitted(64) == 10
    assert layout.transmitted(16) == 0


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("vect", "STRIDE:BLOCK"),
        ("vect:8", "STRIDE:BLOCK"),
        ("vect:8:x", "two whole numbers"),
        ("vect:4:8", "1 to STRIDE"),
        ("vect:4:0", "1 to STRIDE"),
        ("diag:3", "use cont"),
        ("cont:3", "use cont"),
        ("indx:", "use cont"),
        ("indx:/no/such/file", "cannot read"),
        ("indx:FILE|", "has no line"),
        ("indx:FILE|1;2", "line 1"),
        ("indx:FILE|0,4\n2,4", "overlaps"),
        ("indx:FILE|0,4\n-1,4", "line 2"),
    ],
)
def test_impossible_layout_refused(tmp_path: Path, text: str, word: str) -> None:
    name, _, content = text.partition("|")  # of FILE
    (tmp_path / "layout.txt").write_text(content)
    with pytest.raises(UsageError, match=word):
        parse_layout(name.replace("FILE", str(tmp_path / "layout.txt")))
