"""Where bytes of results go: a file that holds whole records at any time, or a stream."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import BinaryIO

from omb_py.errors import OmbError


class Sink(ABC):
    """Takes records; ``rewritable`` tells whether the end of what it holds can be replaced."""

    rewritable: bool

    @abstractmethod
    def append(self, record: bytes, replace: int = 0) -> None:
        """Add ``record`` in place of the last ``replace`` bytes.

        Raises `OmbError` when it cannot be written; a file is then as it was before.
        """


class StreamSink(Sink):
    """Standard output, say: what is written is gone."""

    rewritable = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def append(self, record: bytes, replace: int = 0) -> None:
        self._stream.write(record)
        self._stream.flush()


class FileSink(Sink):
    """A file to which each record is added by one write and brought to the disk at once."""

    rewritable = True

    def __init__(self, path: Path, clear: bool) -> None:
        """Open ``path`` for writing after what it holds; ``clear`` empties it.

        Raises `OmbError` when it cannot be opened.
        """
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | (os.O_TRUNC if clear else 0)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            raise self._failure(error) from error

    def content(self) -> bytes:
        """All that the file holds; nothing where it is a device or a pipe."""
        return self._path.read_bytes() if self._path.is_file() else b""

    def cut(self, length: int) -> None:
        """Shorten the file to ``length`` bytes."""
        if self._path.is_file():
            os.ftruncate(self._descriptor, length)

    def append(self, record: bytes, replace: int = 0) -> None:
        start = os.lseek(self._descriptor, 0, os.SEEK_END) - replace
        replaced = os.pread(self._descriptor, replace, start)
        try:
            if os.pwrite(self._descriptor, record, start) != len(record):
                raise OSError(0, "no space left for a whole row")
            self._synchronize()
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, start)
                os.pwrite(self._descriptor, replaced, start)
            raise self._failure(error) from error

    def _synchronize(self) -> None:
        if self._path.is_file():
            os.fsync(self._descriptor)

    def _failure(self, error: OSError) -> OmbError:
        return OmbError(
            f"cannot write {self._path}: {error.strerror}; choose another place for --output"
        )
