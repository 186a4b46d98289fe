"""The folder of a sweep: its configuration, results and history."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.files import write_atomically
from omb_py.sweeps.libraries import Software
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import SweepPoint, has_all_parts
from omb_py.sweeps.targets import target
from omb_py.sweeps.toml import read

DONE, SHORT, UNSUPPORTED, MISSING = "done", "short", "unsupported", "missing"
FAILED, TIMED_OUT, STOPPED, HUNG = "failed", "timed out", "stopped", "hung"
REFUSED, SUSPENDED = "refused", "suspended"
"""Outcomes of an attempt: all rows are there; there was no memory for some, or no algorithm; no
library can measure it; a package, device or library is missing, which the next start looks for
again; it failed; it took too long; omb-py ended it, or did so after its last row; its options are
wrong; the scheduler suspended the job."""

FAILURES = (FAILED, TIMED_OUT)
"""Outcomes that are worth a retry."""

RECORDS = "shared"
"""The name, in the folder of the ranks, of records of the files that a killed job leaves."""

HARMLESS = {"description", "accelerator", "job", "nodes", "virtual_environment", "scheduler"}
HARMLESS |= {"library"}
"""Settings of a machine that do not change the results, or are compared one by one."""

SOFTWARE_FILE = "software.json"

NO_SIZE = 0
"""Stands for the message size of a benchmark that has none."""


class Attempt(BaseModel):
    """One start of the launcher. ``seconds`` it took, ``rows`` it added, ``said`` is its excuse.

    ``hung`` if it had to be ended after its last row, as MPI needs it where ranks have failed;
    ``began`` is false if it ended before its ranks had met.
    """

    model_config = ConfigDict(frozen=True)

    started: str
    seconds: float
    exit_code: int | None
    outcome: str
    rows: int
    said: str = ""
    hung: bool = False
    began: bool = True


class PointState(BaseModel):
    """The history of a point: its attempts, and sizes in bytes that cannot be measured."""

    model_config = ConfigDict(frozen=True)

    attempts: tuple[Attempt, ...] = ()
    given_up: tuple[int, ...] = ()

    @property
    def last(self) -> Attempt | None:
        """The last attempt that was not stopped; None without one."""
        ended = [one for one in self.attempts if one.outcome not in (STOPPED, SUSPENDED)]
        return ended[-1] if ended else None

    @property
    def outcome(self) -> str | None:
        """The outcome of the last attempt; None without one."""
        return self.last.outcome if self.last else None


class Folder:
    """The folder of one sweep on one machine; every point has its own files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def csv(self, point: SweepPoint) -> Path:
        """Return the file of a point's rows."""
        return self.root / "points" / f"{point.name}.csv"

    def log(self, point: SweepPoint) -> Path:
        """Return the file of the output of a point's launcher and ranks."""
        return self.root / "logs" / f"{point.name}.output"

    def scratch(self, point: SweepPoint) -> Path:
        """Return the folder in which a point's ranks run, and benchmarks of files write."""
        return self.root / "scratch" / point.name

    def abandoned(self) -> list[Path]:
        """Return folders in which ranks run, or ran when a sweep was killed; each is named as its
        point."""
        return [path.parent for path in sorted(self.root.glob(f"scratch/*/{RECORDS}"))]

    def lock(self, name: str) -> Path:
        """Hold the lock of a point, by its name, while it is measured."""
        return self.root / "state" / f"{name}.lock"

    def _state(self, point: SweepPoint) -> Path:
        return self.root / "state" / f"{point.name}.state"

    def summary(self, point: SweepPoint) -> Path:
        """Return the file with the outcomes of the points of the launch that began with this
        one."""
        return self.root / "state" / f"{point.name}.summary.json"

    def prepare(
        self, sweep: Sweep, machine: Machine, software: Sequence[Software], mix: bool = False
    ) -> None:
        """Write the configuration, to show and repeat the sweep.

        ``software`` is that of each library that measures. Raises `UsageError` when the folder is
        another sweep's or another machine's, or, without ``mix``, has rows of other software of
        that library, `OmbError` when it cannot be written.
        """
        before = self.root / "sweep.toml", self.root / "machine.toml"
        if before[0].exists() and read(before[0], Sweep).name != sweep.name:
            raise UsageError(f"{self.root} holds another sweep: choose another --folder")
        with needing("sweep"):  # compare and check write no sweep
            import tomli_w

        if before[1].exists():
            earlier = read(before[1], Machine)
            differing = [
                name
                for name in type(machine).model_fields
                if name not in HARMLESS and getattr(machine, name) != getattr(earlier, name)
            ]
            both = machine.library.keys() & earlier.library.keys()
            differing += [
                f"library.{name}"
                for name in sorted(both)
                if machine.library[name] != earlier.library[name]
            ]
            if differing:
                raise UsageError(
                    f"{self.root} was measured with another {' and '.join(differing)} of the "
                    "machine: choose another --folder"
                )
        listed = self._software() if any(self.root.glob("points/*.csv")) else []
        for one in software:
            known = [own for own in listed if own.name == one.name]
            if one == Software() or not all(one.difference(own) for own in known):
                continue
            if known and not mix:
                of_library = f" of library {one.name}" if one.name else ""
                raise UsageError(
                    f"{self.root} has rows of other software{of_library}: this is "
                    f"{one.difference(known[-1])}; choose another --folder, or add --mix to "
                    "have both in it"
                )
            listed.append(one)
            facts = [own.model_dump(exclude_defaults=True) for own in listed]
            write_atomically(self.root / SOFTWARE_FILE, json.dumps(facts, indent=1) + "\n")
        for path, model in zip(before, (sweep, machine), strict=True):
            content = model.model_dump(mode="json", exclude_none=True)
            write_atomically(path, tomli_w.dumps(content))

    def _software(self) -> list[Software]:
        """Return the software of the rows; empty if the file is missing or incomplete."""
        try:
            listed = json.loads((self.root / SOFTWARE_FILE).read_bytes())
            return [Software.model_validate(one) for one in listed]
        except (OSError, ValueError, TypeError):
            return []

    def state(self, point: SweepPoint) -> PointState:
        """Return the history of a point; empty if its file is missing or incomplete."""
        try:
            return PointState.model_validate_json(self._state(point).read_bytes())
        except (OSError, ValidationError):
            return PointState()

    def note(self, point: SweepPoint, state: PointState) -> None:
        """Keep the history of a point; raises `OmbError` if it cannot be written."""
        write_atomically(self._state(point), state.model_dump_json(indent=1) + "\n")

    def measured(self, point: SweepPoint) -> tuple[int, ...]:
        """Return the sizes in bytes whose rows are there, in their order in the file."""
        rows = list(whole_rows(self.csv(point)))
        if not target(point.benchmark).planned:
            return (NO_SIZE,) if has_all_parts(point, rows) else ()
        own = (row.get("bytes") or NO_SIZE for row in rows if not row.get("part"))
        return tuple(dict.fromkeys(int(size) for size in own))  # groups of ranks have a row each

    def there(self, point: SweepPoint) -> int:
        """Return the number of planned rows that are measured."""
        return len({*self.measured(point)} & {*(point.sizes or (NO_SIZE,))})

    def missing(self, point: SweepPoint) -> tuple[int, ...]:
        """Return the planned sizes that can still be measured."""
        gone = {*self.measured(point), *self.state(point).given_up}
        return tuple(size for size in point.sizes or (NO_SIZE,) if size not in gone)

    def strangers(self, points: Iterable[SweepPoint]) -> list[str]:
        """Return files of points that are not in the plan."""
        known = {self.csv(point).name for point in points}
        return sorted(
            path.name for path in self.root.glob("points/*.csv") if path.name not in known
        )


def whole_rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a point's file, without one that a killed rank did not finish.

    Raises `OmbError` when the file is there and cannot be read.
    """
    with files.failing("read", path):
        if not path.exists():
            return
        text = path.read_bytes().decode(errors="replace")
    whole = text[: text.rfind("\n") + 1]
    lines = (line for line in whole.splitlines() if not line.startswith("#"))
    yield from csv.DictReader(lines)
