"""Layout of a record: the file in which a rank keeps its calls of MPI while it makes them.

A rank maps its file into memory and writes there, from Python or from C, so the file is complete
even if the rank is killed, and other processes can read it meanwhile. A file has six sections:
`HEADER`, text about the run (JSON), names, cells, threads and events. Numbers have the machine's
byte order. Names are lines of UTF-8, referred to by their number; the line of number 0 is empty. A
communicator is a name, too: `PREFIX`, then its key, size and label as a list of JSON.
"""

from __future__ import annotations

import json
import os
import struct
from enum import IntEnum

from omb_py.core.dataclass import dataclass

TYPE_CHECKING = False  # typing's own would be one more module for each rank to load
if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"OMBPYREC"
VERSION = 5
SUFFIX = ".record"
BEGINS = "rank-"
PATTERN = f"{BEGINS}*{SUFFIX}"
NS_PER_SECOND = 1e9

TYPES = {"i": 4, "q": 8, "d": 8, "64s": 64, "32s": 32}
"""Bytes of the types of fields: integers of 32 and 64 bits, a double, a text, `PEERS`."""

NOBODY = -1
"""Instead of a rank: none, or not known."""

UNKNOWN_BYTES = -1
"""The value for unknown bytes, and for calls without a message."""

HEADER = (
    ("magic", "q"),
    ("version", "q"),
    ("rank", "q"),  # in MPI_COMM_WORLD
    ("ranks", "q"),
    ("pid", "q"),
    ("text_at", "q"),
    ("text_capacity", "q"),
    ("text_used", "q"),
    ("names_at", "q"),
    ("names_capacity", "q"),
    ("names_used", "q"),
    ("names_lost", "q"),  # names there was no room for: their number is 0
    ("cells_at", "q"),
    ("cells_capacity", "q"),
    ("cells_used", "q"),
    ("cells_lost", "q"),  # calls there was no cell for
    ("events_at", "q"),
    ("events_capacity", "q"),  # 0: no timeline
    ("events_written", "q"),  # in all; the ring keeps the last ones
    ("threads_at", "q"),
    ("threads_capacity", "q"),
    ("threads_used", "q"),
    ("threads_lost", "q"),  # threads there was no place for
    ("began", "q"),  # ns of this rank's monotonic clock, as all times
    ("began_epoch", "q"),  # ns since 1970
    ("ended", "q"),  # 0 while the rank runs, or was killed
    ("updated", "q"),  # when cells and what follows here were written last
    ("user_ns", "q"),  # CPU time of the process since the beginning
    ("system_ns", "q"),
    ("memory_bytes", "q"),  # largest resident set
    ("switches", "q"),  # involuntary context switches since the beginning
    ("first_at", "q"),  # clock comparisons at the beginning and at the end: see Comparison
    ("first_offset", "d"),
    ("first_error", "d"),
    ("last_at", "q"),
    ("last_offset", "d"),
    ("last_error", "d"),
    ("clock", "q"),  # equal for ranks of a host that share a clock, 0: not compared
    ("host", "64s"),
)
"""Fields of the header, in order."""

CELL = (
    ("routine", "i"),  # number of its name, as all of these
    ("communicator", "i"),
    ("peer", "i"),  # rank in MPI_COMM_WORLD of the other side or the root, else NOBODY
    ("bin", "i"),  # see `size_bin`
    ("site", "i"),  # file and line of the call, where asked for
    ("unused", "i"),
    ("calls", "q"),
    ("nbytes", "q"),  # of all calls together
    ("ns", "q"),
    ("least_ns", "q"),
    ("greatest_ns", "q"),
)
"""A cell: all calls of a routine that are alike."""

EVENT = (
    ("kind", "i"),  # see `EventKind`
    ("name", "i"),
    ("communicator", "i"),
    ("peer", "i"),  # as in a cell
    ("tag", "i"),
    ("order", "i"),  # of a receive: see `ORDER`
    ("began", "q"),
    ("ended", "q"),
    ("nbytes", "q"),
    ("request", "q"),  # number of the request that a call started, 0: none
    ("sequence", "q"),  # see `EventKind`
)

ORDER = ("ORDER_STEP", "MIXED", "COUNTED")
ORDER_STEP, MIXED, COUNTED = 4, 1, 2
"""Of a receive its place, from 1, among those of its rank in the order of their beginnings, times
``ORDER_STEP``, plus flags. ``MIXED``: receives of any source or tag overlapped with it, so that its
``sequence`` may be that of another one. ``COUNTED``: its bytes are those that came, else they are
those that would have fitted."""

THREAD = (
    ("number", "q"),  # the system's; minus that if it has ended and left its place to another one
    ("threads", "q"),  # that had this place, one after the other
    ("calls", "q"),  # of all these, as ns
    ("ns", "q"),
    ("now_name", "q"),  # the routine that it is in, 0: none
    ("now_operation", "q"),  # what began the requests that it waits for, 0: none, or different ones
    ("now_communicator", "q"),
    ("now_began", "q"),  # outside MPI: the end of the last call
    ("now_collectives", "q"),  # collective calls begun on that communicator, up to this one
    ("now_peers", "q"),  # how many of the following; of several, one or more are awaited
    ("now_peer", "32s"),  # as in a cell, or `ANYONE`; `NOBODY` next to others: and unknown ones
)
"""A place for a thread that calls MPI; only that thread writes there."""

