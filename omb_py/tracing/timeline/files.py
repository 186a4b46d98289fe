"""Files of timelines: which kind a name asks for, and writing that leaves nothing half done."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.core.text.folders import make_folder
from omb_py.tracing.records.layout import TIMELINES
from omb_py.tracing.timeline import json_trace
from omb_py.tracing.timeline.model import Timeline

PACKED = ".json.gz"


def check(path: Path, force: bool) -> None:
    """Raise `UsageError` for a name that says no kind of file, or is taken without ``force``."""
    if not path.name.endswith(TIMELINES):
        raise UsageError(f"{path}: a timeline is written as .json or .json.gz; end its name so")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it")
    files.refuse_existing([path], force)


def write(timeline: Timeline, path: Path, force: bool = False) -> int:
    """Write a timeline to a file, of the kind that its name ends in; its bytes.

    The file is there when all of it is. Raises `UsageError` as `check` does, `OmbError` when it
    cannot be written.
    """
    check(path, force)
    with files.failing("write", path):
        make_folder(path.parent)
        with files.replacing(path) as file:
            _write(timeline, file, path.name)
        return path.stat().st_size


def _write(timeline: Timeline, file: IO[bytes], name: str) -> None:
    if name.endswith(PACKED):
        with (
            gzip.GzipFile("", "wb", compresslevel=4, fileobj=file, mtime=0) as packed,
            io.TextIOWrapper(packed, encoding="utf-8") as text,
        ):
            json_trace.write(timeline, text)
    else:
        with io.TextIOWrapper(file, encoding="utf-8") as text:
            json_trace.write(timeline, text)
