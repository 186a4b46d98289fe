"""The parts of a start: each moment and each file belongs to one of them."""

from __future__ import annotations

import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from omb_py.core import opened_files
from omb_py.core.mpi import startup_timer
from omb_py.core.mpi import startup_timer as stages_module
from omb_py.core.mpi.startup_timer import BUFFER, INIT, OMB_PY, Stages

MAPS = """\
5600-5700 r--p 00000000 fe:00 131 /usr/bin/python3
5700-5800 r-xp 00001000 fe:00 131 /usr/bin/python3
7f00-7f10 rw-p 00000000 00:00 0
7f10-7f20 r--p 00000000 fe:00 132 /opt/my mpi/libmpi.so
7f20-7f30 rw-s 00000000 00:1a 9   /dev/shm/segment
7f30-7f40 rw-s 00000000 00:01 8   /memfd:doorbell (deleted)
7f40-7f50 rw-p 00000000 00:00 0   [stack]
"""


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(stages_module, "time", made)
    return made


def test_a_moment_belongs_to_one_part(clock: Clock) -> None:
    stages = Stages(began=96.0)
    with stages.stage(BUFFER):
        clock.sleep(2)
        with stages.stage(INIT):
            clock.sleep(3)
        clock.sleep(1)
    clock.sleep(5)
    assert list(stages.seconds.items()) == [(OMB_PY, 4), (BUFFER, 3), (INIT, 3)]


def test_a_part_may_come_again_and_may_fail(clock: Clock) -> None:
    stages = Stages(began=clock.now)

    def fail() -> None:
        with stages.stage(BUFFER):
            clock.sleep(2)
            raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            fail()
        clock.sleep(1)
    assert stages.seconds == {OMB_PY: 1, BUFFER: 4}


def test_a_file_belongs_to_the_first_that_opened_it_and_looking_takes_no_time(
    clock: Clock,
) -> None:
    held = {"a"}

    def watch() -> set[str]:
        clock.sleep(7)
        return set(held)

    stages = Stages(began=clock.now, watch=watch)
    with stages.stage(BUFFER):
        held |= {"b", "c"}
        with stages.stage(INIT):
            held |= {"d"}
            held -= {"b"}
        held |= {"b", "e"}
    assert stages.files == {OMB_PY: {"a"}, BUFFER: {"b", "c", "e"}, INIT: {"d"}}
    assert set(stages.seconds.values()) == {0}


def test_mapped_files_are_neither_devices_nor_shared_memory() -> None:
    assert opened_files.mapped(MAPS) == {"/usr/bin/python3", "/opt/my mpi/libmpi.so"}


def test_modules_of_an_archive_are_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("zipped_one.py", "")
        archive.writestr("zipped_two.py", "")
    monkeypatch.syspath_prepend(str(tmp_path / "archive.zip"))
    modules = [__import__(name) for name in ("zipped_one", "zipped_two", "sys", "json")]
    archived, json = sorted(opened_files.module_files(modules), key=lambda name: "json" in name)
    assert archived == str(tmp_path / "archive.zip")
    assert json.endswith("__init__.py")


@pytest.mark.skipif(not opened_files.can_be_told(), reason="the system does not tell")
def test_what_was_imported_later_is_told_apart() -> None:
    code = (
        "import json, omb_py, ctypes\n"
        "from omb_py.core import opened_files\n"
        "later, held = opened_files.since('omb_py'), opened_files.opened()\n"
        "assert later <= held, later - held\n"
        "names = {name.rpartition('/')[2].partition('.')[0] for name in later}\n"
        "assert '_ctypes' in names and {'opened_files', 'modules'} & names\n"
        "assert 'decoder' not in names\n"
        "assert any('python' in name for name in held - later)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("command", ["python", "a b) R 2 (c", ")"])
def test_the_start_is_the_middle_of_its_tick(command: str) -> None:
    fields = " ".join(["S", *(str(number) for number in range(4, 22)), "12345", "23"])
    assert startup_timer.start_in(f"77 ({command}) {fields}\n", 100) == 123.455


def test_the_time_before_a_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = (
        "import time\n"
        "from omb_py.core.mpi.startup_timer import seconds_before\n"
        "time.sleep(0.3)\n"
        "now = time.perf_counter()\n"
        "print(seconds_before(now, 0.0), seconds_before(now - 0.1, 0.0), seconds_before(now, 99.0))"
    )
    began = time.perf_counter()
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    whole = time.perf_counter() - began
    now, earlier, by_cpu = map(float, out.stdout.split())
    assert 0.3 < now < whole + 0.006
    assert now - earlier == pytest.approx(0.1, abs=0.05)
    assert by_cpu == 99
    monkeypatch.setattr(startup_timer, "STAT", tmp_path / "none")
    assert startup_timer.seconds_before(began, 0.0) is None
