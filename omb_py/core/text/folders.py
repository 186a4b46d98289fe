"""Folders: one is made if the folder that it is to lie in exists."""

from __future__ import annotations

import errno
import os


def make_folder(folder: str | os.PathLike[str]) -> None:
    """Make a folder unless it exists; not its parents, which a typing error would make, too.

    Raises `OSError`, with the missing parent, if it cannot be made.
    """
    path = os.fspath(folder) or os.curdir
    parent = os.path.dirname(os.path.normpath(path)) or os.curdir
    if os.path.isdir(path):
        return
    if not os.path.exists(parent):
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {parent}: make it")
    try:
        os.mkdir(path)
    except FileExistsError:  # a file, unless another process made it
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
