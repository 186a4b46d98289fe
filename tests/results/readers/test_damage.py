"""Whatever happens to a file, in every format: whole rows stay, and no others appear."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.table import load
from omb_py.core.errors import OmbError
from tests import ROOT
from tests.helpers.damage import noisy, without_place
from tests.helpers.properties import examples
from tests.helpers.reading import read

DATA = ROOT / "tests" / "data"
FILES = [
    path
    for folder in ("omb", "imb", "nccl-tests", "below")
    for path in sorted((DATA / folder).iterdir())
    if path.suffix in (".txt", ".json")
    and path.stem != "table_alone"  # which nothing but its name would say the program of
]
FILE = st.sampled_from(FILES)


def rows(content: bytes, path: Path) -> list[dict[str, Any]]:
    """The rows of a file of that name, without the rates that native OMB's -V prints later."""
    later = ("messages_per_s",) if "vari" in path.stem else ()
    return without_place(read(path.name, content).rows, later)


@given(FILE, st.data())
@examples(400)
def test_cut_anywhere_keeps_rows_before_it(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    whole = rows(content, path)
    part = rows(content[: data.draw(st.integers(0, len(content)))], path)
    assert part == whole[: len(part)]


@given(FILE, st.data())
@examples(400)
def test_noise_between_lines_changes_nothing(path: Path, data: st.DataObject) -> None:
    text = path.read_text()
    told = rows(data.draw(noisy(text)).encode(), path)
    assert told == rows(text.encode(), path)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_lines_may_end_in_any_way(path: Path, end: str) -> None:
    text = path.read_text()
    assert rows(text.replace("\n", end).encode(), path) == rows(text.encode(), path)


@given(st.binary(max_size=400), FILE, st.integers(0, 4000), st.binary(max_size=400))
@examples(400)
def test_no_bytes_make_a_reader_raise(before: bytes, path: Path, cut: int, after: bytes) -> None:
    content = path.read_bytes()
    read("job.log", before + content[:cut] + after + content[cut:] + before)


ODD = (b'"', b"\x00", b"nan", b"-1", b"1.5", b"1e999", b"9" * 400, b"{" * 9000, b"[]", b"")


@pytest.mark.long
@given(st.sampled_from([*FILES, ROOT / "results" / "abi.csv"]), st.randoms())
@examples(400)
def test_odd_numbers_and_any_order_are_rows_or_a_sentence(path: Path, chance: Random) -> None:
    content = path.read_bytes()
    for number in chance.sample([*re.finditer(rb"\d+(?:\.\d+)?", content)], 1):
        content = content[: number.start()] + chance.choice(ODD) + content[number.end() :]
    lines = content.splitlines(keepends=True)
    if chance.random() < 0.5:
        lines = chance.sample(lines, len(lines))
    with TemporaryDirectory() as folder:
        damaged = Path(folder) / path.name
        damaged.write_bytes(b"".join(lines))
        try:
            load(damaged)
        except OmbError as error:
            assert str(error)
            assert "\n" not in str(error)
