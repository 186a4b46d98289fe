"""Every Python block of a page runs as it is written, beside the files that it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import BIN, run, succeeded
from tests.docs.pages import DOCS

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
MODULE = re.compile(r"# \S+\.py\n")
"""Blocks that are whole modules have tests of their own (`test_extending`)."""

BEFORE = {
    "extending.md": """
from __future__ import annotations
from collections.abc import Iterator
from omb_py.benchmarks.algorithms.members import Members
from omb_py.core.calls import Message, Step
""",
    "simulate.md": "import omb_py\n",
    "results.md": "import omb_py, pandas\n",
    "timeline.md": "from types import SimpleNamespace\nepochs, batch = 2, None\n"
    "network = lambda batch: SimpleNamespace(backward=lambda: None)\n",
}
"""What blocks that begin in the middle of a program need."""


def blocks_of(page: str) -> list[str]:
    """The Python blocks of a page."""
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return [block for block in found if not MODULE.match(block)]


PAGES = sorted(
    name for path in DOCS.rglob("*.md") if blocks_of(name := str(path.relative_to(DOCS)))
)


@pytest.fixture(scope="module")
def folder(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results in both formats, and the profile of the program of a page."""
    found = tmp_path_factory.mktemp("blocks")
    for name in ("results", "tests"):
        (found / name).symlink_to(ROOT / name)
    for name in ("results.csv", "results.json"):
        shown = run(
            [f"{BIN}/omb-py", "show", "results/two-core-vm.csv", "-o", name], {}, found, timeout=60
        )
        assert shown.code == 0, shown.err
    (program,) = blocks_of("howto/my-program.md")
    (found / "solver.py").write_text(program)
    profiled = [mpi, "-n", "2", f"{BIN}/omb-py", "profile", "solver.py"]
    succeeded(run(profiled, {}, found, timeout=60))
    return found


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page: str, folder: Path) -> None:
    program = BEFORE.get(page, "") + "\n".join(blocks_of(page)).replace("/tmp/", "")
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:__main__", "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
