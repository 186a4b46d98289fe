"""What the launcher says of this process in its environment, before MPI is started."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time

STAGGER_SECONDS = 0.2
LAUNCHER_SECONDS = 1.0
"""Of ranks that fail alike, each speaks later than the one before it, and rank 0 so early that
the launcher has ended the others by then: one speaks for all."""

SECONDS_TO_BE_HEARD = 0.3
"""How long the launcher gets to pass on what a rank printed before the rank ends the job."""

RANK_VARIABLES = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "PALS_RANKID",
    "MV2_COMM_WORLD_RANK",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
)
SIZE_VARIABLES = (
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "FLUX_JOB_SIZE",
)
LOCAL_RANK_VARIABLES = (
    "OMB_PY_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MVP_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "FLUX_TASK_LOCAL_ID",
    "SLURM_LOCALID",
    "PMI_LOCAL_RANK",
    "LOCAL_RANK",
)

EXPECTED_RANKS = "OMB_PY_EXPECTED_RANKS"
"""How many ranks whoever wrote the launcher's command line wanted."""

SHARED_FILES = "OMB_PY_SHARED_FILES"
"""A folder into which each rank writes which shared memory it has mapped."""


def rank() -> int:
    """This process's rank in the job, 0 when no known launcher started it."""
    return _first(RANK_VARIABLES, 0)


def ranks() -> int:
    """How many ranks the launcher started, 1 when it does not say."""
    return _first(SIZE_VARIABLES, 1)


def expected_ranks() -> int | None:
    """How many ranks there should be, None when nobody says."""
    return _find((EXPECTED_RANKS,))


def local_rank() -> int | None:
    """This process's rank among those of its node, None when no known launcher says."""
    return _find(LOCAL_RANK_VARIABLES)


def note(text: str, rank: int) -> None:
    """Tell the user something that is no reason to stop, if this process is rank 0."""
    if rank == 0:
        print(f"omb-py: note: {text}", file=sys.stderr, flush=True)


def stagger(rank: int) -> None:
    """Let lower ranks report the same failure, and end the job, first."""
    if rank > 0:
        time.sleep(LAUNCHER_SECONDS + min(STAGGER_SECONDS * rank, 2.0))


def ends_with_first() -> bool:
    """Whether the first rank that leaves with an error, by `end_job`, is known to end the job."""
    known = _hydra_channel() is not None or "OMPI_COMM_WORLD_RANK" in os.environ
    return known and ranks() > 1


def end_job(exit_code: int) -> None:
    """End all ranks from one that leaves before MPI is started, where the launcher would not.

    Hydra, the launcher of MPICH and Intel MPI, leaves the others in MPI_Init for ever; it ends
    them at an abort of its process management interface (PMI-1). That of Open MPI ends them by
    itself, but can crash while others are connecting to it.
    """
    if not ends_with_first():
        return
    time.sleep(SECONDS_TO_BE_HEARD)
    channel = _hydra_channel()
    if channel is not None:
        with contextlib.suppress(OSError):
            os.write(channel, f"cmd=abort exitcode={exit_code}\n".encode())
            time.sleep(LAUNCHER_SECONDS)


def _hydra_channel() -> int | None:
    """The connection to Hydra, None where another launcher started this process."""
    channel = _find(("PMI_FD",))
    if channel is None or "PMI_JOBID" in os.environ:  # Slurm's
        return None
    try:
        return channel if stat.S_ISSOCK(os.fstat(channel).st_mode) else None
    except OSError:
        return None


def _first(variables: tuple[str, ...], default: int) -> int:
    found = _find(variables)
    return default if found is None else found


def _find(variables: tuple[str, ...]) -> int | None:
    for variable in variables:
        value = os.environ.get(variable, "")
        if value.isascii() and value.isdigit():
            return int(value)
    return None
