"""The jobs that tests start do not disturb each other, nor does a busy machine."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import PLUGIN, run


def test_next_launcher_ignores_a_killed_one_s_files(tmp_path: Path) -> None:
    leave = ["sh", "-c", 'echo "$TMPDIR"; touch "$TMPDIR/left-behind"']
    first, second = (run(leave, {}, tmp_path, timeout=60).out.strip() for _ in range(2))
    assert first != second
    assert not Path(first).exists()
    assert len(first) < 40, "sockets have room for 107 characters"


def test_examples_and_their_time_are_set_in_one_place() -> None:
    """A limit of time fails on a busy machine, a number of its own is that of every layer."""
    tests = ROOT / "tests"
    own = re.compile(r"\b(deadline|max_examples)=")
    files = [path for path in tests.rglob("*.py") if "@given" in path.read_text(encoding="utf-8")]
    assert len(files) > 50
    assert [path.name for path in files if own.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("own", [None, "lent"])
def test_what_tests_start_imports_the_checkout_on_the_pythonpath(
    own: str | None, tmp_path: Path
) -> None:
    inner = "import os; print(os.environ['PYTHONPATH'])"
    given = {} if own is None else {"PYTHONPATH": own}
    outer = (
        "import sys; from pathlib import Path; from tests.conftest import run;"
        f"print(run([sys.executable, '-c', {inner!r}], {given}, Path(), 60).out)"
    )
    command = [sys.executable, "-c", outer]
    done = run(command, {"PYTHONPATH": os.pathsep.join([str(ROOT), "checkout"])}, tmp_path, 60)
    folders = done.out.split(os.pathsep)
    assert folders[0] == (own or str(PLUGIN))
    assert "checkout" in [folder.strip() for folder in folders]
