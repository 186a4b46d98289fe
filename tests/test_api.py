"""The examples of docs/python.md run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_examples_for_python_run(tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "python.md").read_text())
    assert len(blocks) >= 6
    program = "".join(blocks).replace("/tmp/", f"{tmp_path}/")
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:__main__", "-c", program],
        cwd=ROOT,
        env=os.environ | {"MPI4PY_LIBMPI": "/nowhere/libmpi.so"},  # none of it needs MPI
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("latency*.png"))


def test_nothing_is_imported_for_the_interface_until_it_is_used() -> None:
    program = "import sys, omb_py; print('pandas' in sys.modules, 'typing' in dir(omb_py))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]
    assert "load" in dir(__import__("omb_py"))
