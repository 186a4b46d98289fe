"""Tells how a sweep goes on: live on a terminal, line by line elsewhere, and always in its log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from omb_py.core.text.units import duration
from omb_py.core.text.words import count
from omb_py.sweeps.files import writing
from omb_py.sweeps.folder import Attempt
from omb_py.sweeps.points import Point


class Reporter:
    """Counts rows as points end; ``rows`` are those planned, ``there`` those there already."""

    def __init__(self, log: Path, stream: TextIO, rows: int, there: int) -> None:
        self._log = log
        self._stream = stream
        self.rows = rows
        self.there = there
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Reporter:
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("{task.completed:.0f} of {task.total:.0f} rows"),
                BarColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
                console=Console(file=self._stream),
                auto_refresh=False,
            )
            self._task = self._bar.add_task("", total=self.rows, completed=self.there)
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """One line, for people and for the log.

        Raises `OmbError` when the log cannot be written.
        """
        with writing(self._log):
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self._stream, flush=True)

    def started(self, point: Point, missing: Sequence[int], retry: bool) -> None:
        """A point is about to be measured."""
        if self._bar is not None:
            again = " again" if retry else ""
            self._bar.update(self._task, description=f"{point.describe()}{again}", refresh=True)

    def tick(self) -> None:
        """Some time has passed."""
        if self._bar is not None:
            self._bar.refresh()

    def ended(self, point: Point, attempt: Attempt) -> None:
        """An attempt at a point is over."""
        self.there += attempt.rows
        if self._bar is not None:
            self._bar.update(self._task, completed=self.there, refresh=True)
        took = f"{count(attempt.rows, 'row')} in {duration(attempt.seconds)}"
        outcome = "" if attempt.outcome == "done" else f" {attempt.outcome}"
        said = f": {attempt.said}" if attempt.said else ""
        self.say(f"[{self.there}/{self.rows}] {point.describe()}{outcome}, {took}{said}")

    def elsewhere(self, point: Point) -> None:
        """Another sweep is measuring this point."""
        self.say(f"{point.describe()}: another omb-py sweep is measuring it")