PEERS = 8
HEADER_BYTES = 1024
TEXT_BYTES = 16384
NAMES_BYTES = 262144
CELLS = 8192
THREADS = 64


class EventKind(IntEnum):
    """The kind of an event.

    CALL: a call of MPI. DONE: an operation that a non-blocking call began (its name, its peer) is
    complete; it lasted from the call's beginning to ``ended``, and ``request`` is that of the call.
    ARRIVED: the receiving half of a call that sends, too (its peer is the source). PHASE: one
    that the program named.

    ``sequence`` counts from 1. Of a message (send, receive) it is the number among those with the
    same communicator, peer, tag and direction, equal on both sides; one that names no source or tag
    gets it in DONE. Of a collective call it is the number among those on its
    communicator, equal on all its ranks. 0: unknown, or neither.
    """

    CALL = 1
    DONE = 2
    ARRIVED = 3
    PHASE = 4


def fixed(fields: tuple[tuple[str, str], ...]) -> struct.Struct:
    """Return the packing of fields."""
    return struct.Struct("=" + "".join(kind for _, kind in fields))


def offsets(fields: tuple[tuple[str, str], ...]) -> dict[str, int]:
    """Return the offset of each field, in bytes."""
    found, at = {}, 0
    for name, kind in fields:
        found[name] = at
        at += TYPES[kind]
    return found


HEADER_FORMAT, CELL_FORMAT, EVENT_FORMAT, THREAD_FORMAT = map(fixed, (HEADER, CELL, EVENT, THREAD))
HEADER_OFFSETS = offsets(HEADER)


BIN_1_BYTES = 4
"""The largest size in bin 1."""


def size_bin(nbytes: int) -> int:
    """Return the bin of a message size: 0 for 0 bytes, 1 to 4 bytes, then powers of two; -1: no
    message.

    These are mpitrace's bins: bin b > 1 holds sizes up to 2 ** (b + 1) above those of bin b - 1.
    """
    if nbytes <= 0:
        return 0 if nbytes == 0 else -1
    return 1 if nbytes <= BIN_1_BYTES else (nbytes - 1).bit_length() - 1


def largest_in(bin: int) -> int:
    """Return the largest message size in a bin of `size_bin`."""
    return 2 << bin if bin else 0


@dataclass(frozen=True)
class Communicator:
    """A communicator, known by the same ``key`` on all its ranks; ``label`` is for people."""

    key: str
    size: int
    label: str


PREFIX = "communicator "


def communicator_of(line: str) -> Communicator | None:
    """Return the communicator that a name stands for, None for other names and damaged ones."""
    if not line.startswith(PREFIX):
        return None
    try:
        key, size, label = json.loads(line.removeprefix(PREFIX))
        return Communicator(str(key), int(size), str(label))
    except (ValueError, TypeError):
        return None


def path_in(folder: str, rank: int) -> str:
    """Return the file of a rank in the folder of a run."""
    return f"{folder}/{BEGINS}{rank:06d}{SUFFIX}"


def record_paths(folder: str | Path) -> list[Path]:
    """Return the records in the folder of a run, by rank."""
    from pathlib import Path

    return [Path(folder, name) for name in record_names(folder)]


def record_names(folder: str | Path) -> list[str]:
    """Return the names of the records in the folder of a run, by rank; none if there is no
    folder."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(name for name in names if name.startswith(BEGINS) and name.endswith(SUFFIX))


WORLD = "world"
"""The key of MPI_COMM_WORLD; that of MPI_COMM_SELF is ``self-RANK``.

Keys are equal on all members and found without communication. All other communicators have
``"<hash>#<instance>"``. The hash is FNV-1a with 64 bits, as 16 hexadecimal digits, over the ranks
in MPI_COMM_WORLD of its processes in decimal, in the order of its group, separated by commas
(``0,1,2``). Those of an intercommunicator are both groups, the one with the lower first rank first,
`BETWEEN` between them.

The instance is the ordinal, from 1, of this one among the communicators with exactly these
processes that this rank has made, in the order of the calls that made them (that of
MPI_Comm_idup, not its completion). MPI_COMM_WORLD and MPI_COMM_SELF do not count, and a
communicator that was freed still does. MPI makes all members call in the same order, so that
they find the same number.
"""

BETWEEN = -1
"""Stands between the two groups of an intercommunicator."""

ELSEWHERE = -2
"""Stands for a process that does not belong to this rank's MPI_COMM_WORLD."""

ANYONE = -3
"""Stands for any rank of a communicator, as source."""

FNV_START, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
"""Constants of FNV-1a with 64 bits (G. Fowler, L. C. Noll, K.-P. Vo)."""
