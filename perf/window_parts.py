"""Where the time of a message in a window goes, in Python alone: calls that reach no network.

Usage: python -m perf.window_parts   (one rank; messages go to MPI_PROC_NULL)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import repeat
from time import perf_counter

import mpi4py

mpi4py.rc.thread_level = "single"

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from omb_py.core.calls.loop import no_garbage_collection  # noqa: E402

WINDOW, CALLS, ROUNDS = 64, 2_000, 15
comm = MPI.COMM_WORLD
array = np.zeros(8, np.uint8)
specification = [array, 8, MPI.BYTE]
nowhere = MPI.PROC_NULL


def nanoseconds(window: Callable[[], object]) -> float:
    """The median time of one message of ``window``, which handles `WINDOW` of them."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in repeat(None, CALLS):
            window()
        times.append((perf_counter() - start) / CALLS / WINDOW * 1e9)
    return sorted(times)[ROUNDS // 2]


def obvious() -> None:
    requests = []
    for _ in range(WINDOW):
        requests.append(comm.Isend(array, dest=nowhere, tag=7))
    MPI.Request.Waitall(requests)


def comprehension() -> None:
    MPI.Request.Waitall([isend() for _ in repeat(None, WINDOW)])


def mapped() -> None:
    arguments = (repeat(item, WINDOW) for item in (specification, nowhere, 7))
    MPI.Request.Waitall(list(map(comm.Isend, *arguments)))


isend = partial(comm.Isend, specification, nowhere, 7)
idle = [MPI.REQUEST_NULL] * WINDOW
persistent = [comm.Send_init(specification, nowhere, 7) for _ in range(WINDOW)]
PARTS: dict[str, Callable[[], object]] = {
    "a request object, made and dropped": lambda: [MPI.Request() for _ in repeat(None, WINDOW)],
    "Send": lambda: list(map(comm.Send, *map(repeat, [specification, nowhere, 7], [WINDOW] * 3))),
    "Waitall": lambda: MPI.Request.Waitall(idle),
    "the obvious window": obvious,
    "partials in a comprehension": comprehension,
    "a map, as binding buffer": mapped,
    "Startall and Waitall": lambda: (
        MPI.Prequest.Startall(persistent),
        MPI.Request.Waitall(persistent),
    ),
}

with no_garbage_collection():
    for name, window in PARTS.items():
        print(f"{name:<36}{nanoseconds(window):8.1f} ns a message")
for request in persistent:
    request.Free()
