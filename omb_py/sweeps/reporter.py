"""Reports of a sweep's progress: lines for launches and points, also in the sweep's log, and a bar.

The bar is on a terminal alone; log files and pipes have the lines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omb_py.core.text.units import duration
from omb_py.core.text.words import behind, count, printable
from omb_py.sweeps.files import moment, writing
from omb_py.sweeps.folder import Attempt, Folder
from omb_py.sweeps.points import SweepPoint
from omb_py.sweeps.reasons import listed

if TYPE_CHECKING:
    from rich.progress import Progress


class TimeLeft:
    """The seconds that rows of each benchmark took so far, and so those that are missing will."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[float, int]] = {}

    def add(self, point: SweepPoint, attempt: Attempt) -> None:
        """Count an attempt, if it added rows."""
        if attempt.rows:
            seconds, rows = self._taken.get(point.benchmark, (0.0, 0))
            self._taken[point.benchmark] = seconds + attempt.seconds, rows + attempt.rows

    def seconds(self, missing: Mapping[SweepPoint, int]) -> float | None:
        """Return about how long these numbers of rows take; None if no row was measured before.

        A benchmark that was not measured yet takes as long for a row as the others on average.
        """
        if not self._taken:
            return None
        seconds, rows = (sum(one) for one in zip(*self._taken.values(), strict=True))
        total = 0.0
        for point, number in missing.items():
            took, measured = self._taken.get(point.benchmark, (seconds, rows))
            total += number * took / measured
        return total


class Reporter:
    """Counts points and rows as points end; ``points`` are those of the plan."""

    def __init__(self, folder: Folder, points: Sequence[SweepPoint]) -> None:
        self._folder = folder
        self._log = folder.root / "logs" / "sweep.output"
        self.points = points
        self.rows = sum(point.rows for point in points)
        self._there = {point: folder.there(point) for point in points}
        self._missing = {point: len(folder.missing(point)) for point in points}
        self._time_left = TimeLeft()
        for point in points:
            for attempt in folder.state(point).attempts:
                self._time_left.add(point, attempt)
        self.added = 0
        """Rows of this sweep's attempts; others in the folder add rows, too."""
        self.since = moment()
        self._began = time.monotonic()
        self._spent, self._begun = 0.0, 0
        self._launch: Sequence[SweepPoint] = ()
        self._bar: Progress | None = None

    @property
    def there(self) -> int:
        """The planned rows that are known to be there."""
        return sum(self._there.values())

    def say(self, text: str) -> None:
        """Print one line, for people and for the log.

        Raises `OmbError` when the log cannot be written.
        """
        with writing(self._log):
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a", encoding="utf-8") as file:
                file.write(f"{moment()} {text}\n")
        if self._bar is None:
            print(text, flush=True)
        else:  # above the bar
            words = printable(text)
            self._bar.console.print(words, markup=False, highlight=False, soft_wrap=True)

    def look(self, point: SweepPoint) -> None:
        """Count the rows of a point anew, which another sweep may have measured."""
        self._there[point] = self._folder.there(point)
        self._missing[point] = len(self._folder.missing(point))

    def begins(self, points: Sequence[SweepPoint]) -> None:
        """Report that a launch begins."""
        others = f" and {count(len(points) - 1, 'other point')}" if len(points) > 1 else ""
        self.say(f"measuring {points[0].describe()}{others}")
        self._begun += len(points)
        self._launch = points
        self._update()

    def ended(self, point: SweepPoint, attempt: Attempt) -> None:
        """Report that an attempt at a point is over."""
        self.added += attempt.rows
        self._spent += attempt.seconds
        self.look(point)
        self._time_left.add(point, attempt)
        took = f"{count(attempt.rows, 'row')} in {duration(attempt.seconds)}"
        outcome = "" if attempt.outcome == "done" else f" {attempt.outcome}"
        said = f": {attempt.said}" if attempt.said else ""
        said += ", ended by the sweep after its last row" if attempt.hung else ""
        self.say(f"[{self.progress()}] {point.describe()}{outcome}, {took}{said}")
        self._update()

    def progress(self) -> str:
        """Return the points and rows that are there, the seconds so far and about those left."""
        done = sum(not number for number in self._missing.values())
        words = [f"{done}/{len(self.points)} points", f"{self.there}/{self.rows} rows"]
        words.append(duration(time.monotonic() - self._began))
        left = self._time_left.seconds(self._missing)
        words += [f"about {duration(left + self._starts_left())} left"] if left else []
        return ", ".join(words)

    def _starts_left(self) -> float:
        """Return about how many seconds launches of several points will take to start and end."""
        later = sum(bool(number) for number in self._missing.values())
        later -= sum(bool(self._missing.get(point)) for point in self._launch)
        starts = max(0.0, time.monotonic() - self._began - self._spent)
        return starts * later / self._begun if self._begun else 0.0

    def elsewhere(self, point: SweepPoint) -> None:
        """Report that another sweep is measuring this point."""
        self.say(f"{point.describe()}: another omb-py sweep is measuring it")

    def list_points(self, points: Sequence[SweepPoint], what: str) -> None:
        """Print points, grouped by their reasons; nothing for no points."""
        for line in listed(self._folder, points, what, self.since):
            self.say(line)

    @contextmanager
    def bar(self) -> Iterator[None]:
        """Show a bar below the lines as long as the block lasts, if they go to a terminal."""
        if not sys.stdout.isatty():
            yield
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = BarColumn(), TextColumn("{task.description}")
        console = Console(file=behind(sys.stdout))
        with Progress(
            *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
        ) as self._bar:
            self._bar.add_task(self.progress(), total=self.rows, completed=self.there)
            try:
                yield
            finally:
                self._bar = None

    def _update(self) -> None:
        if self._bar is not None:
            (task,) = self._bar.task_ids
            self._bar.update(task, completed=self.there, description=self.progress(), refresh=True)
