"""How far a measurement is, and who is informed of it: a terminal, a log, a function.

Rank 0 alone reports, where no rank is timed: before a message size, in the first half of its
warm-up, between rounds. Other ranks load nothing of this.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import OmbError
from omb_py.core.mpi import launcher
from omb_py.results.writer import Writer

ERASE = "\r\x1b[2K"
"""What empties the line of a terminal that the cursor is in."""

REPORT_SECONDS = 0.1
"""Minimum time between two reports within one step, and between two lines of a terminal."""

PASSING_SECONDS = 0.02
"""How long a launcher gets to pass on a row."""

LINE_SECONDS = 1.0
"""Minimum time between two lines where each stays."""

COLUMNS = 80
"""Of a terminal that does not tell its width."""


@dataclass(frozen=True)
class Progress:
    """How far a measurement is.

    ``name`` is the benchmark's or application's, ``step`` what is under way, as in ``64 KiB``, the
    ``number``-th of ``steps``. ``done`` of ``total`` iterations are over, warm-up included;
    ``total`` is None where a precision or a time decides.
    """

    name: str
    step: str
    number: int
    steps: int
    done: int
    total: int | None

    def __str__(self) -> str:
        where = f" ({self.number} of {self.steps})" if self.steps > 1 else ""
        parts = [f"{self.name} {self.step}".rstrip() + where]
        if self.total != self.steps:
            of = "" if self.total is None else f" of {self.total:,}"
            parts.append(f"{self.done:,}{of} iterations".replace(",", " "))
        return ", ".join(parts)


@dataclass(frozen=True)
class Step:
    """A part of a measurement: its iterations, warm-up included, if they are known."""

    label: str
    iterations: int | None


class Display:
    """Shows progress; as a context it ends with the job, whether that fails or not."""

    def show(self, progress: Progress) -> None:
        """Show how far it is."""

    def hide(self) -> None:
        """Make place for other output."""

    def finish(self) -> None:
        """Raise `OmbError` where progress could not be shown."""

    def __enter__(self) -> Display:
        launcher.before_output = self.hide
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        self.hide()
        launcher.before_output = None


class StatusLine(Display):
    """The last line of a terminal.

    It is written to the terminal itself: launchers pass whole lines on alone (Open MPI's), and
    stdout and stderr in any order. So each row erases it, too, and it comes some time after a row.
    """

    def __init__(self, terminal: int, output: str | None) -> None:
        """``terminal`` is a descriptor; results go to the file ``output``."""
        self._terminal = terminal
        self._output = output
        self._columns = COLUMNS
        self._shown = False
        self._printed = 0.0
        self._last = -REPORT_SECONDS
        with suppress(OSError):
            self._columns = os.get_terminal_size(terminal).columns or COLUMNS

    def show(self, progress: Progress) -> None:
        if (now := monotonic()) - self._last < REPORT_SECONDS:
            return
        self._last = now
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
        """Whether a launcher passes on what this process prints."""
        return self._terminal != launcher.STDERR

    def _write(self, text: str) -> None:
        with suppress(OSError):  # it is gone or stopped
            os.write(self._terminal, f"{ERASE}{text}".encode())


class Lines(Display):
    """A line on stderr now and then, for logs."""

    def __init__(self) -> None:
        self._last = -LINE_SECONDS

    def show(self, progress: Progress) -> None:
        if (now := monotonic()) - self._last >= LINE_SECONDS:
            self._last = now
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

    def __init__(
        self,
        name: str,
        steps: Sequence[Step],
        display: Display,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._name = name
        self._steps = steps
        self._display = display
        self._clock = clock
        counts = [step.iterations for step in steps]
        self._total = None if None in counts else sum(count or 0 for count in counts)
        self._number = -1
        self._before = self._within = 0
        self._last = clock()

    def begin(self, number: int) -> None:
        """Step ``number``, from 0 on, begins."""
        if self._number >= 0:
            counted = self._steps[self._number].iterations
            self._before += self._within if counted is None else counted
        self._number, self._within = number, 0
        self._show(self._clock())

    def advance(self, done: int, total: int) -> None:
        """So many iterations of the step are over, its preparation with the first call."""
        now = self._clock()
        self._within = done
        if done and now - self._last >= REPORT_SECONDS:
            self._show(now)

    def _show(self, now: float) -> None:
        self._last = now
        where = self._steps[self._number].label, self._number + 1, len(self._steps)
        done = self._before + self._within
        self._display.show(Progress(self._name, *where, done, self._total))


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
