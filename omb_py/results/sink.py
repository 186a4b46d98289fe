"""Where bytes of results go: a file that holds whole records at any time, or a stream."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from omb_py.core.errors import OmbError
from omb_py.core.mpi import launcher
from omb_py.core.text.folders import make_folder

LOCK_SECONDS = 60.0
"""How long a job waits for another one that writes to the same file."""

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""What flock fails with on file systems that have no locks."""


class Sink(ABC):
    """Takes records; ``rewritable`` tells whether the end of what it holds can be replaced."""

    rewritable: bool

    @abstractmethod
    def append(self, record: bytes, first: bytes | None = None) -> None:
        """Add ``record``, or ``first`` where it is given and nothing has been written yet.

        Raises `OmbError` when it cannot be written; a file is then as it was before.
        """

    def close(self) -> None:  # noqa: B027 - a stream stays open
        """All records were given; raises `OmbError` where they are not in the file named."""


class StreamSink(Sink):
    """Standard output, say: what is written is gone."""

    rewritable = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._empty = True

    def append(self, record: bytes, first: bytes | None = None) -> None:
        self._stream.write(first if first is not None and self._empty else record)
        self._stream.flush()
        self._empty = False


class FileSink(Sink):
    """A file to which several jobs may add records, each brought to the disk at once.

    What the file held stays until the first record: a run that is refused leaves it as it was.
    A job that is killed in the middle of a write can leave a record that ends with a page of the
    file: readers leave it out, and the next job removes it.

    Jobs take turns by a lock on the file (flock). Before each record the previous one is looked
    for where it was written, and after it the file where its name is: when somebody has removed,
    replaced or changed the file, or two jobs wrote at once on a file system without locks, the
    records of this run go on in a file of their own, and `close` says so.
    """

    def __init__(
        self, path: Path, clear: bool, kept: Callable[[bytes], int], closing: bytes = b""
    ) -> None:
        """See that records can be added to ``path``, which is left as it is until the first one.

        The first one comes after as many bytes of the file as ``kept`` tells of its content, 0 with
        ``clear``; ``closing`` stands after the last one at any time. Raises `OmbError` when the
        file cannot be written, and what ``kept`` raises of one that holds something else.
        """
        self._path = path
        self._clear = clear
        self._kept = kept
        self._closing = closing
        self._written: list[bytes] = []
        self._last = b""
        self._last_start = 0
        self._moved: str | None = None
        self._descriptor: Any = None
        try:
            make_folder(path.parent)
            there = path.exists()
            self._open()
            content = self._content()
            if not there and self.rewritable and not content:
                os.unlink(path)  # under the lock, so that nobody has begun to write to it
        except OSError as error:
            raise self._failure(error) from error
        try:
            if content and not clear:
                kept(content)
        finally:
            if self.rewritable:
                self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _open(self) -> None:
        """Open the file, and lock it where its name still stands for it."""
        while True:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            self.rewritable = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
            self._lock()
            if not self.rewritable or self._absence() is None:
                return
            self._close()

    def _content(self) -> bytes:
        """All that the file holds; nothing where it is a device or a pipe."""
        if not self.rewritable:
            return b""
        with open(self._descriptor, "rb", closefd=False) as file:
            return file.read()

    def append(self, record: bytes, first: bytes | None = None) -> None:
        if not self.rewritable:
            self._append_to_device(record if first is None or self._written else first)
            return
        new = first if first is not None and not self._written else record
        try:
            if not self._written:
                damage = self._begin(record, first)
            else:
                with self._locked():
                    damage = self._damage()
                    if damage is None:
                        self._write(record if first is None or self._size() else first)
        except OSError as error:
            raise self._failure(error) from error
        self._written.append(new)
        damage = damage or self._absence()
        if damage is not None:
            self._move(damage)

    def close(self) -> None:
        if self.rewritable and not self._written:
            return
        if self.rewritable:
            try:
                with self._locked():
                    damage = self._damage() or self._absence()
            except OSError as error:
                raise self._failure(error) from error
            if damage is not None:
                self._move(damage)
        self._close()
        if self._moved is not None:
            raise OmbError(self._moved)

    def _append_to_device(self, record: bytes) -> None:
        try:
            os.write(self._descriptor, record)
        except OSError as error:
            raise self._failure(error) from error
        self._written.append(record)

    def _begin(self, record: bytes, first: bytes | None) -> str | None:
        """Write the first record; what became of the file if it is no longer for this run."""
        try:
            self._open()
        except FileNotFoundError:
            return "was removed"
        try:
            start = self._start()
            if start is not None:
                self._write(record if first is None or start else first, start)
        except OSError:
            self._close()
            raise
        self._unlock()
        return "became one of something else" if start is None else None

    def _start(self) -> int | None:
        """Where the first record goes; None where another job has made the file one of others."""
        content = b"" if self._clear else self._content()
        try:
            start = self._kept(content) if content else 0
        except OmbError:
            return None
        if start + len(self._closing) < len(content):
            launcher.note(f"an incomplete end of {self._path} is replaced", rank=0)
        return start

    def _write(self, record: bytes, start: int | None = None) -> None:
        """Put ``record`` at ``start``, by default before what closes the file, which ends there.

        On failure the file stays as it was.
        """
        size = self._size()
        if start is None:
            start = size - len(self._closing) if size else 0
        new = record + self._closing
        before = os.pread(self._descriptor, len(new), start)
        try:
            if os.pwrite(self._descriptor, new, start) != len(new):
                raise OSError(errno.ENOSPC, "no space left for a whole row")
            if size > start + len(new):
                os.ftruncate(self._descriptor, start + len(new))
            os.fsync(self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                if self._size() <= max(size, start + len(new)):  # without locks a row may follow
                    os.ftruncate(self._descriptor, size)
                    os.pwrite(self._descriptor, before, start)
            raise
        self._last_start = start
        self._last = record

    def _damage(self) -> str | None:
        """What somebody did to the content other than adding records; None if nothing."""
        size = self._size()
        if self._written and size < self._last_start + len(self._last):
            return "was truncated"
        last = os.pread(self._descriptor, len(self._last), self._last_start)
        end = os.pread(self._descriptor, len(self._closing), max(0, size - len(self._closing)))
        intact = last == self._last and (end == self._closing or size == 0)
        return None if intact else "was changed by another program"

    def _absence(self) -> str | None:
        """What became of the file if its name no longer stands for it."""
        own = os.fstat(self._descriptor)
        try:
            named = os.stat(self._path)
        except OSError:
            return "was removed"
        return None if os.path.samestat(own, named) else "was replaced"

    def _move(self, damage: str) -> None:
        """Write all records of this run to a new file, and those to come.

        Raises `OmbError` where there is no place for one.
        """
        self._close()
        folders = dict.fromkeys((self._path.parent, Path(), Path(tempfile.gettempdir())))
        content = b"".join(self._written) + self._closing
        reason: OSError | None = None
        for folder in folders:
            try:
                path, self._descriptor = new_file(folder / self._path.name)
                os.pwrite(self._descriptor, content, 0)
                os.fsync(self._descriptor)
            except OSError as error:
                reason = error
                continue
            self._moved = (
                f"{self._path} {damage} during the run: the rows of this run are in {path}"
            )
            launcher.note(self._moved, rank=0)
            self._path = path
            self._last = self._written[-1]
            self._last_start = len(content) - len(self._closing) - len(self._last)
            return
        raise OmbError(
            f"{self._path} {damage} during the run, and its rows cannot be written elsewhere: "
            f"{reason}"
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._lock()
        try:
            yield
        finally:
            self._unlock()

    def _unlock(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _lock(self) -> None:
        """Wait for the file's lock, where its file system has locks."""
        end = time.monotonic() + LOCK_SECONDS
        pause = 0.001
        while self.rewritable:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > end:
                    text = f"another process has held its lock for {LOCK_SECONDS:g} s"
                    raise OSError(errno.EAGAIN, text) from error
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
            except OSError as error:
                if error.errno in WITHOUT_LOCKS:
                    return
                raise

    def _size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def _failure(self, error: OSError) -> OmbError:
        return OmbError(
            f"cannot write {self._path}: {error.strerror}; choose another place for --output"
        )


def new_file(path: Path) -> tuple[Path, int]:
    """Make a file beside ``path`` with a name that is free, and open it.

    Raises `OSError` where none can be made.
    """
    for number in count(1):
        name = path.with_name(f"{path.stem}-recovered-{number}{path.suffix}")
        with contextlib.suppress(FileExistsError):
            return name, os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    raise AssertionError
