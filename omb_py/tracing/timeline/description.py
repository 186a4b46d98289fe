"""What is said of a slice: its name, its category, and what it was about."""

from __future__ import annotations

from dataclasses import dataclass

from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.records.routines import Role, role
from omb_py.tracing.timeline.assembly import UNNAMED
from omb_py.tracing.timeline.model import NONE, LaneKind, RankTimeline

COMPUTE = "compute"

ARRIVAL = "arrival"
"""Name of the marks at which arrows end, 1 ns before the end of what received the message.

Perfetto turns an arrow around that ends in a slice which began before the send, as a receive that
waits does: from the slice that began first to the other one, wherever the arrow's ends are.
"""

CATEGORIES = {Role.SEND: "send", Role.RECEIVE: "receive", Role.SENDRECV: "send and receive"}

PEERED = (Role.SEND, Role.RECEIVE, Role.SENDRECV)

FIELDS = ("kind", "name", "communicator", "peer", "tag", "nbytes")
"""What many slices have in common."""

Value = int | float | str | bool
Arguments = dict[str, Value]


@dataclass(frozen=True)
class Description:
    """What is said of all slices that are alike."""

    name: str
    category: str
    arguments: Arguments
    collective: str = ""


class Describer:
    """Says what a rank's slices are."""

    def __init__(self, rank: RankTimeline) -> None:
        self._rank = rank
        self._known: dict[tuple[int, ...], Description] = {}
        columns = (rank.events[name].tolist() for name in FIELDS)
        self._common = list(zip(*columns, strict=True))
        self._request = rank.events["request"].tolist()
        self._sequence = rank.events["sequence"].tolist()
        self._compute: dict[int, Description] = {}

    def of(self, event: int, other: int) -> tuple[Description, Arguments]:
        """What is said of a slice with all those alike, and what of it alone."""
        if event == NONE:
            return self._computing(other), {}
        common = self._common[event]
        description = self._known.get(common)
        if description is None:
            description = self._known[common] = self._described(*common)
        own: Arguments = {}
        sequence, request = self._sequence[event], self._request[event]
        if sequence > 0:
            own["sequence"] = sequence
            if description.collective:
                own["collective"] = f"{description.collective} #{sequence}"
        if request > 0:
            own["request"] = request
        if other != NONE:
            own |= self._arrived(other)
        return description, own

    def _computing(self, phase: int) -> Description:
        found = self._compute.get(phase)
        if found is None:
            said: Arguments = {} if phase == NONE else {"phase": self._name(self._common[phase][1])}
            found = self._compute[phase] = Description(COMPUTE, COMPUTE, said)
        return found

    def _described(
        self, kind: int, name: int, communicator: int, peer: int, tag: int, nbytes: int
    ) -> Description:
        text = self._name(name)
        if kind in (EventKind.SPAN, EventKind.INSTANT):
            category = LaneKind.PHASES.value if kind == EventKind.SPAN else "instant"
            return Description(text, category, {"bytes": nbytes} if nbytes > 0 else {})
        what = role(text)
        said: Arguments = {}
        if nbytes >= 0:
            said["bytes"] = nbytes
        if peer >= 0:
            said["root" if what is Role.COLLECTIVE else "peer"] = peer
        if what in PEERED and tag >= 0:
            said["tag"] = tag
        known = self._rank.communicators.get(communicator)
        if known is not None:
            said |= {"communicator": known.label, "communicator_size": known.size}
        collective = known.key if known is not None and what is Role.COLLECTIVE else ""
        category = "request" if kind == EventKind.DONE else CATEGORIES.get(what, what.value)
        return Description(text, category, said, collective)

    def _arrived(self, event: int) -> Arguments:
        """What a call received that sent something, too."""
        _, _, _, peer, tag, nbytes = self._common[event]
        said: Arguments = {"source": peer, "received_tag": tag}
        if nbytes >= 0:
            said["received_bytes"] = nbytes
        if self._sequence[event] > 0:
            said["received_sequence"] = self._sequence[event]
        return said

    def _name(self, number: int) -> str:
        return self._rank.alignment.record.name(number) or UNNAMED
