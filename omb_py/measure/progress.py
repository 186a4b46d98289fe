"""The progress of a measurement, and its display: on a terminal, in a log, by a function.

Only rank 0 reports, while no rank is timed: before a message size, between rounds. Other ranks do
not load this module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from time import monotonic, sleep
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import OmbError
from omb_py.core.mpi import launcher
from omb_py.results.writer import Writer

ERASE = "\r\x1b[2K"
"""The escape sequence that empties the terminal's current line."""

PASSING_SECONDS = 0.02
"""Seconds that a launcher gets to pass on a row."""

COLUMNS = 80
"""Width of a terminal that does not report its own."""


@dataclass(frozen=True)
class Progress:
    """The progress of a measurement.

    ``name`` is the benchmark's or application's, ``step`` the current step, as in ``64 KiB``, the
    ``number``-th of ``steps``. ``done`` of the step's ``total`` iterations are over, if it is
    interrupted for reports; ``total`` is 0 if a precision or a time decides.
    """

    name: str
    step: str
    number: int
    steps: int
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        text = f"{self.name} {self.step}".rstrip()
        if self.steps > 1:
            text += f" ({self.number} of {self.steps})"
        if self.done:
            of = f" of {self.total:,}" if self.total else ""
            text += f": {self.done:,}{of} iterations".replace(",", " ")
        return text


class Display:
    """Shows progress; as a context it ends with the job, whether that fails or not."""

    seconds = 0.0
    """Minimum time between two reports."""

    def show(self, progress: Progress) -> None:
        """Show the step and how many of its iterations are over."""

    def hide(self) -> None:
        """Remove what is shown from the terminal, so that other output can be printed."""

    def finish(self) -> None:
        """Raise `OmbError` if progress could not be shown."""

    def __enter__(self) -> Display:
        launcher.before_output = self.hide
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        self.hide()
        launcher.before_output = None


class StatusLine(Display):
    """The last line of a terminal.

    It is written to the terminal itself: launchers pass on only whole lines (Open MPI's), and
    stdout and stderr in any order. So each row erases it, too, and it comes some time after a row.
    """

    seconds = 0.1

    def __init__(self, terminal: int, output: str | None) -> None:
        """``terminal`` is a descriptor; results go to the file ``output``."""
        self._terminal = terminal
        self._output = output
        self._columns = COLUMNS
        self._shown = False
        self._printed = 0.0
        with suppress(OSError):
            self._columns = os.get_terminal_size(terminal).columns or COLUMNS

    def show(self, progress: Progress) -> None:
        self._wait_for_row()
        self._write(f"{progress}"[: self._columns - 1])
        self._shown = True

    def hide(self) -> None:
        if self._shown:
            self._shown = False
            self._write("")
            if self._passed_on:
                with suppress(OSError):  # then the row says so, too
                    sys.stdout.write(ERASE)
                    sys.stdout.flush()
        self._printed = monotonic()

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        super().__exit__(kind, *error)
        if kind is None and self._output is not None:
            self._wait_for_row()
            launcher.say(f"results are in {self._output}")

    def _wait_for_row(self) -> None:
        """Give a launcher the time to pass on the last row."""
        if self._passed_on:
            sleep(max(0.0, self._printed + PASSING_SECONDS - monotonic()))

    @property
    def _passed_on(self) -> bool:
        """Return whether a launcher passes on this process's output."""
        return self._terminal != launcher.STDERR

    def _write(self, text: str) -> None:
        with suppress(OSError):  # it is gone or stopped
            os.write(self._terminal, f"{ERASE}{text}".encode())


class Lines(Display):
    """A line on stderr now and then, for logs."""

    seconds = 1.0

    def show(self, progress: Progress) -> None:
        launcher.say(str(progress))


class CallerDisplay(Display):
    """A function of the caller's; once it has raised an error it is called no more."""

    def __init__(self, function: Callable[[Progress], object]) -> None:
        self._function = function
        self._error: Exception | None = None

    def show(self, progress: Progress) -> None:
        if self._error is None:
            try:
                self._function(progress)
            except Exception as error:
                self._error = error

    def finish(self) -> None:
        if self._error is not None:
            fault = f"{type(self._error).__name__}: {self._error}"
            raise OmbError(f"the function for progress failed: {fault}") from self._error


class Tracker:
    """Counts the steps of a measurement, and shows on a display how far it is."""

    def __init__(self, name: str, steps: Sequence[str], display: Display) -> None:
        self._name = name
        self._steps = steps
        self._display = display
        self._number = 0
        self._last = -inf

    def begin(self, number: int) -> None:
        """Show that step ``number`` (from 0) begins."""
        self._number = number
        self.advance(0, 0)

    def advance(self, done: int, total: int) -> None:
        """Note that so many iterations of the step are over."""
        if (now := monotonic()) - self._last >= self._display.seconds:
            self._last = now
            where = self._steps[self._number], self._number + 1, len(self._steps)
            self._display.show(Progress(self._name, *where, done, total))


class HidingWriter(Writer[Any]):
    """Hides the progress before the other writers write."""

    def __init__(self, display: Display) -> None:
        self._display = display

    def start(self, metadata: dict[str, str]) -> None:
        self._display.hide()

    def section(self, datatype: Any) -> None:
        self._display.hide()

    def row(self, row: Any) -> None:
        self._display.hide()

    def finish(self) -> None:
        self._display.hide()
        self._display.finish()
