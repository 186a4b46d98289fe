"""The MPI library: loaded by mpi4py, then started by MPI_Init or an MPI-4 session; its name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING

from omb_py.core.errors import NoLibraryError, UnsupportedError, UsageError, installing
from omb_py.core.mpi import launcher

if TYPE_CHECKING:
    from mpi4py import MPI


LACKS = {
    "MPICH": frozenset({"comm_spawn", "file_open"}),
    "Open MPI": frozenset({"psend_init", "precv_init"}),
}
"""Functions that crash or fail in a session, by library: seen with MPICH 5.0.2, Open MPI 5.0.11."""


NEEDS_ALL_RANKS = {"Open MPI": frozenset({"psend_init", "precv_init"})}
"""Functions that wait for all ranks of the job, not only for those of their communicator.

Open MPI 5.0.11 first duplicates MPI_COMM_WORLD.
"""


def check_on_subset(functions: Iterable[str]) -> None:
    """Raise `UnsupportedError` when one of these hangs unless all ranks of the job call it."""
    from mpi4py import MPI

    vendor = MPI.get_vendor()[0]
    waiting = next((name for name in functions if name in NEEDS_ALL_RANKS.get(vendor, ())), None)
    if waiting is not None:
        raise UnsupportedError(
            f"{vendor}'s MPI_{waiting.capitalize()} waits for all ranks of the job, and others "
            "than those that measure sleep: start exactly 2"
        )


def check(functions: Iterable[str]) -> None:
    """Raise `UnsupportedError` when the library cannot do one of these in the session there is."""
    from mpi4py import MPI

    vendor = MPI.get_vendor()[0]
    lacking = next((name for name in functions if name in LACKS.get(vendor, ())), None)
    if lacking is not None and not MPI.Is_initialized():
        raise UnsupportedError(
            f"{vendor} cannot do MPI_{lacking.capitalize()} in a session: leave out -I"
        )


THROTTLE = {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "16",
}
"""MPICH's variables that let a rank that waits sleep: without them it spins on its core."""

THREAD_LEVELS = ("single", "funneled", "serialized", "multiple")
"""MPI's levels of thread support, in order."""


def load() -> ModuleType:
    """Return ``mpi4py.MPI``, with the MPI library and without starting it.

    Raises `NoLibraryError` when there is no library.
    """
    import mpi4py

    mpi4py.rc.initialize = False
    try:
        from mpi4py import MPI
    except ImportError as error:
        from omb_py.core.mpi import abi

        raise NoLibraryError(abi.mismatch() or _not_loaded(error)) from error
    except RuntimeError as error:
        raise NoLibraryError(_not_loaded(error)) from error
    return MPI


def _not_loaded(error: Exception) -> str:
    return (
        "mpi4py cannot load an MPI library: load the site's MPI module or set MPI4PY_LIBMPI; on a "
        f"machine without MPI, {installing('mpich')} ({' '.join(str(error).split())})"
    )


def check_launcher() -> None:
    """Raise `UsageError` if the launcher is another library's: Open MPI's mpirun of an MPICH
    without PMIx, or Hydra of an Open MPI."""
    from mpi4py import MPI

    if MPI.Is_initialized():
        return
    vendor, built = MPI.get_vendor()[0], MPI.Get_library_version().lower()
    if "OMPI_COMM_WORLD_RANK" in os.environ and vendor == "MPICH" and "pmix" not in built:
        started = "Open MPI's mpirun"
    elif launcher.by_hydra() and vendor == "Open MPI":
        started = "the mpiexec of MPICH or Intel MPI"
    else:
        return
    why = f"{started} started this rank, and mpi4py's library is {name()}"
    raise UsageError(f"{why}: use the mpiexec that belongs to it")


def step_aside() -> bool:
    """Set `THROTTLE` for MPICH on a node of more ranks than cores; return whether that was done.

    MPI is loaded, and reads the variables when it starts. What the environment has stays.
    """
    from mpi4py import MPI

    crowded = (launcher.local_ranks() or 0) > (os.cpu_count() or 1)
    able = MPI.get_vendor()[0] == "MPICH" and not MPI.Is_initialized()
    if done := crowded and able and THROTTLE.keys().isdisjoint(os.environ):
        os.environ.update(THROTTLE)
    return done


def initialize(thread_level: str) -> None:
    """Call MPI_Init_thread, unless another module has started MPI already."""
    from mpi4py import MPI

    if not MPI.Is_initialized():
        MPI.Init_thread(getattr(MPI, f"THREAD_{thread_level.upper()}"))


def open_session(thread_level: str) -> tuple[MPI.Session, MPI.Intracomm]:
    """Return a session and the communicator of all ranks, which MPI_Init would have made, too.

    Raises `UnsupportedError` when the library has no sessions.
    """
    from mpi4py import MPI

    info = MPI.Info.Create()
    info.Set("thread_level", f"MPI_THREAD_{thread_level.upper()}")
    try:
        session = MPI.Session.Init(info)
    except (NotImplementedError, MPI.Exception) as error:
        text = f"this MPI library has no sessions ({error}): leave out -I"
        raise UnsupportedError(text) from error
    finally:
        info.Free()
    group = session.Create_group("mpi://WORLD")
    comm = MPI.Intracomm.Create_from_group(group, "omb-py")
    group.Free()
    return session, comm


def granted_level() -> str:
    """Return the level of thread support at which MPI was started."""
    from mpi4py import MPI

    granted = MPI.Query_thread()
    return next(
        level for level in THREAD_LEVELS if getattr(MPI, f"THREAD_{level.upper()}") == granted
    )


def name() -> str:
    """Return the library and its version, as in ``MPICH 5.0.2``; MPI need not be started."""
    from mpi4py import MPI

    name, version = MPI.get_vendor()
    return f"{name} {'.'.join(str(part) for part in version)}"


def version() -> str:
    """Return the library's description of itself, on one line; MPI need not be started."""
    from mpi4py import MPI

    return " ".join(MPI.Get_library_version().replace("\0", " ").split())
