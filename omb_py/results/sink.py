"""Destinations of lines of results: a file that has whole lines at any time, or a stream."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

from omb_py.core.errors import UsageError
from omb_py.core.mpi import launcher
from omb_py.core.text.files import failing, is_file_or_free, make_folder

LOCK_SECONDS = 60.0
"""Seconds that a job waits for another one that writes to the same file."""

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""Errors of flock on file systems without locks."""

BLOCK = 1 << 16
"""Bytes that are read at a time to see where the last line begins."""

writing = partial(failing, "write", advice="; choose another place for --output")
"""Turns an `OSError` into an `OmbError` that names the file."""

Begun = Callable[[Iterable[bytes]], bool]
"""A test of whether lines have a table's header; it raises `UsageError` for other content."""


class StreamSink:
    """Standard output, a device or a pipe: what is written is gone."""

    at_once = True
    """True if a run's metadata is written before its first row."""

    def __init__(self, stream: BinaryIO, path: Path | None = None) -> None:
        self._stream = stream
        self._path = path
        self._header: bytes | None = None
        self._metadata: bytes | None = None

    def append(self, lines: bytes, metadata: bytes, header: bytes) -> None:
        """Write lines, the first of a run after its metadata, the first of a table after a header.

        What a run's metadata have grown by has been written as lines.
        """
        if self._metadata is None or not metadata.startswith(self._metadata):
            lines = metadata + (b"" if header == self._header else header) + lines
        self._header, self._metadata = header, metadata
        with writing(self._path) if self._path else contextlib.nullcontext():
            self._stream.write(lines)
            self._stream.flush()


@cache
def stream_sink(stream: BinaryIO) -> StreamSink:
    """Return the one sink of a stream, in which several runs share a table."""
    return StreamSink(stream)


class FileSink:
    """A file to which several jobs may add lines, each brought to the disk at once.

    It is opened by its name for each of them, and locked (flock): if it was removed, replaced or
    truncated meanwhile, the lines go to the file that now has the name, after the metadata and the
    header. A line without an end, of a job that was killed as it wrote, is removed.
    """

    at_once = False

    def __init__(self, path: Path, clear: bool, begun: Begun) -> None:
        """Check that lines can be added to ``path``, which changes only with the first ones.

        These replace what it holds with ``clear``. Raises `OmbError` when the file cannot be
        written, and what ``begun`` raises of one that holds something else.
        """
        self._path = path
        self._clear = clear
        self._begun = begun
        self._last = (0, 0, 0)  # device, inode and size of the file that has the metadata
        there = path.exists()
        with self._opened() as file:
            if not clear:
                begun(file)
            if not there and not os.fstat(file.fileno()).st_size:
                # under the lock, so that no process has begun to write to it; a link stays
                os.unlink(os.path.realpath(path))

    def append(self, lines: bytes, metadata: bytes, header: bytes) -> None:
        """Add lines, after the run's metadata and the header where these are not there yet.

        Raises `OmbError` if they cannot be written; the file then has what it had.
        """
        with self._opened() as file:
            descriptor = file.fileno()
            status = os.fstat(descriptor)
            old, start = b"", end_of_lines(descriptor, status.st_size)
            if self._clear:
                old, start = os.pread(descriptor, status.st_size, 0), 0
            elif start < status.st_size:
                launcher.note(f"an incomplete end of {self._path} is removed", rank=0)
            if start < status.st_size:
                os.ftruncate(descriptor, start)
            if (status.st_dev, status.st_ino) != self._last[:2] or start < self._last[2]:
                lines = metadata + (b"" if start and self._has_begun(file) else header) + lines
            try:
                if os.write(descriptor, lines) != len(lines):
                    raise OSError(errno.ENOSPC, "no space left for a whole row")
                os.fsync(descriptor)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, start)
                    os.write(descriptor, old)
                raise
            self._last = status.st_dev, status.st_ino, start + len(lines)
            self._clear = False

    def _has_begun(self, file: BinaryIO) -> bool:
        """Return whether the file has the header, even after a change by another program."""
        with contextlib.suppress(UsageError):
            return self._begun(file)
        return False

    @contextlib.contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Return the file that has the name now, locked; raise `OmbError` if that fails."""
        with writing(self._path):
            make_folder(self._path.parent)
            while True:
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
                with open(os.open(self._path, flags, 0o666), "rb") as file:
                    lock(file.fileno())
                    if has_name(file.fileno(), self._path):
                        yield file
                        return


Sink: TypeAlias = StreamSink | FileSink


def open_sink(path: Path, clear: bool, begun: Begun) -> Sink:
    """Return the sink of a name, as `FileSink` takes it: a file, or a device or a pipe."""
    if is_file_or_free(path):
        return FileSink(path, clear, begun)
    with writing(path):
        return StreamSink(open(os.open(path, os.O_RDWR), "wb"), path)


def end_of_lines(descriptor: int, size: int) -> int:
    """Return the number of bytes in whole lines, of a file of ``size`` bytes."""
    while size:
        start = max(0, size - BLOCK)
        if found := os.pread(descriptor, size - start, start).rfind(b"\n") + 1:
            return start + found
        size = start
    return 0


def has_name(descriptor: int, path: Path) -> bool:
    """Return whether an open file is the one that has a name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def lock(descriptor: int, seconds: float | None = None) -> None:
    """Wait for a file's lock, if its file system has locks.

    Raises `BlockingIOError` if another process has it longer than ``seconds`` (`LOCK_SECONDS`).
    """
    end = time.monotonic() + (LOCK_SECONDS if seconds is None else seconds)
    pause = 0.001
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= end:
                text = f"another process has held its lock for {LOCK_SECONDS:g} s"
                raise OSError(errno.EAGAIN, text) from error
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        except OSError as error:
            if error.errno in WITHOUT_LOCKS:
                return
            raise
