"""Files of results in one go, as they are read a part at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from omb_py.results.readers import Found, Source, join, parts_of, parts_of_file, source_of


def read_file(path: Path) -> Found:
    """What all readers find in a file."""
    return join(parts_of_file(path))


def read(path: str, content: bytes) -> Found:
    """What all readers find in a file's content."""
    return join(parts_of(path, content))


def read_by(
    reader: Callable[[Source], Iterable[Found]], content: str | bytes, path: str = "job.log"
) -> Found:
    """Return what one reader finds in a file's content."""
    text = content.encode() if isinstance(content, str) else content
    return join(reader(source_of(path, text)))


def objects(text: str) -> list[dict[str, Any]]:
    """The objects of JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]
