"""Facts about this process that its launcher puts into the environment, known before MPI starts."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Iterator

STAGGER_SECONDS = 0.2
LAUNCHER_SECONDS = 1.0
"""Delay between the messages of ranks that fail alike, and of rank 0 before the others: the
launcher has ended those by then, so only one rank prints the error."""

TORCHRUN_SECONDS = 4.0
"""The same for torchrun, which looks for ranks that have ended every 0.1 s, or 5 s before 2.4."""

SECONDS_TO_BE_HEARD = 0.3
"""Time that the launcher gets to pass on a rank's output before the rank ends the job."""

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
    "SLURM_STEP_NUM_TASKS",
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

LOCAL_SIZE_VARIABLES = ("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE")  # of Hydra, of PALS

EXPECTED_RANKS = "OMB_PY_EXPECTED_RANKS"
"""The number of ranks that the author of the launcher's command line wanted."""

NOT_STARTED = "not-started"
"""A file in the folder of a sweep's ranks: rank 0 removes it when all ranks have met."""

PROFILER = "OMB_PY_PROFILER"
"""The environment variable that names what profiles a rank, for its results to say."""


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Make omb-py's own calls of MPI, which the profile of an application does not count.

    Not one inside of another.
    """
    if PROFILER not in os.environ:
        yield
        return
    from mpi4py import MPI

    MPI.Pcontrol(0)
    try:
        yield
    finally:
        MPI.Pcontrol(1)


SHARED_FILES = "OMB_PY_SHARED_FILES"
"""A folder into which each rank writes which shared memory it has mapped."""

LAUNCHERS = ("mpiexec", "mpiexec.hydra", "mpirun", "orterun", "prterun")
"""Programs that pass on what ranks print, by the names of their processes."""

PROXIES = ("hydra_pmi_proxy", "prted", "orted")
"""The programs by which launchers start ranks on each host."""


def rank() -> int:
    """Return this process's rank in the job, 0 when no known launcher started it."""
    return _find(("RANK",) if by_torchrun() else RANK_VARIABLES) or 0


def by_mpi() -> bool:
    """Return whether an MPI launcher started this process; not Slurm's, which starts others too."""
    return any(name in os.environ for name in RANK_VARIABLES if name != "SLURM_PROCID")


def by_torchrun() -> bool:
    """Return whether torchrun started this process, by the variable that it sets."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def ranks() -> int:
    """Return the number of ranks that the launcher started, 1 when it does not report it."""
    return _find(("WORLD_SIZE",) if by_torchrun() else SIZE_VARIABLES) or 1


def is_alone() -> bool:
    """Return whether no known launcher started this process, or one that started a single rank.

    Slurm also sets the rank of a batch script; PALS and PMIx set no number of ranks.
    """
    number = _find(("WORLD_SIZE",) if by_torchrun() else SIZE_VARIABLES)
    if number is not None:
        return number < 2
    return not any(name in os.environ for name in ("PALS_RANKID", "PMIX_RANK"))


def expected_ranks() -> int | None:
    """Return the number of ranks in `EXPECTED_RANKS`; None if it is not set."""
    return _find((EXPECTED_RANKS,))


def local_rank() -> int | None:
    """Return this process's rank among those of its node, None without a known launcher."""
    return _find(LOCAL_RANK_VARIABLES)


def local_ranks() -> int | None:
    """Return the number of ranks on this process's node, None if the launcher sets no such."""
    return _find(LOCAL_SIZE_VARIABLES)


def note(text: str, rank: int) -> None:
    """Tell the user something that is no reason to stop, if this process is rank 0."""
    if rank == 0:
        say(f"note: {text}")


def say(text: str) -> None:
    """Print a line on stderr, unless its reader is gone or its disk is full."""
    try:
        print(f"omb-py: {text}", file=sys.stderr, flush=True)
    except OSError:
        # what the old stream keeps would fail again at the end, and become the exit code
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115 - to the end


def launcher_process(direct: bool = False) -> int | None:
    """Return the nearest process above this one that is a launcher; None if on another host.

    If it has to be ``direct``, None too if it started the parent of this process not by itself or
    by its proxy, but by a shell, which may have more to do.
    """
    parent = process = os.getppid()
    while process > 1:
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
                before, _, after = file.read().rpartition(")")
        except OSError:
            return None
        if before.partition("(")[2] in LAUNCHERS:
            return process
        if direct and process != parent and before.partition("(")[2] not in PROXIES:
            return None
        process = int(after.split()[1])
    return None


def stagger(rank: int) -> None:
    """Let lower ranks report the same failure, and end the job, first."""
    if rank > 0:
        first = TORCHRUN_SECONDS if by_torchrun() else LAUNCHER_SECONDS
        time.sleep(first + min(STAGGER_SECONDS * rank, 2.0))


def ends_with_first() -> bool:
    """Return whether the first rank that leaves with an error, by `end_job`, ends the job."""
    open_mpi = "OMPI_COMM_WORLD_RANK" in os.environ and not outlives_ranks()
    return (open_mpi or by_hydra()) and ranks() > 1


def outlives_ranks() -> bool:
    """Return whether the job outlives a rank, as by ``mpirun --with-ft ulfm`` of Open MPI."""
    return os.environ.get("OMPI_MCA_mpi_ft_enable") in ("1", "true")  # noqa: SIM112 - its name


def end_job(exit_code: int) -> None:
    """End all ranks from one that leaves before MPI is started, if the launcher would not.

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


def by_hydra() -> bool:
    """Return whether the mpiexec of MPICH or Intel MPI started this process."""
    return _hydra_channel() is not None


def _hydra_channel() -> int | None:
    """Return the connection to Hydra, None if another launcher started this process."""
    channel = _find(("PMI_FD",))
    if channel is None or "PMI_JOBID" in os.environ:  # Slurm's
        return None
    try:
        return channel if stat.S_ISSOCK(os.fstat(channel).st_mode) else None
    except OSError:
        return None


def _find(variables: tuple[str, ...]) -> int | None:
    for variable in variables:
        value = os.environ.get(variable, "")
        if value.isascii() and value.isdigit():
            return int(value)
    return None
