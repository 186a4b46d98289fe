"""Phases of its work that a program names, for timelines.

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
    """Let this recorder keep phases from now on."""
    _recorders[:] = [recorder]


def detach() -> None:
    """Stop keeping phases."""
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
        ended = monotonic_ns()
        for recorder in _recorders:
            number = recorder.name(name)
            recorder.event(EventKind.PHASE, number, 0, NOBODY, 0, 0, began, ended, 0, 0, 0)
