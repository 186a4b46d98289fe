"""Which calls a replay of a profile makes, how often, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from omb_py.core.errors import UsageError
from omb_py.tracing.profile.mpitrace import Calls, RankFile

REDUCING = ("allreduce", "reduce", "reduce_scatter")
COLLECTIVES = (
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    *REDUCING,
)
ANSWERS = {
    "send": "recv",
    "recv": "send",
    "isend": "irecv",
    "irecv": "isend",
    "sendrecv": "sendrecv",
}
"""Calls between two ranks, and what the partner makes of each."""

COMPLETED = ("isend", "irecv")
"""Calls after which there is a Waitall."""

MOST_CALLS = 10_000_000
"""Calls of one replay, whose order is kept in memory."""

Tallies = Mapping[tuple[str, float], int]
"""How many calls of a function with messages of so many bytes."""


@dataclass(frozen=True)
class Item:
    """Calls of one function with messages of one size: so many of the profile's ``recorded`` ones.

    ``elements`` are of the whole message as the profile counts it: a rank's own part of it, or
    each rank's; of ``reduce_scatter`` all parts together, of ``sendrecv`` one direction.
    """

    function: str
    dtype: str
    elements: int
    calls: int
    recorded: Calls

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.elements * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Plan:
    """The calls of a replay; ``left_out`` are calls that it does not make."""

    items: tuple[Item, ...]
    left_out: tuple[Calls, ...]

    @property
    def order(self) -> list[int]:
        """The item of each call: every item spread evenly over the whole.

        Call k of n is at (k + 1/2) / n of the way.
        """
        places = (
            ((2 * turn + 1) / (2 * item.calls), index)
            for index, item in enumerate(self.items)
            for turn in range(item.calls)
        )
        return [index for _, index in sorted(places)]

    def tallies(self, rank: int, ranks: int) -> Tallies:
        """The calls that a rank makes, those that complete others among them."""
        found: Counter[tuple[str, float]] = Counter()
        for item in self.items:
            if item.function in ANSWERS:
                if partner(rank, ranks) is None:
                    continue
                function = item.function if rank % 2 == 0 else ANSWERS[item.function]
                if function in COMPLETED:
                    found["waitall", 0] += item.calls
                found[function, item.nbytes] += item.calls
            else:
                found[item.function, item.nbytes] += item.calls
        return found


def partner(rank: int, ranks: int) -> int | None:
    """Who a rank exchanges messages with: ranks are pairs, the last of an odd number has none."""
    other = rank + 1 if rank % 2 == 0 else rank - 1
    return other if other < ranks else None


def plan_of(profile: RankFile, scale: float, leave_out: Iterable[str]) -> Plan:
    """The replay of a profile, with this part of its calls.

    Raises `UsageError` where there is nothing to replay, or more than can be kept in memory.
    """
    unwanted = {name.lower().removeprefix("mpi_") for name in leave_out}
    there = {calls.routine.lower() for calls in profile.calls}
    if strangers := sorted(unwanted - there):
        raise UsageError(f"--leave-out {strangers[0]}: the profile has no calls of it")
    kept = {*COLLECTIVES, *ANSWERS} - unwanted
    recorded: dict[tuple[str, str, int], Calls] = {}
    left_out = []
    for calls in profile.calls:
        function = calls.routine.lower()
        if function not in kept or not calls.calls:
            left_out.append(calls)
            continue
        key = (function, *message_of(function, calls.nbytes))
        recorded[key] = together(recorded.get(key), calls)
    if not recorded:
        only = ", ".join(sorted({calls.routine for calls in left_out}))
        why = f"no call of {only} can be replayed; " if only else ""
        raise UsageError(
            f"there is nothing to replay in this file: {why}give a profile with calls that move "
            "arrays"
        )
    items = tuple(
        Item(*key, max(1, round(scale * calls.calls)), calls) for key, calls in recorded.items()
    )
    if (number := sum(item.calls for item in items)) > MOST_CALLS:
        raise UsageError(f"these would be {number} calls: choose a smaller --scale")
    return Plan(items, tuple(left_out))


ITEM_BYTES = {"int8": 1, "float32": 4, "int64": 8}


def message_of(function: str, nbytes: float) -> tuple[str, int]:
    """Type and number of the elements nearest to an average size.

    8 bytes to reduce are one integer, as a framework's ranks agree on what is ready. Other
    sizes are of 4-byte floats, but for whole ones that 4 does not divide.
    """
    if function == "sendrecv":
        nbytes /= 2  # sent and received are counted together
    if function in REDUCING and (nbytes % 1 or nbytes % ITEM_BYTES["float32"] == 0):
        elements = round(nbytes / ITEM_BYTES["float32"])
        is_integer = elements * ITEM_BYTES["float32"] == ITEM_BYTES["int64"]
        return ("int64", 1) if is_integer else ("float32", elements)
    return "int8", round(nbytes)


def together(first: Calls | None, second: Calls) -> Calls:
    """Calls of two rows that are alike once sizes are whole."""
    if first is None:
        return second
    calls = first.calls + second.calls
    nbytes = (first.calls * first.nbytes + second.calls * second.nbytes) / calls
    return Calls(first.routine, calls, nbytes, first.seconds + second.seconds)


def disagreement(plan: Plan, made: Sequence[Tallies]) -> tuple[int, str]:
    """How many calls the ranks made too many or too few, and the first such rank in words."""
    wrong, words = 0, ""
    for rank, tallies in enumerate(made):
        planned = plan.tallies(rank, len(made))
        for function, nbytes in sorted({*planned, *tallies}):
            wanted = planned.get((function, nbytes), 0)
            found = tallies.get((function, nbytes), 0)
            wrong += abs(found - wanted)
            if found != wanted and not words:
                words = (
                    f"rank {rank} made {found} calls of MPI_{function.capitalize()} "
                    f"of {nbytes:g} bytes, not {wanted}"
                )
    return wrong, words
