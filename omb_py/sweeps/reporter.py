"""Reports of a sweep's progress: a line for each point that ended, also in the sweep's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from omb_py.core.text.units import duration
from omb_py.core.text.words import count
from omb_py.sweeps.files import moment, writing
from omb_py.sweeps.folder import Attempt, Folder
from omb_py.sweeps.points import SweepPoint
from omb_py.sweeps.reasons import listed


class Reporter:
    """Counts rows as points end; ``rows`` are planned, ``counts`` are there already, by point."""

    def __init__(self, log: Path, rows: int, counts: Mapping[SweepPoint, int]) -> None:
        self._log = log
        self.rows = rows
        self.counts = dict(counts)
        self.added = 0
        """Rows of this sweep's attempts; others in the folder add rows, too."""
        self.since = moment()

    @property
    def there(self) -> int:
        """The planned rows that are known to be there."""
        return sum(self.counts.values())

    def say(self, text: str) -> None:
        """Print one line, for people and for the log.

        Raises `OmbError` when the log cannot be written.
        """
        with writing(self._log):
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a", encoding="utf-8") as file:
                file.write(f"{moment()} {text}\n")
        print(text, flush=True)

    def list_points(self, folder: Folder, points: Sequence[SweepPoint], what: str) -> None:
        """Print points, grouped by their reasons; nothing for no points."""
        for line in listed(folder, points, what, self.since):
            self.say(line)

    def ended(self, point: SweepPoint, attempt: Attempt) -> None:
        """Report that an attempt at a point is over."""
        self.added += attempt.rows
        took = f"{count(attempt.rows, 'row')} in {duration(attempt.seconds)}"
        outcome = "" if attempt.outcome == "done" else f" {attempt.outcome}"
        said = f": {attempt.said}" if attempt.said else ""
        said += ", ended by the sweep after its last row" if attempt.hung else ""
        self.say(f"[{self.there}/{self.rows}] {point.describe()}{outcome}, {took}{said}")

    def elsewhere(self, point: SweepPoint) -> None:
        """Report that another sweep is measuring this point."""
        self.say(f"{point.describe()}: another omb-py sweep is measuring it")
