"""Files of rules in force: which collective algorithm the MPI library takes by its user's file."""

from __future__ import annotations

import os

from omb_py.core.errors import OmbError

FILES = {
    "MPICH": (
        "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE",
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
    ),
    "Open MPI": ("OMPI_MCA_coll_tuned_dynamic_rules_filename",),
}
"""The variables that name files of rules, by library."""

METADATA = "rules"
"""The key of the files in force in a run's metadata."""


def files_in_force(library: str) -> list[str]:
    """Return the paths of the files of rules that a library has been given.

    Open MPI is asked by MPI_T, as its parameters stand in files, too. MPICH reads variables of the
    environment alone, and gives none of its texts by MPI_T.
    """
    names = FILES.get(library, ())
    if library != "Open MPI":
        return [path for name in names if (path := os.environ.get(name))]
    from omb_py.core.mpi.tool_interface import ControlVariable

    try:
        if not ControlVariable("coll_tuned_use_dynamic_rules").read():
            return []
        found = (ControlVariable(name.removeprefix("OMPI_MCA_")).read_text() for name in names)
        return [path for path in found if path]
    except OmbError:  # the library is built without this component, or without MPI_T
        return []


def in_force(library: str) -> str:
    """Return the names of the files of rules in force, each with a digest of its content."""
    paths = files_in_force(library)
    return " ".join(f"{os.path.basename(path)}:{digest_of(path)}" for path in paths)


def digest_of(path: str) -> str:
    """Return a short digest of a file's content."""
    import hashlib

    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:8]
    except OSError:
        return "cannot-be-read"
