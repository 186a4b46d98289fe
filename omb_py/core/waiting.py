"""Waiting for what cannot be waited for: it is looked for again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import TypeVar

Found = TypeVar("Found")


def poll(look: Callable[[], Found], pause: float, seconds: float = inf) -> Found:
    """Return the first true result of ``look``, called with pauses; after ``seconds`` any."""
    end = time.monotonic() + seconds
    while not (found := look()) and (left := end - time.monotonic()) > 0:
        time.sleep(min(pause, left))
    return found
