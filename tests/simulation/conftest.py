"""SimGrid for tests: the interpreter's own, or that of Debian's package for the same Python."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

DEBIAN = Path("/usr/lib/python3/dist-packages")


@pytest.fixture(scope="session")
def simgrid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """SimGrid, importable here and in processes that are started."""
    if find_spec("simgrid") is not None:
        yield
        return
    module = DEBIAN / f"simgrid{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not module.exists():
        pytest.skip("SimGrid is not installed for this Python")
    folder = tmp_path_factory.mktemp("simgrid")
    (folder / module.name).symlink_to(module)
    before = os.environ.get("PYTHONPATH")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{before}" if before else str(folder))
        yield
    assert str(folder) not in sys.path
