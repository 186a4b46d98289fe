"""-D: what is sent of a message, right also where native OMB is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.datatypes.layout import CONTIGUOUS, Layout, parse_layout
from omb_py.core.errors import UsageError


def test_contiguous_sends_everything() -> None:
    assert parse_layout("cont") == CONTIGUOUS
    assert CONTIGUOUS.pieces(5) == ((0, 5),)
    assert CONTIGUOUS.transmitted(5) == 5


@pytest.mark.parametrize(("size", "transmitted"), [(8, 4), (16, 8), (32, 16), (64, 32)])
def test_a_vector_sends_what_native_omb_sends(size: int, transmitted: int) -> None:
    assert parse_layout("vect:8:4").transmitted(size) == transmitted


@given(st.integers(1, 50), st.data(), st.integers(0, 500))
def test_pieces_of_a_vector_fit_a_message(stride: int, data: st.DataObject, elements: int) -> None:
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
    ],
)
def test_what_is_no_layout_is_said(text: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        parse_layout(text)


@pytest.mark.parametrize(
    ("content", "word"),
    [("", "has no line"), ("1;2", "line 1"), ("0,4\n2,4", "overlaps"), ("0,4\n-1,4", "line 2")],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, content: str, word: str) -> None:
    path = tmp_path / "layout.txt"
    path.write_text(content)
    with pytest.raises(UsageError, match=word):
        parse_layout(f"indx:{path}")
