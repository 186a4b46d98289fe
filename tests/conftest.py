"""Starts real jobs: `mpiexec` is a fixture that runs the suite on real ranks.

What a test needs, it says by the fixtures that it uses: `tests/layers.py` tells layers by them.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import mpi4py
import pytest

from omb_py.cli import main
from tests.helpers.browsers import chromium, find_chromium
from tests.helpers.pace import is_over

pytest_plugins = [
    *("tests.layers", "tests.helpers.properties"),
    # no conftest.py of those folders: pytest loses one between files of two folders alternately
    *("tests.mpi.fixtures", "tests.hosts.fixtures", "tests.schedulers.fixtures"),
    "tests.tracing.fixtures",
]

mpi4py.rc.initialize = False  # MPI starts once in a process, and this one runs many tests

BIN = Path(sys.executable).parent
OMB_PY, MPIEXEC = str(BIN / "omb-py"), str(BIN / "mpiexec")
CHOOSES_ITS_LIBRARY = len(list(Path(mpi4py.__file__).parent.glob("MPI.*.so"))) > 1
"""Whether mpi4py has modules for several ABIs, as from PyPI: else it is linked with its library."""

PLUGIN = Path(__file__).parent / "plugin"
COVERING = [Path(__file__).parent / "covering"] if "COVERAGE_PROCESS_CONFIG" in os.environ else []


def python_path(*folders: str | Path) -> str:
    """A PYTHONPATH of some folders, then those of this process, as of a checkout under test."""
    inherited = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([*map(str, folders), *([inherited] if inherited else [])])


ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,sm",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_osc": "^ucx",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "16",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PYTHONPATH": python_path(PLUGIN, *COVERING),
}


@dataclass(frozen=True)
class Finished:
    """A job that has ended: its exit code, what it printed, and the seconds that it took."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def sentences(self) -> list[str]:
        """What our ranks said on stderr, without the launcher's words and that cores are few or
        used by others."""
        ours = [line for line in self.err.splitlines() if line.startswith("omb-py: ")]
        return [line for line in ours if " cores of " not in line]

    @property
    def rows(self) -> list[list[str]]:
        """The lines of native OMB's table, split into cells."""
        # a launcher can pass stderr on as stdout
        noise = ("#", "omb-py: ")
        lines = [line for line in self.out.splitlines() if line and not line.startswith(noise)]
        return [line.split() for line in lines]


Run: TypeAlias = Callable[..., Finished]
"""Runs the command with the arguments that it is called with, to its end."""


def succeeded(done: Finished) -> Finished:
    """Return what came of a command, after asserting that its exit code is 0."""
    assert done.code == 0, done.err
    return done


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, without its comments."""
    return rows_in_text(path.read_text())


def points_of(folder: Path) -> dict[str, str]:
    """The text of each file of rows in the folder of a sweep.

    A running sweep may take a file away between its listing and its reading.
    """
    texts = {}
    for path in folder.glob("points/*.csv"):
        with suppress(FileNotFoundError):
            texts[path.name] = path.read_text()
    return texts


def rows_in_text(text: str) -> list[dict[str, str]]:
    """The rows of a text of CSV, without its comments."""
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


@contextmanager
def own_temporary_folder() -> Iterator[dict[str, str]]:
    """The environment of one job, with a TMPDIR of its own that goes with it.

    A launcher of Open MPI that was killed leaves a folder named after its process number, and a
    later launcher that happens to get the same number then refuses to start.
    """
    with tempfile.TemporaryDirectory(prefix="job-", ignore_cleanup_errors=True) as folder:
        yield os.environ | ENVIRONMENT | {"TMPDIR": folder}


def run(command: list[str], environment: dict[str, str], cwd: Path, timeout: float) -> Finished:
    """Run a command to its end; it fails the test when it takes longer than ``timeout``.

    That is for a quick, quiet machine: a slower one has more time (`tests.helpers.pace`). An empty
    PYTHONPATH in ``environment`` stays empty; another one is followed by this process's.
    """
    if environment.get("PYTHONPATH"):
        environment = environment | {"PYTHONPATH": python_path(environment["PYTHONPATH"])}
    start = time.monotonic()
    with own_temporary_folder() as own:
        process = subprocess.Popen(
            command,
            env=own | environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = output_of(process, timeout)
    return Finished(
        process.returncode,
        out.decode(errors="replace"),
        err.decode(errors="replace"),
        time.monotonic() - start,
    )


def output_of(process: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes]:
    """Wait for a process to end and return its output; kill it when the limit of time is over."""
    begun, wait = time.monotonic(), timeout
    while True:
        try:
            return process.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            wait = 1.0
            if is_over(begun, timeout):
                process.kill()
                process.communicate()
                raise
        except BaseException:
            process.kill()
            raise


@pytest.fixture
def omb_py(tmp_path: Path) -> Run:
    """``omb_py(*arguments)`` runs the command by itself, in an empty folder."""

    def start(*arguments: str, timeout: float = 60, **environment: str) -> Finished:
        return run([OMB_PY, *arguments], environment, tmp_path, timeout)

    return start


@pytest.fixture
def in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same without a Python of its own, whose start takes longer than most commands."""

    def start(*arguments: str, **environment: str) -> Finished:
        out, err = (TextIOWrapper(BytesIO(), "utf-8") for _ in range(2))
        began = time.monotonic()
        with (
            monkeypatch.context() as patch,
            own_temporary_folder() as own,
            mock.patch.dict(os.environ, own | environment),  # restores what the command changes too
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("default", UserWarning)
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", ["omb-py", *arguments])
            with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
                main()
        seconds = time.monotonic() - began
        mpi = sys.modules.get("mpi4py.MPI")
        assert mpi is None or not mpi.Is_initialized(), "what starts MPI needs the fixture omb_py"
        warnings_text = "".join(f"{one.category.__name__}: {one.message}\n" for one in warned)
        code = int(end.value.code or 0)
        return Finished(code, text_of(out), text_of(err) + warnings_text, seconds)

    return start


def text_of(stream: TextIOWrapper) -> str:
    """What was written to a stream."""
    stream.seek(0)
    return stream.read()


@pytest.fixture(scope="session")
def mpi() -> str:
    """The launcher of this environment's MPI: a test that starts ranks uses this fixture."""
    return MPIEXEC


@pytest.fixture(scope="session")
def long_time() -> None:
    """A test that takes longer than anybody waits for an answer uses this fixture."""


@pytest.fixture
def mpiexec(mpi: str, tmp_path: Path) -> Run:
    """``mpiexec(ranks, *arguments)`` runs the command on real ranks, in an empty folder."""

    def start(ranks: int, *arguments: str, timeout: float = 120, **environment: str) -> Finished:
        command = [mpi, "-n", str(ranks), OMB_PY, *arguments]
        return run(command, environment, tmp_path, timeout)

    return start


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests of a session, by Playwright; skips where there is none."""
    pytest.importorskip("playwright.sync_api")
    program = find_chromium()
    if program is None:
        pytest.skip("needs Chromium")
    with chromium(program) as started:
        yield started


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in for the CUDA driver, compiled; skips where there is no compiler."""
    from tests.fakes import cuda_driver

    if cuda_driver.compiler() is None:
        pytest.skip("no C compiler")
    return cuda_driver.build(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def hip(driver: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in for HIP's runtime, compiled; skips where there is no compiler."""
    from tests.fakes import cuda_driver

    return cuda_driver.build(tmp_path_factory.mktemp("hip"), "libamdhip64.so.7")
