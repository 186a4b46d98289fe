"""Files: read where a user names them, written so that they are whole at any time; folders."""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from omb_py.core.errors import OmbError, UsageError

LARGEST = 1 << 30
"""Bytes beyond which a file is refused: no results, profile or configuration is as long as that."""

INHERITED = re.compile(r"/dev/stdin|(/dev|/proc/self)/fd/\d+")
"""Names of what is open already, such as standard input and ``<(COMMAND)`` of a shell."""


@contextlib.contextmanager
def failing(
    verb: str, path: str | Path, error: type[OmbError] = OmbError, advice: str = ""
) -> Iterator[None]:
    """Turn an `OSError` into an ``error`` that names the action that failed (``read``) and why."""
    try:
        yield
    except OSError as fault:
        raise error(f"cannot {verb} {path}: {fault.strerror or fault}{advice}") from fault


def read(path: str | Path, error: type[OmbError] = OmbError) -> bytes:
    """Return a file's content, of `LARGEST` bytes at most.

    Raises ``error`` when it cannot be read or is too large, and as `check` does.
    """
    check(path, error)
    with failing("read", path, error), open(path, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise error(f"{path} is larger than {LARGEST >> 20} MiB, the most that is read")
    return content


def read_text(path: str | Path, error: type[OmbError] = OmbError) -> str:
    """Return a file's text, UTF-8 or UTF-16 with its mark; raise as `read`, and for other bytes."""
    content = read(path, error)
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if wide else "utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as fault:
        raise error(f"cannot read {path}: it is not UTF-8 text") from fault


def parsed(
    text: str, parse: Callable[[str], Any], path: str | Path, kind: str, error: type[OmbError]
) -> Any:
    """Return a text as ``parse`` reads it; raise an ``error`` for one that is not of its ``kind``,
    or too deep."""
    try:
        return parse(text)
    except ValueError as fault:
        raise error(f"{path} is not {kind}: {fault}") from fault
    except RecursionError as fault:
        raise error(f"{path} is not {kind} that can be read: it is nested too deeply") from fault


def check(path: str | Path, error: type[OmbError] = OmbError, largest: float = LARGEST) -> None:
    """Raise ``error`` if a path is of no file that can be read to its end.

    A named pipe without a writer would be waited for; a device such as ``/dev/zero`` has no
    end. Pipes that this process inherited can be read.
    """
    with failing("read", path, error):
        status = os.stat(path)
    if stat.S_ISREG(status.st_mode):
        if status.st_size > largest:
            raise error(f"{path} is larger than {LARGEST >> 20} MiB, the most that is read")
        return
    if stat.S_ISDIR(status.st_mode):
        raise error(f"cannot read {path}: it is a folder, name a file in it")
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        if INHERITED.fullmatch(str(path)):
            return
        raise error(f"cannot read {path}: it is a pipe; read from it with < {path} and /dev/stdin")
    raise error(f"cannot read {path}: it is a device; name a regular file or /dev/stdin")


def refuse_existing(paths: Iterable[str | Path], force: bool) -> None:
    """Raise `UsageError` for the first of ``paths`` that is a file already, unless ``force``."""
    if taken := None if force else next(filter(os.path.isfile, paths), None):
        raise UsageError(f"{taken} exists: name another file, or overwrite it with --force")


def refuse_same(named: Mapping[str, str | None]) -> None:
    """Raise `UsageError` if two options name one file; None is no file, a device is for all."""
    known: dict[str, str] = {}
    for option, path in named.items():
        if path is None or is_special(Path(path)):
            continue
        other = known.setdefault(os.path.realpath(path), option)
        if other != option:
            raise UsageError(f"{other} and {option} both name {path}: choose another file for one")


def write(path: str | Path, content: str | bytes, advice: str = "") -> None:
    """Put text (as UTF-8) or bytes into a file, whole or not at all; its folders are made.

    After a full disk or a kill the file holds the old content or the new one. Raises `OmbError`,
    with the path, the reason and ``advice``, when it cannot be written.
    """
    path = Path(path)
    data = content.encode(errors="replace") if isinstance(content, str) else content
    with failing("write", path, advice=advice):
        make_folder(path.parent)
        with replacing(path) as file:
            file.write(data)


def check_writable(path: str | Path | None, advice: str = "") -> None:
    """Raise `OmbError`, as `write` does, if it could not make this file; its folder is made."""
    if path is None or is_special(Path(path)):
        return
    path = Path(path)
    with failing("write", path, advice=advice):
        make_folder(path.parent)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file that takes the place of ``path`` once it is written without an error.

    Its permissions are those of the file before, or the usual ones. What is no regular file, such
    as ``/dev/stdout``, cannot be replaced and is written to as it is. Raises `OSError`.
    """
    if is_special(path):
        with open(path, "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))  # a link stays one
    beside = target.with_name(f".{target.name[:40]}-{os.getpid()}-{os.urandom(3).hex()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            with open(descriptor, "wb", closefd=False) as file:
                yield file
            if target.exists():
                os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    synchronize(target.parent)


def is_special(path: Path) -> bool:
    """Return whether a path is of a device, a pipe, or another process's open file."""
    folder = os.path.realpath(path.parent)
    if folder == "/dev" or folder.startswith("/proc/"):
        return True
    return not is_file_or_free(path)


def is_file_or_free(path: Path) -> bool:
    """Return whether a name is of a file or a folder, or of nothing yet."""
    # one look: between two of them another job can make the file, which is then no device
    try:
        mode = path.stat().st_mode
    except OSError:  # opening it says why
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def synchronize(folder: Path) -> None:
    """Bring a folder's names to the disk, if its file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: str | os.PathLike[str]) -> None:
    """Make a folder, and those that it lies in, unless it exists: each output's is made so.

    Raises `OSError` if it cannot be made.
    """
    try:
        os.makedirs(folder or os.curdir, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
