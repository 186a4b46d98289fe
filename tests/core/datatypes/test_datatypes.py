"""The types that -T takes are NumPy's, element for element and byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.datatypes import TYPES, Datatype, find_types
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
