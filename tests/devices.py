"""What tests of devices need: MPI libraries, and array libraries that run on the stand-in.

The driver is `tests/fakecuda`, whose memory kills whoever reads it as if it were the host's.
"""

from __future__ import annotations

from pathlib import Path

from perf.launchers import Launcher, aware_launchers, own_launcher
from tests.conftest import Finished

__all__ = [
    "Launcher",
    "assert_refused",
    "aware_launchers",
    "libraries",
    "own_launcher",
    "with_driver",
]


def assert_refused(done: Finished, words: str) -> None:
    """A job that cannot be done says why and ends."""
    assert done.code in (1, 2, 5)
    assert words in done.err
    assert "Traceback" not in done.err


def with_driver(launcher: Launcher, driver: Path) -> dict[str, str]:
    """The environment of a job that finds the stand-in before any real driver."""
    return launcher.with_libraries(str(driver.parent))


def libraries() -> list[str]:
    """The buffers that run on the stand-in here: our own arrays, and real ones if installed."""
    from importlib.util import find_spec

    packages = {"raw": "numpy", "numba": "numba_cuda", "pycuda": "pycuda"}
    return [name for name, package in packages.items() if find_spec(package) is not None]
