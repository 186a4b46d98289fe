"""The jobs that tests start do not disturb each other, nor does a busy machine."""

from __future__ import annotations

import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import run


def test_what_a_killed_launcher_leaves_behind_is_not_found_by_the_next(tmp_path: Path) -> None:
    leave = ["sh", "-c", 'echo "$TMPDIR"; touch "$TMPDIR/left-behind"']
    first, second = (run(leave, {}, tmp_path, timeout=10).out.strip() for _ in range(2))
    assert first != second
    assert not Path(first).exists()
    assert len(first) < 40, "sockets have room for 107 characters"


@settings(max_examples=1)
@given(seconds=st.just(0.25))
def test_an_example_may_take_longer_than_hypothesis_expects(seconds: float) -> None:
    time.sleep(seconds)
