"""Starting a launcher so that nothing of it is left, however it or we end."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from json import loads
from pathlib import Path
from typing import BinaryIO

from omb_py.core.mpi.launcher import SHARED_FILES
from omb_py.core.shm_files import FOLDER, identity

# What a job that was killed leaves on this host: shared memory with a name, and Open MPI's folder.
#
# The ranks record what they have mapped (`omb_py.core.shm_files`), the sweep which folder it
# made. Only that is removed, and only if it is still the same file and was not there before.

THERE_BEFORE, OWN_FOLDER = "before", "folder"

PREFIX = "omb-py-"
"""The prefix of the folders that a sweep makes for a job."""


def watch(records: Path) -> dict[str, str]:
    """Make a new folder for a job's records, and return the environment that its ranks need.

    Raises `OSError` when it cannot be written.
    """
    records.mkdir(parents=True)
    before = (identity(str(path)) for path in Path(FOLDER).glob("*"))
    (records / THERE_BEFORE).write_text("".join(f"{line}\n" for line in before if line))
    return {SHARED_FILES: str(records.resolve())}


def note_folder(records: Path, folder: str) -> None:
    """Keep in mind that a folder was made for the job; raises `OSError`."""
    (records / OWN_FOLDER).write_text(f"{identity(folder)}\n")


def remove(records: Path) -> None:
    """Remove the files that a job left, by its records; all its processes must have ended."""
    before = set(lines(records / THERE_BEFORE))
    for path in sorted(records.glob("*.mapped")):
        for line in lines(path):
            name = recorded_files(line)
            if name is not None and name.startswith(FOLDER) and line not in before:
                with contextlib.suppress(OSError):
                    if stat.S_ISREG(os.lstat(name).st_mode):
                        os.unlink(name)
    for line in lines(records / OWN_FOLDER):
        folder = recorded_files(line)
        if folder is not None and Path(folder).name.startswith(PREFIX):
            shutil.rmtree(folder, ignore_errors=True)


def recorded_files(line: str) -> str | None:
    """Return the path in a line of a record, if the file is still there and belongs to this
    user."""
    try:
        path, *_, owner = loads(line)
    except (ValueError, TypeError):
        return None  # a rank was killed while it wrote
    same = identity(str(path)) == line and os.path.normpath(path) == path
    return path if same and owner == os.getuid() else None


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a record; none if it does not exist."""
    try:
        yield from path.read_text(errors="replace").splitlines()
    except OSError:
        return


MARK = "OMB_PY_SWEEP_POINT"
"""The environment variable by which processes of a point are known."""

SWEEP = "OMB_PY_SWEEP_PROCESS"
"""The environment variable with the number of the process that started them."""

GRACE_SECONDS = 5.0
"""Seconds that a launcher has to end its ranks."""

SECONDS_TO_START = 0.2
"""Seconds after which a launcher that was just being started carries its mark."""


@contextlib.contextmanager
def started(
    command: list[str],
    environment: Mapping[str, str],
    mark: str,
    folder: Path,
    log: BinaryIO,
    errors: BinaryIO | int = subprocess.STDOUT,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a launcher in its own session; it and its ranks end with the block.

    ``log`` gets its standard error, too, unless ``errors`` does. If this process is killed, even by
    SIGKILL, a guard ends what carries the mark. Raises `OSError` when it cannot be started.
    """
    with guarded(mark):
        process = subprocess.Popen(
            command,
            env={**environment, MARK: mark, SWEEP: str(os.getpid())},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=errors,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            end(process, mark)


@contextlib.contextmanager
def guarded(mark: str) -> Iterator[None]:
    """Have a process that ends what this one started with the mark if it is killed in the block.

    The death of a parent is one signal, which MPICH's launcher loses while it starts its ranks.
    Another sweep may go on with the same point at once.
    """
    reader, writer = os.pipe()
    sweep = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()  # what kills this process's group leaves it
            os.dup2(reader, 0)
            os.closerange(1, os.sysconf("SC_OPEN_MAX"))
            if not os.read(0, 1):
                time.sleep(SECONDS_TO_START)
                clear(mark, sweep)
        finally:
            os._exit(0)
    os.close(reader)
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            os.write(writer, b"+")
        os.close(writer)
        os.waitpid(pid, 0)


def wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait so long for a launcher's end, asleep: it measures on these cores. Whether it came."""
    if process.poll() is not None:
        return True
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        time.sleep(seconds)
    else:
        try:
            select.select([descriptor], [], [], seconds)
        finally:
            os.close(descriptor)
    return process.poll() is not None


def end(process: subprocess.Popen[bytes], mark: str) -> None:
    """End a launcher and its ranks on this host: in order if it can, else at once."""
    signal_group(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)
    signal_group(process.pid, signal.SIGKILL)
    process.wait()
    clear(mark)


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process's whole group, if there still is one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def clear(mark: str, sweep: int | None = None) -> None:
    """End every process on this host with the mark, which a killed sweep left.

    ``sweep``: only what that process started. Launchers that get the signal also end their ranks on
    other hosts.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE_SECONDS
        while left := list(processes_with(mark, sweep)):
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)


def processes_with(mark: str, sweep: int | None = None) -> Iterator[int]:
    """Yield the processes on this host with the mark, of any sweep or one, without this one."""
    wanted = {f"{MARK}={mark}".encode(), *([] if sweep is None else [f"{SWEEP}={sweep}".encode()])}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            entries = set((folder / "environ").read_bytes().split(b"\0"))
        except OSError:
            continue
        if wanted <= entries and int(folder.name) != os.getpid():
            yield int(folder.name)
