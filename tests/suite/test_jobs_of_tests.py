"""The jobs that tests start do not disturb each other, nor does a busy machine."""

from __future__ import annotations

import re
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests import ROOT
from tests.conftest import run
from tests.helpers.properties import examples


def test_next_launcher_ignores_a_killed_one_s_files(tmp_path: Path) -> None:
    leave = ["sh", "-c", 'echo "$TMPDIR"; touch "$TMPDIR/left-behind"']
    first, second = (run(leave, {}, tmp_path, timeout=60).out.strip() for _ in range(2))
    assert first != second
    assert not Path(first).exists()
    assert len(first) < 40, "sockets have room for 107 characters"


@examples(5)
@given(seconds=st.just(0.25))
def test_an_example_may_take_longer_than_hypothesis_expects(seconds: float) -> None:
    time.sleep(seconds)


def test_examples_and_their_time_are_set_in_one_place() -> None:
    """A limit of time fails on a busy machine, a number of its own is that of every layer."""
    tests = ROOT / "tests"
    own = re.compile(r"\b(deadline|max_examples)=")
    files = [path for path in tests.rglob("*.py") if "@given" in path.read_text(encoding="utf-8")]
    assert len(files) > 50
    assert [path.name for path in files if own.search(path.read_text(encoding="utf-8"))] == []
