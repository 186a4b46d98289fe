"""A terminal for a command, and what a person sees on it in the end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path

ERASE = "\r\x1b[2K"
COLUMNS = 100


def on_terminal(
    command: Sequence[str], environment: dict[str, str], folder: Path, timeout: float = 60
) -> tuple[int, str]:
    """The exit code of a command on a terminal, and all that it wrote there."""
    process, terminal = pty.fork()
    if process == 0:
        try:
            os.chdir(folder)
            os.execvpe(command[0], list(command), environment | {"TERM": "xterm"})
        finally:
            os._exit(127)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    written, end = b"", time.monotonic() + timeout
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while part := os.read(terminal, 65536):
            written += part
            assert time.monotonic() < end, written
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), written.decode()


def screen(written: str) -> list[str]:
    """The lines that stay on a terminal, after the erasures of a line that came in between."""
    return [line.split(ERASE)[-1].rstrip() for line in written.replace("\r\n", "\n").split("\n")]


def statuses(written: str) -> list[str]:
    """The lines that were erased, in the order in which they were shown."""
    lines = written.replace("\r\n", "\n").split("\n")
    return [part for line in lines for part in line.split(ERASE)[1:-1] if part]
