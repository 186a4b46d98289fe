"""One-sided communication: one rank reaches into the window of the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from omb_py.benchmarks import (
    Benchmark,
    Case,
    CheckedIteration,
    Content,
    Defaults,
    Exposed,
    Metric,
    Plan,
    Ranks,
)
from omb_py.benchmarks.pt2pt import BANDWIDTH, pairs_line, partner
from omb_py.core.calls import Call, Slot, Step
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.errors import UnsupportedError
from omb_py.core.options import ACTIVE, Options

INTEGERS = "bBhHiIlLqQ"
"""Codes of element types."""

WINDOW_CALLS = {
    "lock": "MPI_Win_lock/unlock",
    "lock_all": "MPI_Win_lock_all/unlock_all",
    "pscw": "MPI_Win_post/start/complete/wait",
    "shared": "MPI_Win_allocate_shared",
    "dynamic": "MPI_Win_create_dynamic",
}
"""Calls that native OMB names for ``-w`` and ``-s``; that of others is MPI_Win_ and the word."""


@dataclass(frozen=True)
class Access:
    """A one-sided function, by what it does to data.

    ``messages`` are those of the origin: its data, what to compare with, room for the result.
    ``keeps`` and ``writes`` tell whether the target's memory then holds what it held, what the
    origin sent, or the sum of both; ``fetches`` whether what it held arrives at the origin.
    ``exclusive`` are the synchronizations whose lock is MPI_LOCK_EXCLUSIVE, as in native OMB.
    """

    function: str
    keeps: bool
    writes: bool
    fetches: bool
    messages: int = 1
    makes_request: bool = False
    exclusive: tuple[str, ...] = ()

    @property
    def adds(self) -> bool:
        """Return whether both sides' data are added up."""
        return self.keeps and self.writes


PUT = Access("put", keeps=False, writes=True, fetches=False)
GET = Access("get", keeps=True, writes=False, fetches=True)
RPUT = replace(PUT, function="rput", makes_request=True)
RGET = replace(GET, function="rget", makes_request=True)
ACCUMULATE = Access("accumulate", keeps=True, writes=True, fetches=False)
# osu_get_acc_latency.c:174, 255 and 425, osu_fop_latency.c:546, osu_cas_latency.c:571
GET_ACCUMULATE = Access(
    "get_accumulate",
    keeps=True,
    writes=True,
    fetches=True,
    messages=2,
    exclusive=("lock", "flush", "flush_local"),
)
FETCH_AND_OP = replace(GET_ACCUMULATE, function="fetch_and_op", exclusive=("lock",))
COMPARE_AND_SWAP = Access(
    "compare_and_swap", keeps=False, writes=True, fetches=True, messages=3, exclusive=("lock",)
)


@dataclass(frozen=True)
class Side:
    """This rank's side of an iteration, to be synchronized.

    ``calls`` are those that it makes on the window ``win`` if it is an origin. ``first`` is true
    for the origin that begins, ``turns`` if its ``peer`` is one after it, ``both`` if it is one at
    the same time. ``lock`` and ``unlock`` are those of the target's window.
    """

    case: Case
    win: Any
    peer: int
    calls: tuple[Step, ...]
    first: bool
    turns: bool
    both: bool
    lock: Call
    unlock: Call


def plan(access: Access, case: Case, windowed: bool = False, both: bool = False) -> Plan:
    """Return a plan with origins in the first half; active synchronization lets sides take turns.

    ``windowed`` makes a window of calls before they are completed, only from the origin, or from
    ``both`` sides at once.
    """
    if access is COMPARE_AND_SWAP and case.datatype.code not in INTEGERS:
        raise UnsupportedError(
            f"MPI compares and swaps only integers, not {case.datatype.name}: choose others by -T"
        )
    sync = case.options.window_sync
    count = case.window if windowed else 1
    exposed = case.resources.window(count * case.size, case.datatype)
    peer = partner(case)
    if peer is None:  # fences and barriers are collective
        fences = (Call("win_fence", on=exposed.win, values=(0,)),) * 2 if sync == "fence" else ()
        barriers = (Call("barrier"),) * (1 if sync in ACTIVE else 2)
        return Plan((CheckedIteration(fences, before_check=barriers),), case.payload, timed=False)
    first = case.rank < peer
    turns = sync in ACTIVE and not windowed
    parts = []
    if first or turns or both:
        parts.append(origin_side(access, case, exposed, peer, count))
    if not first or turns or both:
        parts.append(target_side(access, case, exposed, peer, count))
    kind = "LOCK_EXCLUSIVE" if sync in access.exclusive else "LOCK_SHARED"
    target = peer if first else case.rank
    lock = Call("win_lock", on=exposed.win, values=(kind, target, 0))
    unlock = Call("win_unlock", on=exposed.win, values=(target,))
    side = Side(case, exposed.win, peer, parts[0].steps, first, turns, both, lock, unlock)
    iteration = replace(
        SYNCHRONIZED[sync](side),
        inputs=tuple(one for part in parts for one in part.inputs),
        outputs=tuple(one for part in parts for one in part.outputs),
    )
    messages = count * case.options.pairs_in(case.ranks) * (1 + both)
    return Plan((iteration,), case.payload, timed=first, messages=messages)


