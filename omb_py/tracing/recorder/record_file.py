"""A rank's record while it is written: a file in memory, laid out as in `records.layout`."""

from __future__ import annotations

import errno
import json
import mmap
import os
import struct
import sys
import time
from collections.abc import Mapping
from typing import Any

from omb_py.core.errors import OmbError
from omb_py.core.text.files import make_folder
from omb_py.tracing.records import layout
from omb_py.tracing.records.layout import CELL_FORMAT, EVENT_FORMAT, HEADER_FORMAT, HEADER_OFFSETS

FORMATS = {"q": struct.Struct("=q"), "d": struct.Struct("=d"), "64s": struct.Struct("=64s")}
KINDS = dict(layout.HEADER)


class RecordFile:
    """The file of one rank, mapped; everything written is in it at once."""

    def __init__(
        self, path: str, rank: int, ranks: int, events: int, about: Mapping[str, Any]
    ) -> None:
        """Create the file, with room for ``events`` events, and write ``about`` the run.

        Raises `OmbError` if it cannot be written or exists already: another job writes it.
        """
        assert HEADER_FORMAT.size <= layout.HEADER_BYTES
        capacities = {
            "text": (layout.TEXT_BYTES, 1),
            "names": (layout.NAMES_BYTES, 1),
            "cells": (layout.CELLS, CELL_FORMAT.size),
            "threads": (layout.THREADS, layout.THREAD_FORMAT.size),
            "events": (events, EVENT_FORMAT.size),
        }
        at = layout.HEADER_BYTES
        values: dict[str, int] = {}
        for part, (capacity, width) in capacities.items():
            values |= {f"{part}_at": at, f"{part}_capacity": capacity}
            at += -(-capacity * width // 8) * 8
        self.path = path
        self._map, self._identity = map_new_file(path, at)
        self.memory = memoryview(self._map)
        magic = int.from_bytes(layout.MAGIC, sys.byteorder)
        values |= {"magic": magic, "version": layout.VERSION, "rank": rank, "ranks": ranks}
        values |= {"pid": os.getpid(), "began": time.monotonic_ns(), "began_epoch": time.time_ns()}
        for name, value in values.items():
            self.set(name, value)
        self.set("host", os.uname().nodename)
        self._write_about(about)

    def set(self, name: str, value: float | str) -> None:
        """Write a field of the header."""
        packing = FORMATS[KINDS[name]]
        told = value.encode()[:64] if isinstance(value, str) else value
        packing.pack_into(self.memory, HEADER_OFFSETS[name], told)

    def get(self, name: str) -> Any:
        """Read a field of the header."""
        return FORMATS[KINDS[name]].unpack_from(self.memory, HEADER_OFFSETS[name])[0]

    def _write_about(self, about: Mapping[str, Any]) -> None:
        text = json.dumps(about).encode()
        if len(text) > layout.TEXT_BYTES:
            text = json.dumps({"too_long": len(text)}).encode()
        at = self.get("text_at")
        self.memory[at : at + len(text)] = text
        self.set("text_used", len(text))

    def in_place(self) -> bool:
        """Return whether the path still refers to this file."""
        try:
            return os.path.samestat(os.stat(self.path), self._identity)
        except OSError:
            return False


def map_new_file(path: str, nbytes: int) -> tuple[mmap.mmap, os.stat_result]:
    """Return a new mapped file of ``nbytes`` bytes with allocated blocks, and its status.

    Raises `OmbError` if it cannot be created: a full disk would otherwise kill the process when it
    writes. An existing file is never truncated, which would kill the process that has it mapped.
    """
    try:
        make_folder(os.path.dirname(path))
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError as error:
            raise OmbError(
                f"another job is writing its profile to {os.path.dirname(path)}: name another "
                "folder with --folder"
            ) from error
        try:
            try:
                os.posix_fallocate(handle, 0, nbytes)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise
                os.ftruncate(handle, nbytes)
            return mmap.mmap(handle, nbytes), os.fstat(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise OmbError(f"cannot write {path}: {error.strerror or error}") from error
