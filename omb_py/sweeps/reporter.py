"""Reports of a sweep's progress: live on a terminal, line by line elsewhere, always in its log."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from omb_py.core.text.units import duration, size_text
from omb_py.core.text.words import count
from omb_py.sweeps.files import writing
from omb_py.sweeps.folder import NO_SIZE, Attempt
from omb_py.sweeps.points import SweepPoint


class Reporter:
    """Counts rows as points end; ``rows`` are those planned, ``there`` those there already."""

    def __init__(self, log: Path, stream: TextIO, rows: int, there: int) -> None:
        self._log = log
        self._stream = stream
        self.rows = rows
        self.there = there
        self._before = there
        self._began = time.monotonic()
        self.since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._bar: Any = None
        self._task: Any = None

    @property
    def is_live(self) -> bool:
        """True if each added row is shown at once."""
        return self._bar is not None

    def __enter__(self) -> Reporter:
        if self._stream.isatty() and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.completed:.0f} of {task.total:.0f} rows"),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[left]}"),
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True),
                auto_refresh=False,
                transient=True,
            )
            self._task = self._bar.add_task("", total=self.rows, completed=self.there, left="")
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Print one line, for people and for the log.

        Raises `OmbError` when the log cannot be written.
        """
        with writing(self._log):
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=self._stream, flush=True)

    def started(self, point: SweepPoint, missing: Sequence[int], retry: bool) -> None:
        """Report that a point is about to be measured."""
        self._update(f"{point.describe()}{' again' if retry else ''}", missing)

    def row_added(self, point: SweepPoint, missing: Sequence[int], before: int) -> None:
        """Report new rows of a point; ``before`` were missing when it began, ``missing`` are
        now."""
        self._update(point.describe(), missing, before - len(missing))

    def _update(self, what: str, missing: Sequence[int], new: int = 0) -> None:
        if self._bar is None:
            return
        if missing and missing[0] != NO_SIZE:
            what += f": {size_text(missing[0])}"
        there = self.there + new
        took, left = (time.monotonic() - self._began) / max(1, there - self._before), ""
        if there > self._before:
            left = f"about {duration(took * (self.rows - there))} left"
        self._bar.update(self._task, description=what, completed=there, left=left, refresh=True)

    def ended(self, point: SweepPoint, attempt: Attempt) -> None:
        """Report that an attempt at a point is over."""
        self.there += attempt.rows
        self._update(point.describe(), ())
        took = f"{count(attempt.rows, 'row')} in {duration(attempt.seconds)}"
        outcome = "" if attempt.outcome == "done" else f" {attempt.outcome}"
        said = f": {attempt.said}" if attempt.said else ""
        said += ", ended by the sweep after its last row" if attempt.hung else ""
        self.say(f"[{self.there}/{self.rows}] {point.describe()}{outcome}, {took}{said}")

    def elsewhere(self, point: SweepPoint) -> None:
        """Report that another sweep is measuring this point."""
        self.say(f"{point.describe()}: another omb-py sweep is measuring it")
