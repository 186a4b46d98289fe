"""The present step of a command on the last line of a terminal, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omb_py.core.text.words import behind, printable


@contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the present step on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(file=behind(sys.stderr)).status("") as shown:
        yield lambda text: shown.update(printable(text))
