"""A terminal for a command."""

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
