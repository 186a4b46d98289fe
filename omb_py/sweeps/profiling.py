"""Profiles of a sweep's applications: their recorder, and the files to keep."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
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
    """Return a machine whose applications are profiled: by its own setting, else by the site's
    library.

    Without either the recorder profiles. Raises `UsageError` for an invalid name of a library.
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
    """Return the profiling library that is loaded into applications, if there is one."""
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
    """Return whether a point is run under a profiler: benchmarks are not, to keep their times."""
    return machine.profile is not None and point.is_application


def collect(scratch: Path, into: Path) -> bool:
    """Move a profiler's files from the folder of the ranks to a new folder; False without any.

    Links, and files of the sweep or of a crash, stay. Raises `OSError` when that cannot be done.
    """
    own = scratch / OWN
    found = sorted(
        path
        for path in (own if own.is_dir() else scratch).iterdir()
        if path.name not in (RECORDS, DATA)
        and path.name.partition(".")[0] != "core"
        and not path.is_symlink()
    )
    if not found:
        return False
    into.mkdir(parents=True)
    for path in found:
        shutil.move(path, into / path.name)
    return True
