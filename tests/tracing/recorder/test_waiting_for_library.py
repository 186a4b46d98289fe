"""Ranks wait for the library as long as rank 0 compiles it, and learn that it failed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Timer

import pytest

from omb_py.core.errors import UsageError
from omb_py.tracing.recorder import compilation, library
from tests.helpers.refusals import refuses


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The library that rank 1 waits for, which sees within 0.2 s whether it is being made."""
    monkeypatch.setenv("OMB_PY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setattr(library, "SECONDS_TO_BEGIN", 0.2)
    monkeypatch.setattr(library, "BEGAN", time.perf_counter())
    return tmp_path / f"recorder-{library.fingerprint(library.compiler())}.so"


def put(path: Path) -> None:
    path.touch(0o755)


@pytest.mark.slow
def test_long_compilation_is_waited_for(path: Path) -> None:
    path.with_name(f"{compilation.UNFINISHED}folder").mkdir()
    Timer(1, put, [path]).start()
    assert library.cached_library() == str(path)


def test_compilation_that_never_ends_is_given_up(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr(compilation, "SECONDS_OF_A_STEP", 0.1)
    path.with_name(f"{compilation.UNFINISHED}folder").mkdir()
    with refuses(UsageError, "has not compiled within OMB_PY_CACHE_DIR"):
        library.cached_library()


@pytest.mark.slow
def test_every_step_has_its_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run, steps = compilation._run, []

    def counted(command: list[str], mpicc: str) -> str:
        steps.append(command)
        return run(command, mpicc)

    monkeypatch.setattr(compilation, "_run", counted)
    monkeypatch.setattr(compilation, "FLAGS", ("-O0", *compilation.FLAGS[1:]))
    compilation.compile_library(library.compiler(), str(tmp_path / "library.so"))
    assert len(steps) == compilation.STEPS


@pytest.mark.parametrize("skew", [-1000.0, 1000.0])
@pytest.mark.parametrize(("age", "reason"), [(0.0, "no compiler"), (500.0, "has not compiled")])
def test_failure_counts_by_the_clock_of_its_server(
    monkeypatch: pytest.MonkeyPatch, path: Path, skew: float, age: float, reason: str
) -> None:
    failure, written = path.with_suffix(".failed"), time.time() - age
    failure.write_text("no compiler")
    os.utime(failure, (written, written))
    monkeypatch.setattr(time, "time", lambda: written + age + skew)
    with refuses(UsageError, reason):
        library.cached_library()
