"""What rank 0 does when all ranks have ended: texts and tables from their records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from omb_py import launcher, records
from omb_py.errors import OmbError, UsageError
from omb_py.observe.settings import Settings
from omb_py.records.layout import SUFFIX, path_in

SECONDS = 20.0
"""How long to wait for the records of ranks that end later."""

PAUSE = 0.02


def clear(folder: str, force: bool) -> None:
    """Make room for a new run's records; raises `UsageError` where others are in the way."""
    there = sorted(Path(folder).glob(f"rank-*{SUFFIX}")) if Path(folder).is_dir() else []
    if Path(folder).exists() and not Path(folder).is_dir():
        raise UsageError(f"--output {folder} is a file: name a folder")
    if there and not force:
        raise UsageError(
            f"{folder} holds the profile of another run: name another folder with --output, or "
            "replace it with --force"
        )
    for path in (*there, *Path(folder).glob("profile*"), *Path(folder).glob("traffic-*")):
        try:
            path.unlink()
        except OSError as error:
            raise OmbError(f"cannot remove {path}: {error.strerror or error}") from error


def report(settings: Settings, ranks: int) -> None:
    """Write what was asked for, and say where it is.

    Raises `OmbError` where it cannot be written.
    """
    late = wait_for(settings.folder, ranks)
    if late:
        shown = ", ".join(map(str, late[:5])) + (" …" if len(late) > 5 else "")
        launcher.note(
            f"no end of rank {shown} in {settings.folder}: where ranks run on several hosts, name "
            "a folder that they share",
            0,
        )
    from omb_py.profiles import files, load

    written: list[Path] = files.write(load([settings.folder]), settings.folder, settings.ranks)
    if settings.timelines:
        from omb_py.timelines import files as timelines
        from omb_py.timelines import read, told

        timeline = read(settings.folder)
        for sentence in told.notes(timeline):
            launcher.note(sentence, 0)
        for path in settings.timelines:
            timelines.write(timeline, Path(path), force=True)
    if not settings.quiet:
        names: Sequence[object] = (written[0], *settings.timelines)
        launcher.note(f"profile of {ranks} ranks: {', '.join(map(str, names))}", 0)


def wait_for(folder: str, ranks: int) -> list[int]:
    """The ranks whose records have no end although they were waited for."""
    until = time.monotonic() + SECONDS
    waiting = list(range(ranks))
    while True:
        waiting = [rank for rank in waiting if not _ended(path_in(folder, rank))]
        if not waiting or time.monotonic() > until:
            return waiting
        time.sleep(PAUSE)


def _ended(path: str) -> bool:
    try:
        return records.read(path).complete
    except UsageError:
        return False
