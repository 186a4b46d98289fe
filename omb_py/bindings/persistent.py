"""Persistent requests: a call is set up once, then started and waited for every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from omb_py.bindings import BoundCall, calls_of
from omb_py.bindings.buffer import BufferBinding
from omb_py.buffers import Local
from omb_py.calls import Call, Step
from omb_py.errors import UnsupportedError
from omb_py.options import Options


class PersistentBinding(BufferBinding):
    """``request = comm.Send_init(...)`` once, then ``request.Start(); request.Wait()``."""

    name = "persistent"

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._requests: list[MPI.Prequest] = []

    def bind(self, step: Step) -> BoundCall:
        if isinstance(step, Local):
            return super().bind(step)
        if isinstance(step, Call):
            request = self._prepare(step)
            return partial(_run, request.Start, request.Wait)
        groups = [[self._prepare(call) for call in group] for group in step.groups]
        start = [request for group in groups for request in group]
        return partial(_run_window, MPI.Prequest.Startall, self.wait_all, start, groups[::-1])

    def functions(self, step: Step) -> tuple[str, ...]:
        return tuple(_setup(call) for call in calls_of(step))

    def release(self) -> None:
        for request in self._requests:
            request.Free()
        self._requests.clear()
        super().release()

    def _prepare(self, call: Call) -> MPI.Prequest:
        function = _setup(call)
        method = self.method(function.capitalize())
        try:
            request: MPI.Prequest = method(*self.arguments(call))
        except NotImplementedError:
            raise UnsupportedError(
                f"binding persistent has no {call.function}: this MPI library lacks "
                f"MPI_{function.capitalize()} of MPI 4; use --binding buffer"
            ) from None
        self._requests.append(request)
        return request


def _setup(call: Call) -> str:
    """The function that sets a call up."""
    return f"{call.function.removeprefix('i') if call.peer is not None else call.function}_init"


def _run(start: Callable[[], Any], wait: Callable[[], Any]) -> None:
    start()
    wait()


def _run_window(
    start_all: Callable[[list[MPI.Prequest]], Any],
    wait_all: Callable[[Sequence[MPI.Request]], Any],
    requests: list[MPI.Prequest],
    groups: list[list[MPI.Prequest]],
) -> None:
    start_all(requests)
    for group in groups:
        wait_all(group)


BINDING = PersistentBinding