def origin_side(
    access: Access, case: Case, exposed: Exposed, peer: int, count: int
) -> CheckedIteration:
    """Return the calls of the origin, and the data on its side.

    Each call has a place of its own at both ends, one after another: osu_put_bw.c:225.
    """
    messages = list(zip(*(case.messages(count) for _ in range(access.messages)), strict=True))
    slot = Slot(count) if access.makes_request else None
    steps: list[Step] = [
        Call(
            access.function,
            own,
            peer,
            on=exposed.win,
            at=exposed.bases[peer] + index * case.size,
            op="sum" if access.adds else None,
            slot=slot,
            index=index,
        )
        for index, own in enumerate(messages)
    ]
    if slot is not None:
        steps.append(Call("waitall" if count > 1 else "wait", slot=slot))
    inputs: list[Content] = []
    outputs: list[Content] = []
    for index, own in enumerate(messages):
        if access.writes:
            inputs.append(Content.of(case.rank, own[0].memory, index, added=access.adds))
        if access.messages == 3:
            inputs.append(Content.of(peer, own[1].memory, index))
        if access.fetches:
            outputs.append(Content.of(peer, own[-1].memory, index, added=access.adds))
    return CheckedIteration(tuple(steps), inputs=tuple(inputs), outputs=tuple(outputs))


def target_side(
    access: Access, case: Case, exposed: Exposed, peer: int, count: int
) -> CheckedIteration:
    """Return the data in this rank's window, before the calls of its peer and after them."""
    low, high = sorted((case.rank, peer))
    both = range(low, high + 1, high - low)
    inputs, outputs = [], []
    for index in range(count):
        part = exposed.memory.slice(index * case.size, case.size)
        inputs.append(Content.of(case.rank, part, index, added=access.adds))
        left = Content.of(case.rank if access.keeps else peer, part, index)
        outputs.append(Content(part, both, index, added=True) if access.adds else left)
    return CheckedIteration(inputs=tuple(inputs), outputs=tuple(outputs))


def fence(side: Side) -> CheckedIteration:
    """Return an iteration with the calls between fences; one more for the turn of the peer."""
    fence = Call("win_fence", on=side.win, values=(0,))
    own, others = (fence, *side.calls, fence), (fence,) * side.turns
    steps = (*own, *others) if side.first else (*others, *own)
    return CheckedIteration(steps, before_check=(Call("barrier"),))


def pscw(side: Side) -> CheckedIteration:
    """Return an iteration with calls between start and complete, and post and wait for others'."""
    group = side.case.resources.group(side.peer)
    post, wait = Call("win_post", on=side.win, values=(group, 0)), Call("win_wait", on=side.win)
    start = Call("win_start", on=side.win, values=(group, 0))
    access = (start, *side.calls, Call("win_complete", on=side.win))
    steps = access if side.first else (post, wait)
    if side.both:
        steps = (post, *access, wait)
    elif side.turns:
        steps = (*access, post, wait) if side.first else (post, wait, *access)
    return CheckedIteration(steps, before_check=(Call("barrier"),))


def locked_anew(side: Side, every_window: bool = False) -> CheckedIteration:
    """Return an iteration with the calls inside a lock, of ``every_window`` or of the target's."""
    if not side.first:
        return passive_target(side)
    lock, unlock = side.lock, side.unlock
    if every_window:
        lock = Call("win_lock_all", on=side.win, values=(0,))
        unlock = Call("win_unlock_all", on=side.win)
    barriers = Call("barrier"), Call("barrier")
    return CheckedIteration((lock, *side.calls, unlock), before_check=barriers)


def locked_once(flush: str, side: Side) -> CheckedIteration:
    """Return an iteration with the calls and a ``flush``, in a lock around all iterations.

    The origin gives up the lock until the target has seen the data, as it may be exclusive.
    """
    if not side.first:
        return passive_target(side)
    return CheckedIteration(
        (*side.calls, Call(flush, on=side.win, values=(side.peer,))),
        setup=(side.lock,),
        teardown=(side.unlock,),
        before_check=(replace(side.unlock), Call("barrier"), Call("barrier"), replace(side.lock)),
    )


def passive_target(side: Side) -> CheckedIteration:
    """Return a target's iteration: only a lock before the check, by which it sees the data."""
    return CheckedIteration(before_check=(Call("barrier"), side.lock, side.unlock, Call("barrier")))


