"""Files of text that people edit: one sentence for whatever they hold, in each command."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.analysis import references
from omb_py.core.calls.skew import read_matrix
from omb_py.core.datatypes import number_pairs
from omb_py.core.errors import OmbError
from omb_py.simulation import network
from omb_py.sweeps import toml
from omb_py.sweeps.machine import Machine
from tests.conftest import Run
from tests.helpers.refusals import assert_refused, refuses

CONTENTS = {
    "binary": (bytes(range(256)), "it is not UTF-8 text"),
    "gzip": (gzip.compress(b"name = 1"), "it is not UTF-8 text"),
    "deep": (b"a = " + b"[" * 100_000, ""),
    "utf-16": ("name = 1".encode("utf-16"), ""),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_what_no_reader_can_read_is_one_sentence(
    tmp_path: Path, in_process: Run, kind: str
) -> None:
    content, words = CONTENTS[kind]
    for name in ("one.toml", "one.json", "one.csv"):
        (tmp_path / name).write_bytes(content.removeprefix(b"a = " if "json" in name else b""))
    path = tmp_path / "one.toml"
    readers: list[Callable[[], object]] = [
        lambda: toml.read(path, Machine),
        lambda: network.read(path),
        lambda: references.load(str(tmp_path / "one.json")),
        lambda: references.load(str(tmp_path / "one.csv")),
        lambda: number_pairs(str(path), "--node-map", "N,N"),
        lambda: read_matrix(str(path)),
    ]
    for read in readers:
        with refuses(OmbError, words):
            read()
    if words:
        assert_refused(in_process("machine", "show", "./one.toml"), 1, words)
