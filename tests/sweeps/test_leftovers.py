"""Processes end with their sweep; what killed jobs left is removed by what they told."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omb_py.core import shm_files
from omb_py.core.mpi.launcher import SHARED_FILES
from omb_py.core.shm_files import FOLDER, identity
from omb_py.sweeps import processes
from tests.helpers.waiting import wait_for

MAPS = """\
55d0e4a00000-55d0e4a01000 r--p 00000000 fe:00 1234 /usr/bin/python3.11
7f2a10000000-7f2a10205000 rw-s 00000000 00:1a 5 /dev/shm/mpich_shm_ab_0
7f2a10205000-7f2a10206000 rw-s 00205000 00:1a 5 /dev/shm/mpich_shm_ab_0
7f2a11000000-7f2a11001000 rw-s 00000000 00:1a 6 /dev/shm/gone (deleted)
7f2a12000000-7f2a12001000 rw-p 00000000 00:00 0
7f2a13000000-7f2a13001000 r--s 00000000 fe:00 77 /tmp/a file with /dev/shm/ in it
"""


@pytest.fixture
def segment() -> Iterator[Path]:
    """A file of shared memory, as an MPI library makes it."""
    path = Path(FOLDER, f"omb-py-test-{os.getpid()}")
    path.write_bytes(b"data")
    yield path
    path.unlink(missing_ok=True)


def tell(records: Path, *lines: str | None) -> None:
    """Write what a rank would."""
    (records / "17.mapped").write_text("".join(f"{line}\n" for line in lines))


def test_shared_memory_with_a_name_is_told() -> None:
    assert shm_files.files_in(MAPS) == ["/dev/shm/mpich_shm_ab_0"]


def test_what_a_job_told_is_removed(tmp_path: Path, segment: Path) -> None:
    segment.unlink()
    environment = processes.watch(tmp_path / "records")
    assert environment == {SHARED_FILES: str(tmp_path / "records")}
    segment.write_bytes(b"data")
    tell(tmp_path / "records", identity(str(segment)))
    own = tmp_path / f"{processes.PREFIX}1234"
    own.mkdir()
    processes.note_folder(tmp_path / "records", str(own))
    processes.remove(tmp_path / "records")
    assert not segment.exists()
    assert not own.exists()
    processes.remove(tmp_path / "nowhere")


def test_guard_of_a_killed_sweep_leaves_the_next_sweeps_job(tmp_path: Path) -> None:
    """Both have one mark, since the next sweep goes on with the same point."""
    with (tmp_path / "log").open("wb") as log:
        started = processes.started(["sleep", "60"], os.environ, "point", tmp_path, log)
        with started as process:
            processes.clear("point", os.getpid() + 1)
            assert process.poll() is None
            assert list(processes.processes_with("point", os.getpid())) == [process.pid]
    assert list(processes.processes_with("point")) == []


def test_what_was_there_before_stays(tmp_path: Path, segment: Path) -> None:
    processes.watch(tmp_path / "records")
    tell(tmp_path / "records", identity(str(segment)))
    processes.remove(tmp_path / "records")
    assert segment.exists()


@pytest.mark.parametrize("place", range(1, 5))
def test_another_file_of_the_name_stays(tmp_path: Path, segment: Path, place: int) -> None:
    """Of another host, file system, number or owner."""
    found = identity(str(segment))
    assert found is not None
    told = json.loads(found)
    told[place] = "elsewhere" if place == 1 else told[place] + 1
    (tmp_path / "records").mkdir()
    tell(tmp_path / "records", json.dumps(told), found[:-5], "", "[]", "null")
    processes.remove(tmp_path / "records")
    assert segment.exists()


def test_files_and_folders_elsewhere_stay(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "mine").write_text("")
    around = f"{FOLDER}../..{tmp_path}/mine"
    tell(tmp_path / "records", identity(str(tmp_path / "mine")), identity(around))
    (tmp_path / "folder").mkdir()
    processes.note_folder(tmp_path / "records", str(tmp_path / "folder"))
    processes.remove(tmp_path / "records")
    assert (tmp_path / "mine").exists()
    assert (tmp_path / "folder").exists()


def test_a_process_tells_what_it_has_mapped(tmp_path: Path, segment: Path) -> None:
    import mmap

    with segment.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        shm_files.record(str(tmp_path))
    (told,) = tmp_path.glob("*.mapped")
    assert identity(str(segment)) in told.read_text().splitlines()
    shm_files.record(str(tmp_path / "nowhere"))


@pytest.mark.long
def test_launcher_that_is_being_started_ends_with_a_killed_sweep(tmp_path: Path) -> None:
    """pytest-randomly seeds the moments, of which one in twenty is too early for a mark."""
    marks = [f"{tmp_path}:{number}" for number in range(100)]
    for mark in marks:
        sweep = os.fork()
        if sweep == 0:
            with open(os.devnull, "wb") as log:
                command = ["sleep", "60"]
                with processes.started(command, dict(os.environ), mark, tmp_path, log):
                    time.sleep(60)
        time.sleep(random.uniform(0, 0.006))
        os.kill(sweep, signal.SIGKILL)
        os.waitpid(sweep, 0)
    time.sleep(1)
    wait_for(lambda: not any(pid for mark in marks for pid in processes.processes_with(mark)))
