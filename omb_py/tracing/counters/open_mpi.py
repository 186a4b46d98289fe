"""What Open MPI sent from this rank, by its own count (component monitoring of framework pml).

MPI_T has the counts, for each rank of MPI_COMM_WORLD. With ``pml_monitoring_enable`` 1 they hold
all messages, with 2 only those of the program's own sends. So all are counted here together, and
what the program itself sent is known from its record. Two faults are kept away from (seen in
5.0.11):

- With 2, messages of collectives are in a file (``pml_monitoring_flush``). To write it twice reads
  memory that was given back when a communicator was freed.
- On several hosts component han of framework coll makes communicators of its own. Where they are
  monitored, MPI_Finalize ends in a segmentation fault. Nothing is counted there unless han is off.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING

from omb_py.core.errors import OmbError
from omb_py.core.mpi.tool_interface import ToolInterface
from omb_py.tracing.counters.messages import GET, MESSAGES, PUT, Counts

if TYPE_CHECKING:
    from mpi4py import MPI

ENABLE, ALL = "OMPI_MCA_pml_monitoring_enable", "1"
CHOICE, COMPONENT = "OMPI_MCA_pml", "monitoring"
COLLECTIVES = "OMPI_MCA_coll"
SIZE, LOCAL_SIZE = "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"
NODES = "SLURM_STEP_NUM_NODES"

VARIABLES = {
    MESSAGES: "pml_monitoring_messages",
    PUT: "osc_monitoring_messages_sent",
    GET: "osc_monitoring_messages_recv",
}
"""Beginnings of the names of MPI_T's variables, which end in ``_count`` and ``_size``."""


def before_mpi(environ: MutableMapping[str, str]) -> None:
    """Have messages counted where it does no harm; without effect on other libraries."""
    if several_hosts(environ) and han_is_on(environ):
        return
    environ.setdefault(ENABLE, ALL)
    chosen = environ.get(CHOICE, "")
    if chosen and not chosen.startswith("^") and COMPONENT not in chosen.split(","):
        environ[CHOICE] = f"{chosen},{COMPONENT}"


def several_hosts(environ: Mapping[str, str]) -> bool:
    """Whether the ranks of this job are, or may be, on several hosts: what launchers say of it."""
    if LOCAL_SIZE in environ and SIZE in environ:
        return environ[LOCAL_SIZE] != environ[SIZE]
    if NODES in environ:
        return environ[NODES] != "1"
    return any(name.startswith(("PMIX_", "PMI_")) for name in environ)


def han_is_on(environ: Mapping[str, str]) -> bool:
    """Whether component han may take part in collectives."""
    if environ.get(f"{COLLECTIVES}_han_priority", "1").strip() in ("0", "-1"):
        return False
    chosen = environ.get(COLLECTIVES, "")
    named = "han" in chosen.removeprefix("^").split(",")
    return not named if chosen.startswith("^") else named or not chosen


class OpenMPICounts:
    """Counts messages from this rank; others of a job may do so or not."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        """Begin to count; ``comm`` is MPI_COMM_WORLD itself.

        Raises `OmbError` where Open MPI does not count everything.
        """
        if os.environ.get(ENABLE) is None and several_hosts(os.environ):
            raise OmbError(
                "not counted on several hosts, where Open MPI's component han would then end in a "
                f"segmentation fault: set {COLLECTIVES}=^han, with which other algorithms run"
            )
        if os.environ.get(ENABLE) != ALL:
            raise OmbError(
                f"Open MPI does not count all messages: leave {ENABLE} to omb-py, or set it to "
                f"{ALL} before MPI is started"
            )
        tools = ToolInterface()
        try:
            self._counters = {
                kind: [tools.counter(f"{name}_{what}", comm) for what in ("count", "size")]
                for kind, name in VARIABLES.items()
            }
        except OmbError as error:
            raise OmbError(
                f"Open MPI does not count messages ({error}): does {CHOICE} leave out {COMPONENT}?"
            ) from error
        self._last = self._read()

    def take(self) -> Counts:
        """What was sent since the last time, or since the beginning.

        Raises `OmbError` where Open MPI does not say.
        """
        now, last = self._read(), self._last
        self._last = now
        found: Counts = {}
        for kind, (messages, nbytes) in now.items():
            if messages == last[kind][0]:
                continue
            found[kind] = {
                peer: (number - last[kind][0][peer], nbytes[peer] - last[kind][1][peer])
                for peer, number in enumerate(messages)
                if number != last[kind][0][peer]
            }
        return found

    def _read(self) -> dict[str, list[list[int]]]:
        return {kind: [one.read() for one in both] for kind, both in self._counters.items()}