SYNCHRONIZED: dict[str, Callable[[Side], CheckedIteration]] = {
    "fence": fence,
    "pscw": pscw,
    "lock": locked_anew,
    "lock_all": partial(locked_anew, every_window=True),
    "flush": partial(locked_once, "win_flush"),
    "flush_local": partial(locked_once, "win_flush_local"),
}
"""What makes the iteration of a side, by the value of ``-s``."""


def heading(options: Options, ranks: int) -> tuple[str, ...]:
    """Return native OMB's lines on windows below the banner."""
    kind, sync = str(options.window_kind), options.window_sync
    return (
        f"# Window creation: {WINDOW_CALLS.get(kind, f'MPI_Win_{kind}')}",
        f"# Synchronization: {WINDOW_CALLS.get(sync, f'MPI_Win_{sync}')}",
    )


LATENCY = Defaults(10_000, 100, 1_000, 10, smallest=1, largest=4 << 20)
OPTIONS = frozenset({"window_kind", "window_sync", "target_busy"})


def latency(access: Access, name: str, title: str, **more: Any) -> Benchmark:
    """Return a benchmark of the time of one access."""
    return Benchmark(
        name=name,
        title=title,
        family="one-sided",
        leading_blank=False,
        summary=f"Time of one MPI_{access.function.capitalize()}, completed.",
        plan=partial(plan, access),
        ranks=Ranks.TWO,
        round_trips=lambda options: 2 if options.window_sync in ACTIVE else 1,
        memory=lambda options, size, ranks: (1 + access.messages) * size,
        reduces=access.adds or access is COMPARE_AND_SWAP,
        paced=False,
        defaults=LATENCY,
        options=OPTIONS,
        heading=heading,
        value="Latency (us)",
        native=not access.makes_request,
        **more,
    )


def bandwidth(
    access: Access, name: str, title: str, both: bool = False, rate: bool = False
) -> Benchmark:
    """Return a benchmark of the data per second of a window of accesses."""
    summary = f"Data per second by a window of MPI_{access.function.capitalize()}"
    return Benchmark(
        name=name,
        title=title,
        family="one-sided",
        leading_blank=False,
        summary=f"{summary}{', both ways at once' if both else ', of many pairs' if rate else ''}.",
        plan=partial(plan, access, windowed=True, both=both),
        ranks=Ranks.EVEN if rate else Ranks.TWO,
        metric=Metric.MESSAGE_RATE if rate else Metric.BANDWIDTH,
        memory=lambda options, size, ranks: 2 * options.window * size,
        paced=rate,
        defaults=BANDWIDTH,
        preset={"window_sync": "pscw"} if both else {},
        options=frozenset({"window_kind", "window"})
        | ({"active_sync"} if both else {"window_sync"})
        | ({"print_rate", "pairs", "sync"} if rate else set()),
        heading=lambda options, ranks: (
            *heading(options, ranks),
            *([pairs_line(options, ranks)] if rate else []),
        ),
        native=not (rate or access.makes_request),
    )


# The timed part of native OMB's programs, with their default synchronization:
# osu_put_latency.c:294, osu_get_latency.c:212, osu_acc_latency.c:261, osu_get_acc_latency.c:420,
# osu_fop_latency.c:351, osu_cas_latency.c:245, osu_put_bw.c:308, osu_get_bw.c:306,
# osu_put_bibw.c:320.
LOCKED = {"window_kind": "create", "window_sync": "lock"}

BENCHMARKS = (
    latency(PUT, "put_latency", "_Put Latency"),
    latency(GET, "get_latency", "_Get latency"),
    latency(ACCUMULATE, "acc_latency", "_Accumulate latency"),
    latency(GET_ACCUMULATE, "get_acc_latency", "_Get_accumulate latency", preset=LOCKED),
    latency(FETCH_AND_OP, "fop_latency", "_Fetch_and_op latency", elements=1),
    latency(COMPARE_AND_SWAP, "cas_latency", "_Compare_and_swap latency", elements=1),
    latency(RPUT, "rput_latency", "_Rput Latency"),
    latency(RGET, "rget_latency", "_Rget Latency"),
    bandwidth(PUT, "put_bw", "_Put Bandwidth"),
    bandwidth(GET, "get_bw", "_Get Bandwidth"),
    bandwidth(PUT, "put_bibw", "_Put Bi-directional Bandwidth", both=True),
    bandwidth(RPUT, "rput_bw", "_Rput Bandwidth"),
    bandwidth(RGET, "rget_bw", "_Rget Bandwidth"),
    bandwidth(PUT, "put_mr", "_Put Multiple Bandwidth / Message Rate", rate=True),
    bandwidth(GET, "get_mr", "_Get Multiple Bandwidth / Message Rate", rate=True),
)
