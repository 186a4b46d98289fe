"""A part of a file is filled, compared, read and written like any memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.measure import files
from omb_py.measure.files import FileMemory

TILES = st.binary(min_size=1, max_size=70)


@given(st.integers(0, 50), st.integers(0, 300), TILES, st.integers(1, 64), st.data())
def test_part_of_a_file_is_filled_compared_and_sliced_as_bytes(
    start: int, nbytes: int, tile: bytes, chunk: int, data: st.DataObject
) -> None:
    with tempfile.NamedTemporaryFile() as file, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(files, "CHUNK", chunk)
        before = bytes(range(256)) * 2
        file.write(before)
        file.flush()
        memory = FileMemory(file.name, start, nbytes)
        memory.fill(tile)
        wanted = bytearray((tile * nbytes)[:nbytes])
        content = Path(file.name).read_bytes()
        assert content == before[:start] + wanted + before[start + nbytes :]
        assert memory.read(0, nbytes) == wanted
        assert memory.first_difference(tile) is None
        first = data.draw(st.integers(0, nbytes))
        part = memory.slice(first, nbytes - first)
        assert part.nbytes == nbytes - first
        assert part.read(0, part.nbytes) == wanted[first:]
        if part.nbytes:
            wanted[first] ^= data.draw(st.integers(1, 255))
            part.write(memoryview(wanted)[first:])
            assert memory.first_difference(tile) == first
            assert memory.read(first, 1) == wanted[first : first + 1]


def test_a_file_that_ends_too_early_differs_where_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"abcab")
    assert FileMemory(str(path), 0, 9).first_difference(b"abc") == 5
    path.write_bytes(b"")
    assert FileMemory(str(path), 0, 4).first_difference(b"\0\1") == 1


def test_another_length_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(8))
    with pytest.raises(ValueError, match="3 bytes arrived instead of 8"):
        FileMemory(str(path), 0, 8).write(b"abc")
