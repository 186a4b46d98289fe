"""The jobs that tests start do not disturb each other."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import run


def test_what_a_killed_launcher_leaves_behind_is_not_found_by_the_next(tmp_path: Path) -> None:
    leave = ["sh", "-c", 'echo "$TMPDIR"; touch "$TMPDIR/left-behind"']
    first, second = (run(leave, {}, tmp_path, timeout=10).out.strip() for _ in range(2))
    assert first != second
    assert not Path(first).exists()
    assert len(first) < 40, "sockets have room for 107 characters"
