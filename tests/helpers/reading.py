"""Files of results in one go, as they are read a part at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from omb_py.results.readers import Found, join, parts_of, parts_of_file


def read_file(path: Path) -> Found:
    """What all readers find in a file."""
    return join(parts_of_file(path))


def read(path: str, content: bytes) -> Found:
    """What all readers find in a file's content."""
    return join(parts_of(path, content))


def objects(text: str) -> list[dict[str, Any]]:
    """The objects of JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]
