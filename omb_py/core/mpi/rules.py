"""Files of rules in force: which collective algorithm the MPI library takes by its user's file."""

from __future__ import annotations

import os

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


SWITCHES = {"Open MPI": "OMPI_MCA_coll_tuned_use_dynamic_rules"}
"""Variables without which a library ignores its files."""


def files_in_force(library: str) -> list[str]:
    """Return the paths of the files of rules that the environment gives a library.

    Open MPI would tell them by MPI_T, also those of its files of parameters. But where one rank
    alone opens MPI_T, a job of Open MPI 5.0.11 hangs in later calls.
    """
    switch = SWITCHES.get(library)
    if switch is not None and os.environ.get(switch, "0") in ("", "0", "false"):
        return []
    return [path for name in FILES.get(library, ()) if (path := os.environ.get(name))]


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
