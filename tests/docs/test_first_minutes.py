"""What README says first works, with nothing but what it says: `make run`, then its lines."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import BIN, run, succeeded
from tests.docs.outputs import documented, results
from tests.docs.pages import FENCE

pytestmark = [
    pytest.mark.usefixtures("mpi", "long_time"),
    pytest.mark.any_library,
    pytest.mark.xdist_group("first minutes"),  # one environment for all
]

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [block["text"] for block in FENCE.finditer(README) if block["language"] == "sh"]
FIRST, *LATER = BLOCKS[0].splitlines()
LINES = [line for block in BLOCKS[1:] for line in block.splitlines()]
HOW_TO = [page for page in documented() if page.parent.name in ("howto", "tutorials")]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout in which README's first command has run."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    folder = tmp_path_factory.mktemp("checkout")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    words = [*shlex.split(FIRST, comments=True), f"PYTHON={sys.executable}"]
    done = succeeded(run(words, clean(), folder, timeout=1200))
    for line in LATER:
        assert shlex.join(shlex.split(line, comments=True)) in done.out.splitlines()
    return folder


def clean() -> dict[str, str]:
    """An environment without the programs and modules of the one that runs tests."""
    paths = [path for path in os.environ["PATH"].split(os.pathsep) if Path(path) != BIN]
    return {"PATH": os.pathsep.join(paths), "PYTHONPATH": "", "VIRTUAL_ENV": ""}


def test_readme_s_lines_run_one_after_the_other(checkout: Path) -> None:
    assert len(LINES) == 4
    for line in LINES:
        script = "\n".join(["set -e", *LATER, line])
        done = run(["bash", "-c", script], clean(), checkout, timeout=900)
        assert done.code == 0, f"{line}\n{done.err}"


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_first_command_of_a_page_runs(checkout: Path, page: Path, tmp_path: Path) -> None:
    shown = results(page.read_text(encoding="utf-8"), tmp_path, checkout / ".venv" / "bin")
    next(shown)
