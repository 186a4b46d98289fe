"""mpi4py.util.pkl5: pickled objects whose large data travels next to the pickle, not in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpi4py import MPI
from mpi4py.util import pkl5

from omb_py.bindings.pickle import PickleBinding
from omb_py.core.calls import Call, Message
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.options import Options

OUT_OF_BAND_PROTOCOL = 5
REDUCTIONS = ("reduce", "allreduce", "scan", "exscan")


class Pkl5Binding(PickleBinding):
    """Calls such as ``pkl5.Intracomm(comm).send(array, peer, tag)``."""

    name = "pkl5"
    serves_threads = False
    serializer = pkl5.pickle
    in_band = False

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        if (options.pickle_protocol or OUT_OF_BAND_PROTOCOL) < OUT_OF_BAND_PROTOCOL:
            raise UsageError(
                f"--pickle-protocol {options.pickle_protocol}: binding pkl5 needs protocol "
                f"{OUT_OF_BAND_PROTOCOL} or later, which keeps data apart"
            )
        super().__init__(comm, options)
        self.comm = pkl5.Intracomm(comm)

    def wait_all(self, requests: Sequence[Any]) -> list[Any]:
        return pkl5.Request.waitall(requests) or []

    def _check(self, call: Call) -> tuple[Message, ...]:
        if call.function == "irecv":
            raise UnsupportedError(
                "binding pkl5 cannot post receives: mpi4py.util.pkl5 has no irecv; use --binding "
                "pickle"
            )
        if call.function in REDUCTIONS:
            raise UnsupportedError(
                f"binding pkl5 has no {call.function}: mpi4py reduces objects by pickling them "
                "whole; use --binding pickle"
            )
        return super()._check(call)


BINDING = Pkl5Binding
