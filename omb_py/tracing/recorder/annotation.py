"""A program's annotations: named phases of its work, for timelines.

Without a recorder they do nothing, in well under a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic_ns
from typing import TYPE_CHECKING

from omb_py.tracing.records.layout import NOBODY, EventKind

if TYPE_CHECKING:
    from omb_py.tracing.recorder.interception import Recorder

_recorders: list[Recorder] = []
_nothing = nullcontext()


def attach(recorder: Recorder) -> None:
    """Let this recorder keep annotations from now on."""
    _recorders[:] = [recorder]


def detach() -> None:
    """Stop keeping annotations."""
    _recorders.clear()


def phase(name: str) -> AbstractContextManager[None]:
    """Show the work inside ``with`` as a slice of this name in the timeline."""
    return _phase(name) if _recorders else _nothing


@contextmanager
def _phase(name: str) -> Iterator[None]:
    began = monotonic_ns()
    try:
        yield
    finally:
        span(name, began, monotonic_ns())


def span(name: str, began: int, ended: int, lane: str = "", nbytes: int = 0) -> None:
    """A slice between two times of ``time.monotonic_ns``.

    Slices of a ``lane`` of its own stand below the rank's calls; they may contain each other, but
    not overlap otherwise.
    """
    _say(EventKind.SPAN, name, began, ended, lane, nbytes)


def instant(name: str, at: int, lane: str = "") -> None:
    """A mark at a time of ``time.monotonic_ns``."""
    _say(EventKind.INSTANT, name, at, at, lane, 0)


def _say(kind: EventKind, name: str, began: int, ended: int, lane: str, nbytes: int) -> None:
    for recorder in _recorders:
        numbers = recorder.name(name), recorder.name(lane)
        recorder.event(kind, numbers[0], 0, NOBODY, 0, numbers[1], began, ended, nbytes, 0, 0)
