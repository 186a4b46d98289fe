"""The intercepting library: cached by the fingerprint of its dependencies, compiled if missing.

Every rank of a profiled program loads this module; the compiling module is loaded only if needed.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from contextlib import suppress
from os.path import abspath, dirname, exists, join, realpath

from omb_py.core import BEGAN
from omb_py.core.errors import UsageError
from omb_py.core.mpi import abi, launcher
from omb_py.core.waiting import poll

HERE = dirname(__file__)
GENERATORS = ("compilation.py", "wrapped_routines.py", "wrappers.py")
SHARED = ("layout", "routines")
COMPILER_VARIABLES = ("CC", "OMPI_CC", "MPICH_CC", "I_MPI_CC")
SECONDS_TO_BEGIN = 60.0
"""Seconds after which rank 0 compiles, if this rank sees its folder."""
SECONDS_BETWEEN_LOOKS = 0.05
SECONDS_BETWEEN_RANKS = 1.0
"""Seconds by which other ranks may begin later than rank 0."""


def cached_library() -> str:
    """Return the library's path, compiled by rank 0 where it is not there yet; others wait for it.

    Nothing is asked of MPI, which has not been started. Raises `UsageError` if there is no
    compiler, where it fails, and on ranks that wait in vain.
    """
    mpicc = compiler()
    path = join(cache_directory(), f"recorder-{fingerprint(mpicc)}.so")
    if _is_ours(path):
        return path
    if launcher.rank() == 0:
        return _compile_for_all(mpicc, path)
    began = time.monotonic()

    def is_over() -> bool:
        if _is_ours(path):
            return True
        _pass_on(_failure(path))
        waited = time.monotonic() - began
        return waited > SECONDS_TO_BEGIN and not _under_way(path, waited)

    poll(is_over, SECONDS_BETWEEN_LOOKS)
    if _is_ours(path):
        return path
    if launcher.local_rank() == 0:  # of a node that does not see rank 0's folder
        return _compiled(mpicc, path)
    raise UsageError(
        f"rank 0 has not compiled {path} within {time.monotonic() - began:.0f} s: set "
        "OMB_PY_CACHE_DIR to a folder that all nodes see"
    )


def compiler() -> str:
    """Return the MPI compiler: mpi4py's own, the one next to this Python, or the first on the path.

    For the standard's ABI it is ``mpicc_abi``. Raises `UsageError` if there is none.
    """
    import mpi4py

    name = "mpicc_abi" if abi.is_standard() else "mpicc"
    folders = [dirname(sys.executable), *os.environ.get("PATH", "").split(os.pathsep)]
    for found in (mpi4py.get_config().get("mpicc"), *(join(folder, name) for folder in folders)):
        if found and os.access(found, os.X_OK):
            return str(found)
    raise UsageError(
        f"profile compiles a library once, by the MPI library's compiler {name}, which is neither "
        f"beside {sys.executable} nor on PATH: load it, with a C compiler"
    )


def fingerprint(mpicc: str) -> str:
    """Return a hash of the library's dependencies: our sources, compiler, MPI library, machine."""
    digest = hashlib.sha256(os.uname().machine.encode())
    parts = sorted(name for name in os.listdir(HERE) if name.endswith(".c"))
    for name in (*parts, *GENERATORS, *(f"../records/{name}.py" for name in SHARED)):
        with open(join(HERE, name), "rb") as file:
            digest.update(file.read())
    for variable in COMPILER_VARIABLES:
        digest.update(f"{variable}={os.environ.get(variable, '')}\0".encode())
    real = realpath(mpicc)
    root = dirname(dirname(real))
    headers = (join(root, "include", name) for name in ("mpi.h", "mpi_abi.h"))
    for path in (mpicc, real, *headers, *_libraries(root)):
        digest.update(_state(path).encode())
    return digest.hexdigest()[:16]


def _libraries(root: str) -> list[str]:
    """Return the files of MPI's libraries below a folder."""
    found = []
    for name in os.listdir(root) if exists(root) else ():
        if name.startswith("lib") and os.path.isdir(folder := join(root, name)):
            names = (one for one in os.listdir(folder) if one.startswith("libmpi") and ".so" in one)
            found += [join(folder, one) for one in names]
    return sorted(found)


def _state(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return f"{path}\0"
    return f"{path} {status.st_size} {status.st_mtime_ns}\0"


def _compiled(mpicc: str, path: str) -> str:
    from omb_py.tracing.recorder.compilation import compile_library

    return compile_library(mpicc, path)


def _compile_for_all(mpicc: str, path: str) -> str:
    """Compile the library, and where that fails let ranks that wait for it know why."""
    failure = _failure(path)
    with suppress(OSError):
        os.unlink(failure)
    try:
        return _compiled(mpicc, path)
    except UsageError as error:
        with suppress(OSError), open(failure, "w", encoding="utf-8") as file:
            file.write(str(error))
        raise


def _under_way(path: str, waited: float) -> bool:
    """Return whether a library is being compiled beside a path, and may still be."""
    from glob import escape, glob

    from omb_py.tracing.recorder.compilation import SECONDS_OF_A_STEP, STEPS, UNFINISHED

    most = SECONDS_TO_BEGIN + STEPS * SECONDS_OF_A_STEP
    return waited < most and bool(glob(join(escape(dirname(path)), f"{UNFINISHED}*")))


def _failure(path: str) -> str:
    return f"{path.removesuffix('.so')}.failed"


def _pass_on(failure: str) -> None:
    """Raise `UsageError` if rank 0 of this job, which began when we did, has failed.

    Both times are those of the file's server, whose clock may differ from this host's.
    """
    with suppress(OSError), open(failure, encoding="utf-8") as file:
        from tempfile import TemporaryFile

        with TemporaryFile(dir=dirname(failure)) as now:
            ago = os.fstat(now.fileno()).st_mtime - os.fstat(file.fileno()).st_mtime
        if ago < time.perf_counter() - BEGAN + SECONDS_BETWEEN_RANKS:
            raise UsageError(file.read())


def _is_ours(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def cache_directory() -> str:
    """Return ``OMB_PY_CACHE_DIR``, or the user's folder for caches."""
    named = os.environ.get("OMB_PY_CACHE_DIR")
    if named:
        return abspath(named)
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if caches.startswith("~"):  # no home
        import tempfile

        return os.path.join(tempfile.gettempdir(), f"omb-py-{os.getuid()}")
    return os.path.join(caches, "omb-py")
