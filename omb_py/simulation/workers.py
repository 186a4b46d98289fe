"""Simulations in processes of their own: SimGrid has one network a process, and may end it."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from signal import SIGKILL
from typing import IO, Any, TypeAlias

from omb_py.core.errors import MissingPackageError, OmbError, SharedError, sentence
from omb_py.simulation.engine import Engine, Run
from omb_py.simulation.network import Network
from omb_py.simulation.topologies import ANY

Task: TypeAlias = Callable[[Run], Any]
"""A simulation: a function that can be pickled, whose argument runs a program."""

BASE_BYTES = 60_000_000
BYTES_PER_RANK = 95_000
BYTES_PER_HOST = 8_000
"""Memory of a process: before it simulates, for each rank, and for each node that exists."""


@dataclass(frozen=True)
class SimulationJob:
    """Tasks for one process, on a network and with the node of each rank.

    ``number`` is the job's, for whoever gets its results.
    """

    number: int
    network: Network
    nodes: tuple[int, ...]
    tasks: tuple[Task, ...]

    @property
    def memory(self) -> int:
        """About how many bytes its process takes."""
        hosts = len(set(self.nodes)) if self.network.nodes == ANY else self.network.nodes
        return BASE_BYTES + BYTES_PER_RANK * len(self.nodes) + BYTES_PER_HOST * hosts


def check_installed() -> None:
    """Raise `MissingPackageError` without SimGrid."""
    if find_spec("simgrid") is None:
        raise MissingPackageError(
            "simulate",
            "simgrid",
            "apt install python3-simgrid (Debian 12, for the Python of the system: a virtual "
            "environment by /usr/bin/python3 -m venv --system-site-packages)",
        )


def run_jobs(
    jobs: Sequence[SimulationJob],
    processes: int,
    done: Callable[[int, int, Any], None],
    progress: Callable[[int, int, int], None] = lambda job, task, messages: None,
) -> None:
    """Run jobs, at most ``processes`` at a time.

    ``done`` gets the number of a job, the place of one of its tasks and the task's result;
    ``progress`` the same and the messages so far. Raises `OmbError` if a task fails, after ending
    the other processes.
    """
    receiver: Any
    context = get_context("spawn")
    left = deque(jobs)
    running: dict[Any, tuple[Any, SimulationJob, Any, list[bool]]] = {}
    try:
        while left or running:
            while left and len(running) < processes:
                job = left.popleft()
                receiver, sender = context.Pipe(duplex=False)
                errors = tempfile.NamedTemporaryFile()  # noqa: SIM115 - as long as the process
                process = context.Process(target=work, args=(job, sender, errors.name), daemon=True)
                process.start()
                sender.close()
                running[receiver] = (process, job, errors, [])
            for receiver in wait(list(running)):
                process, job, errors, over = running[receiver]
                try:
                    kind, place, value = receiver.recv()
                except EOFError:
                    del running[receiver]
                    process.join()
                    if not over:
                        raise OmbError(crash(process.exitcode, errors)) from None
                    continue
                if kind == "error":
                    raise SharedError(*value)
                if kind == "over":
                    over.append(True)
                elif kind == "done":
                    done(job.number, place, value)
                else:
                    progress(job.number, place, value)
    finally:
        for process, *_ in running.values():
            process.terminate()
        for process, *_ in running.values():
            process.join()


def work(job: SimulationJob, sender: Connection, errors: str) -> None:
    """Simulate a job in this process, and send its results."""
    file = os.open(errors, os.O_WRONLY)
    os.dup2(file, 2)  # SimGrid's messages, its last one among them
    try:
        place = 0

        def script(run: Run) -> None:
            nonlocal place
            for place, task in enumerate(job.tasks):
                sender.send(("done", place, task(run)))

        engine = Engine(job.network, job.nodes)
        engine.run(script, lambda messages: sender.send(("progress", place, messages)))
        sender.send(("over", 0, None))
    except Exception as error:
        code = error.exit_code if isinstance(error, OmbError) else OmbError.exit_code
        sender.send(("error", 0, (sentence(error), code)))
    sender.close()
    os._exit(0)  # SimGrid's own end takes as long as its network is large


def crash(code: int | None, errors: IO[bytes]) -> str:
    """Return a sentence on a process that has ended."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").splitlines()
    said = [line for line in lines if "CRITICAL" in line or "rror" in line]
    why = f": {said[0]}" if said else ""
    if code is not None and code < 0:
        memory = "; is there enough memory?" if -code == SIGKILL else ""
        return f"the simulation was ended by signal {-code}{why}{memory}"
    return f"the simulation ended with exit code {code}{why}"
