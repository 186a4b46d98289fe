"""PROFILES: what every rank called, how often, with how many bytes, for how long.

A profile comes from the records of a run, from files that mpitrace wrote, or from a CSV or JSON
that was made of it before. `text` writes it as users of mpitrace know it, `csv` and `json` write
all of it, `files` what stands in a run's folder at its end. What nobody told is None, and said in
the notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omb_py.profiles.profile import Profile


def load(paths: Sequence[str]) -> Profile:
    """The profile of one run, from its folder, its records, mpitrace's files, or our CSV or JSON.

    Raises `UsageError` where there is none, where a file is damaged, and for several runs.
    """
    from omb_py.profiles.loading import loaded

    return loaded(paths)
