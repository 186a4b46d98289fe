"""Work of rank 0 for `omb-py profile` before the program starts, and after all ranks have ended.

It makes room for their records, then writes the text and the table of the profile from them.
"""

from __future__ import annotations

import os
import re

from omb_py.core.errors import UsageError
from omb_py.core.mpi import launcher
from omb_py.core.text.files import failing, make_folder
from omb_py.core.text.words import count, some_ranks
from omb_py.core.waiting import poll
from omb_py.tracing.records.layout import path_in, record_names

SECONDS = 20.0
"""Seconds to wait for the records of ranks that end later."""

PAUSE = 0.02

WRITTEN = re.compile(r"profile\.(txt|csv)|traffic-\d+\.json")
"""Names of what a run writes next to its records."""


def prepare(folder: str, force: bool) -> None:
    """Make room for a new run's records in a folder, and see that files can be written there.

    Raises `UsageError` if a name cannot be that of a file or others' records are in the way,
    and `OmbError` where something cannot be written.
    """
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UsageError(f"--folder {folder} is a file: name a folder")
    there = os.listdir(folder) if os.path.isdir(folder) else []
    earlier = record_names(folder) + [name for name in there if WRITTEN.fullmatch(name)]
    if earlier and not force:
        raise UsageError(
            f"{folder} holds the profile of another run: name another folder with --folder, or "
            "replace it with --force"
        )
    with failing("write", folder, advice="; choose another place with --folder"):
        make_folder(folder)
        tried = os.path.join(folder, f".omb-py-{os.urandom(4).hex()}")
        with open(tried, "xb"):
            os.unlink(tried)
    for path in (os.path.join(folder, name) for name in earlier):
        with failing("remove", path):
            os.unlink(path)


def report(folder: str, ranks: int, named: str, quiet: bool = False) -> None:
    """Write the profile of a run of ``ranks`` ranks, and print its path unless ``quiet``.

    ``named`` is the folder as the user named it, where the program was started. Raises `OmbError`
    if a file cannot be written.
    """
    late = wait_for(folder, ranks)
    if late:
        launcher.note(
            f"no end of {some_ranks(late)} in {folder}: where ranks run on several hosts, name "
            "a folder that they share",
            0,
        )
    from omb_py.tracing.profile import store

    written = store.write(store.load([folder]), folder)
    if not quiet:
        shown = os.path.join(named, os.path.basename(written[0]))
        launcher.note(f"profile of {count(ranks, 'rank')}: {shown}", 0)


def wait_for(folder: str, ranks: int) -> list[int]:
    """Wait for the ends of records; return the ranks whose records have none."""
    waiting = list(range(ranks))

    def all_ended() -> bool:
        waiting[:] = [rank for rank in waiting if not _ended(path_in(folder, rank))]
        return not waiting

    poll(all_ended, PAUSE, SECONDS)
    return waiting


def _ended(path: str) -> bool:
    from omb_py.tracing.records import reading  # pathlib comes with it: not before the program

    try:
        return reading.read(path, events=False).complete
    except UsageError:
        return False
