"""How far a measurement is, and who is informed of it: a terminal, a log, a function.

Rank 0 alone reports, where no rank is timed: before a message size, in the first half of its
warm-up, between rounds. Other ranks load nothing of this.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil, log
from time import localtime, monotonic, sleep, strftime, time
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import OmbError
from omb_py.core.mpi import launcher
from omb_py.core.text.units import duration
from omb_py.results.writer import Writer

ERASE = "\r\x1b[2K"
"""What empties the line of a terminal that the cursor is in."""

REPORT_SECONDS = 0.1
"""Minimum time between two reports within one step, and of what a line is shown for."""

PASSING_SECONDS = 0.02
"""How long a launcher gets to pass on a row."""

TREND = 4
"""Steps from whose times those of the next ones are forecast."""

SOON = 5.0
"""Seconds that nobody looks at a clock for."""

LINE_SECONDS = 1.0
"""Minimum time between two lines where each stays, but before a step that takes as long."""

COLUMNS = 80
"""Of a terminal that does not tell its width."""


@dataclass(frozen=True)
class Progress:
    """How far a measurement is.

    ``name`` is the benchmark's or application's, ``step`` what is under way, as in ``64 KiB``, the
    ``number``-th of ``steps``. ``done`` of ``total`` iterations are over, warm-up included;
    ``total`` is None where a precision or a time decides. ``seconds_left`` is a forecast from the
    steps so far, None before the first is known.
    """

    name: str
    step: str
    number: int
    steps: int
    done: int
    total: int | None
    seconds_left: float | None

    def __str__(self) -> str:
        where = f" ({self.number} of {self.steps})" if self.steps > 1 else ""
        parts = [f"{self.name} {self.step}".rstrip() + where]
        if self.total != self.steps:
            of = "" if self.total is None else f" of {self.total:,}"
            parts.append(f"{self.done:,}{of} iterations".replace(",", " "))
        if self.seconds_left is not None:
            parts.append(f"about {time_left(self.seconds_left)}")
        return ", ".join(parts)


def time_left(seconds: float) -> str:
    """The time that is left, and when that will be over, since a line can stay for long."""
    end = strftime("%H:%M:%S", localtime(time() + seconds))
    left = duration(seconds) if seconds >= 60 else f"{ceil(seconds)} s"
    return f"{left} left, until {end}" if seconds > SOON else f"{left} left"


@dataclass(frozen=True)
class Step:
    """A part of a measurement: its ``nbytes`` of a message, and its iterations if they are known.

    ``iterations`` include the warm-up.
    """

    label: str
    nbytes: int
    iterations: int | None


class Display:
    """Shows progress; as a context it ends with the job, whether that fails or not."""

    def show(self, progress: Progress, expected: float | None) -> None:
        """Show how far it is; the step under way is ``expected`` to take so many seconds."""

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
        with suppress(OSError):
            self._columns = os.get_terminal_size(terminal).columns or COLUMNS

    def show(self, progress: Progress, expected: float | None) -> None:
        if expected is not None and expected < REPORT_SECONDS:
            return
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
        self._number = 0

    def show(self, progress: Progress, expected: float | None) -> None:
        now = monotonic()
        long = progress.number > self._number and (expected or 0.0) >= LINE_SECONDS
        if long or now - self._last >= LINE_SECONDS:
            self._last, self._number = now, progress.number
            launcher.say(str(progress))


class Calls(Display):
    """A function of the caller's; once it has raised an error it is called no more."""

    def __init__(self, function: Callable[[Progress], object]) -> None:
        self._function = function
        self._error: Exception | None = None

    def show(self, progress: Progress, expected: float | None) -> None:
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
        self._paces: list[tuple[int, float]] = []
        """The bytes of the last few steps, and the seconds of an iteration of theirs."""
        counts = [step.iterations for step in steps]
        self._total = None if None in counts else sum(count or 0 for count in counts)
        self._number = -1
        self._before = self._within = 0
        self._began = self._last = clock()

    def begin(self, number: int) -> None:
        """Step ``number``, from 0 on, begins."""
        now = self._clock()
        if self._number >= 0:
            last = self._steps[self._number]
            pace = (now - self._began) / (last.iterations or 1)
            self._paces = [*self._paces[1 - TREND :], (last.nbytes, pace)]
            self._before += self._within if last.iterations is None else last.iterations
        self._number, self._began, self._within = number, now, 0
        self._show(now)

    def advance(self, done: int, total: int) -> None:
        """So many iterations of the step are over, its preparation with the first call."""
        now = self._clock()
        self._within = done
        if done == 0:
            self._began = now
        elif now - self._last >= REPORT_SECONDS:
            self._show(now)

    def _show(self, now: float) -> None:
        self._last = now
        step = self._steps[self._number]
        pace = self._paces[-1][1] * self._growth(step.nbytes) if self._paces else None
        if self._within and step.iterations is not None:
            pace = (now - self._began) / self._within
        expected = left = None
        if pace is not None:
            expected = pace * max(0, (step.iterations or 1) - self._within)
            left = expected + sum(
                pace * self._growth(later.nbytes, step.nbytes) * (later.iterations or 1)
                for later in self._steps[self._number + 1 :]
            )
        progress = Progress(
            self._name,
            step.label,
            self._number + 1,
            len(self._steps),
            self._before + self._within,
            self._total,
            left,
        )
        self._display.show(progress, expected)

    def _growth(self, nbytes: int, base: int | None = None) -> float:
        """How many times as long an iteration takes as one of ``base`` bytes, by the last steps.

        Without ``base`` as one of the last step.
        """
        if not self._paces:
            return 1.0
        (first, before), (last, after) = self._paces[0], self._paces[-1]
        base = last if base is None else base
        if not (0 < first < last and 0 < before < after and 0 < base < nbytes):
            return 1.0
        return float((nbytes / base) ** min(1.0, log(after / before) / log(last / first)))


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
