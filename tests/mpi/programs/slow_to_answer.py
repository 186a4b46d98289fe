"""omb-py, whose rank 1 shows only once ``go`` is there that it belongs to the job.

Sockets wait for it before they prove who they are, other bindings before their first message.
"""

import os
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from omb_py.bindings import Binding
from omb_py.bindings.transports import sockets
from omb_py.cli import main
from omb_py.core.mpi import launcher

LIMIT = 300.0
"""Seconds after which the test that would say go has ended."""


def late(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wait_and_call(*arguments: Any) -> Any:
        deadline = time.monotonic() + LIMIT
        while not Path("go").exists():
            if time.monotonic() > deadline:
                raise TimeoutError("nobody said go")
            time.sleep(0.01)
        return function(*arguments)

    return wait_and_call


def told(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def tell_and_call(*arguments: Any) -> Any:
        Path(f"{launcher.rank()}.running").touch()
        return function(*arguments)

    return tell_and_call


Binding.set_up = told(Binding.set_up)  # type: ignore[method-assign]
if launcher.rank() == 1:
    sockets._greeting = late(sockets._greeting)
    Binding.set_up = late(Binding.set_up)  # type: ignore[method-assign]
Path(f"{launcher.rank()}.part").write_text(str(os.getpid()))
Path(f"{launcher.rank()}.part").rename(f"{launcher.rank()}.pid")
main()
