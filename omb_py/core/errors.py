"""Errors of omb-py, each with one sentence that a user can act on."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from omb_py.core import DISTRIBUTION

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing to standard output if it is a file on a disk that is full."""


class OmbError(Exception):
    """A failure whose text is one clear sentence that names the fix.

    ``exit_code`` is the process's exit code. Only a `SharedError` is known to be that of all ranks:
    rank 0 reports it and all ranks leave in order. The rank that raises another error in a job
    reports it and ends the job (`omb_py.core.job.Job`).
    """

    exit_code = 1


class UsageError(OmbError):
    """The command line asks for something that does not exist or cannot be.

    Most often all ranks raise it, but not always: files, variables of the environment, memory and
    packages differ between hosts.
    """

    exit_code = 2


class UnsupportedError(OmbError):
    """An error: this benchmark, buffer and binding do not go together; the text says why."""

    exit_code = 5


class NoLibraryError(OmbError):
    """An error: mpi4py can load no MPI library, so nothing can be measured on this host."""

    exit_code = 6


class MissingError(UnsupportedError):
    """A package, device or library is not here; it may be there another time or elsewhere."""

    exit_code = 8


class MissingPackageError(MissingError):
    """An error: a Python package is not installed; the text has the command that installs it."""

    def __init__(self, what: str, package: str | None, install: str) -> None:
        self.package = package
        super().__init__(
            f"{what} needs the Python package {package}, which is not installed: {install}"
        )


class LeftOutError(OmbError):
    """This message size cannot be measured; others may do."""

    exit_code = 3


class OutOfMemoryError(LeftOutError):
    """A buffer could not be allocated; other sizes may do."""


class OwnError(OmbError):
    """A failure of this rank alone; the other ranks do not know it."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class SharedError(OmbError):
    """A failure of any rank, made known to all of them (`Job.agree`)."""

    def __init__(self, text: str, exit_code: int = 1) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class BenchmarkError(SharedError):
    """An error: a benchmark contradicts itself; the text names what its author has to correct."""


class ValidationError(SharedError):
    """Data that arrived is not the data that was sent."""


def source_tree() -> str | None:
    """Return the folder of the source tree that omb-py is imported from; None if from a wheel."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return root if os.path.exists(os.path.join(root, "pyproject.toml")) else None


def installing(extra: str) -> str:
    """Return the command that adds an extra to this omb-py: to the checkout, or to the wheel.

    By its name pip keeps an omb-py that is installed, and adds what the extra requires.
    """
    if (root := source_tree()) is None:
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    try:
        folder = "." if os.path.samefile(root, ".") else root
    except OSError:  # the working directory was removed
        folder = root
    return f"pip install -e '{folder}[{extra}]'"


def installing_cuda(extra: str = "cu{cuda}") -> str:
    """Return the commands that add an extra of each version of CUDA, ``{cuda}`` in its name."""
    newer, older = (extra.format(cuda=version) for version in (13, 12))
    return f"{installing(newer)}, or '[{older}]' for drivers before CUDA 13"


def sentence(error: BaseException) -> str:
    """Return any error on one line; one that is not ours with its type and how to see more."""
    text = " ".join(str(error).split())
    if isinstance(error, OmbError):
        return text
    if isinstance(error, MemoryError):
        return "not enough memory: choose smaller messages, a smaller problem or fewer iterations"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError) and error.filename is None and error.errno in FULL:
        return f"cannot write the output: {error.strerror}"  # files of a name say theirs
    return f"{type(error).__name__}: {text}; run with --debug for the traceback"


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Turn a missing package, imported in the block for some commands only, into one sentence."""
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).startswith("omb_py"):
            raise
        raise MissingPackageError("this command", error.name, installing(extra)) from error
