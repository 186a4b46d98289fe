"""The files of a profile in the folder of its run."""

from __future__ import annotations

import io
import re
from pathlib import Path

from omb_py import atomic
from omb_py.errors import OmbError
from omb_py.profiles import csv, json, text
from omb_py.profiles.profile import Profile

EXTREMES, ALL = "extremes", "all"
RANK_TEXT = re.compile(r"profile\.(\d+)\.txt")


def write(profile: Profile, folder: str | Path, ranks: str = EXTREMES) -> list[Path]:
    """Write the texts, the CSV and the JSON of a profile, and say which files these are.

    Texts are those of all ranks together and of rank 0 and the ranks with the least, the median
    and the greatest communication time, or with ``ranks`` "all" of every rank. Texts of other
    ranks, from an earlier look at the run, go away. Raises `OmbError` when one cannot be written.
    """
    folder = Path(folder)
    chosen = [one.rank for one in profile.members] if ranks == ALL else those_that_matter(profile)
    wanted = {folder / "profile.txt": _text(profile, None)}
    wanted |= {folder / f"profile.{rank}.txt": _text(profile, rank) for rank in chosen}
    wanted[folder / csv.NAME] = csv.text(profile)
    wanted[folder / json.NAME] = json.text(profile)
    for path, content in wanted.items():
        atomic.write(path, content)
    try:
        for path in folder.iterdir():
            if RANK_TEXT.fullmatch(path.name) and path not in wanted:
                path.unlink()
    except OSError as error:
        raise OmbError(f"cannot write to {folder}: {error.strerror or error}") from error
    return list(wanted)


def those_that_matter(profile: Profile) -> list[int]:
    """Rank 0 and those with the least, the median and the greatest communication time."""
    extremes = profile.extremes
    found = {one.rank for one in (extremes.minimum, extremes.median, extremes.maximum) if one}
    return sorted({0, *found} & {member.rank for member in profile.members})


def _text(profile: Profile, rank: int | None) -> str:
    out = io.StringIO()
    text.write(profile, rank, out)
    return out.getvalue()
