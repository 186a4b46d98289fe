"""The Python interface loads nothing that is not asked for."""

from __future__ import annotations

import subprocess
import sys


def test_nothing_is_imported_for_the_interface_until_it_is_used() -> None:
    program = "import sys, omb_py; print('pandas' in sys.modules, 'typing' in dir(omb_py))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]
    assert "load" in dir(__import__("omb_py"))
