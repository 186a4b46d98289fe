"""The command: it waits for a run, follows it to its end, and leaves in order."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest

from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.records.layout import path_in
from tests.conftest import OMB_PY, Run
from tests.helpers.pace import slowness
from tests.helpers.refusals import assert_refused, missing

SECONDS = 60


class Running:
    """Ranks that say every now and then that they are there: threads, each with its record."""

    def __init__(self, folder: Path, ranks: int) -> None:
        folder.mkdir(exist_ok=True)
        self.files = [
            RecordFile(path_in(str(folder), rank), rank, ranks, 0, {"command": "made.py"})
            for rank in range(ranks)
        ]
        self._stopped = threading.Event()
        self.say()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(0.1):
            self.say()

    def say(self) -> None:
        for file in self.files:
            file.set("updated", time.monotonic_ns())

    def end(self) -> None:
        self._stopped.set()
        self._thread.join()
        for file in self.files:
            file.set("ended", time.monotonic_ns())


@pytest.mark.slow
def test_watch_without_a_run_waits_and_is_refused(omb_py: Run) -> None:
    done = omb_py("watch", "nowhere", "--wait", "0.3")
    assert_refused(done, 2, "nowhere mpiexec omb-py profile folder")
    assert not missing("waiting 0.3 s nowhere", done.err)


def test_files_that_are_no_records_are_passed_over(omb_py: Run, tmp_path: Path) -> None:
    (tmp_path / "omb-profile").mkdir()
    (tmp_path / "omb-profile" / "rank-000000.record").write_bytes(b"OMBPYREC" + bytes(2000))
    (tmp_path / "omb-profile" / "rank-000001.record").write_bytes(b"")
    assert_refused(omb_py("watch", "--wait", "0"), 2, "rank-000000.record version of omb-py")


@pytest.mark.slow
def test_a_run_that_comes_later_is_followed_to_its_end(tmp_path: Path) -> None:
    command = [OMB_PY, "watch", "--json", "--interval", "0.2"]
    watching = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    running = Running(tmp_path / "omb-profile", 3)
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())
    assert (first["ranks"], first["over"]) == (3, False)
    running.end()
    out, _ = watching.communicate(timeout=SECONDS)
    assert watching.returncode == 0
    looks = [json.loads(line) for line in out.splitlines()]
    assert [look["over"] for look in looks[-2:]] in ([False, True], [True])


@pytest.mark.slow
def test_one_look_has_a_table_of_all_ranks(omb_py: Run, tmp_path: Path) -> None:
    running = Running(tmp_path / "omb-profile", 3)
    try:
        done = omb_py("watch", "--once", "--interval", "0.2")
    finally:
        running.end()
    assert done.code == 0
    assert done.out.splitlines()[0] == "made.py"
    assert sum("outside MPI" in line for line in done.out.splitlines()) == 3
    over = omb_py("watch", "--once")
    assert "3 ranks, all ended" in over.out
    assert over.seconds < 30 * slowness()


def test_ctrl_c_leaves_without_a_word(tmp_path: Path) -> None:
    running = Running(tmp_path / "omb-profile", 2)
    command = [OMB_PY, "watch", "--interval", "0.1"]
    watching = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # where the tests run in the background of a shell, it is ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert watching.stdout is not None
        assert "2 ranks" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=SECONDS)
    finally:
        running.end()
    assert (watching.returncode, err) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="pseudo-terminals as Linux has them")
def test_on_a_terminal_each_table_is_drawn_over_the_one_before(tmp_path: Path) -> None:
    running = Running(tmp_path / "omb-profile", 40)
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    environment.pop("COLUMNS", None)
    environment.pop("LINES", None)
    command = [OMB_PY, "watch", "--interval", "0.1"]
    watching = subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    try:
        shown(ours, lambda text: text.count("made.py") > 2 and "\x1b[1A" in text)
    finally:
        running.end()
    os.close(theirs)
    last = shown(ours, lambda text: False).rpartition("made.py")[2]
    os.close(ours)
    assert watching.wait(SECONDS) == 0
    assert "40 ranks, all ended" in last
    assert last.count("ended") > 40  # the last table stays, with all ranks


def shown(terminal: int, enough: Callable[[str], bool]) -> str:
    """What a terminal was sent until it is enough, or nobody has it any more."""
    text, end = "", time.monotonic() + SECONDS
    while not enough(text):
        assert time.monotonic() < end, text[-3000:]
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                text += os.read(terminal, 65536).decode(errors="replace")
            except OSError:
                break
    return text
