"""Profiles of a sweep's applications: who records them, and what is kept of what they write."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from omb_py.core.errors import UsageError
from omb_py.sweeps.folder import RECORDS
from omb_py.sweeps.machine import RECORDER, Machine
from omb_py.sweeps.points import DATA, SweepPoint
from omb_py.sweeps.toml import reason

LIBRARY = "MPITRACE"
"""The environment variable that names a site's profiling library."""

OWN = "profile"
"""The folder of the recorder's files, where the ranks run."""


def with_profile(machine: Machine, environ: Mapping[str, str]) -> Machine:
    """A machine whose applications are profiled: as it says, else by the site's library.

    Without either the recorder does it. Raises `UsageError` for a library's name that cannot be.
    """
    if machine.profile is not None:
        return machine
    word = environ.get(LIBRARY) or RECORDER
    try:
        Machine.model_validate({"name": machine.name, "profile": word})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise UsageError(f"{LIBRARY}: {reason(fault)}") from error
    return machine.model_copy(update={"profile": word})


def library(machine: Machine) -> Path | None:
    """The profiling library that is loaded into applications, if one is."""
    if machine.profile in (None, RECORDER):
        return None
    return Path(str(machine.profile)).expanduser().absolute()


def check(machine: Machine) -> None:
    """Raise `UsageError` when the profiling library is not there."""
    path = library(machine)
    if path is not None and not path.is_file():
        raise UsageError(
            f"there is no profiling library {path}: name its file in {LIBRARY} or as profile of "
            f'machine {machine.name}, or take profile = "{RECORDER}"'
        )


def is_profiled(point: SweepPoint, machine: Machine) -> bool:
    """Whether a point is run under a profiler: benchmarks are not, whose times it would change."""
    return machine.profile is not None and point.is_application


def collect(scratch: Path, into: Path) -> bool:
    """Move what a profiler has written where the ranks ran to a new folder; False for nothing.

    Raises `OSError` when that cannot be done.
    """
    own = scratch / OWN
    found = _files(own.iterdir() if own.is_dir() else scratch.iterdir())
    if not found:
        return False
    into.mkdir(parents=True)
    for path in found:
        shutil.move(path, into / path.name)
    return True


def _files(paths: Iterable[Path]) -> list[Path]:
    """What a profiler may have written: no links, and nothing that is the sweep's or a crash's."""
    return sorted(
        path
        for path in paths
        if path.name not in (RECORDS, DATA)
        and path.name.partition(".")[0] != "core"
        and not path.is_symlink()
    )
