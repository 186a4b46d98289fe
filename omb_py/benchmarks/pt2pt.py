"""Point-to-point benchmarks: messages between pairs of ranks."""

from __future__ import annotations

from typing import Any

from omb_py.benchmarks import (
    Benchmark,
    Case,
    CheckedIteration,
    Content,
    Defaults,
    Metric,
    Plan,
    Ranks,
)
from omb_py.core.calls import Call, Message, Step, Window
from omb_py.core.dataclass import replace
from omb_py.core.datatypes import CONTIGUOUS
from omb_py.core.options import VARIED_WINDOWS, Options

DATA_TAG = 100
ACKNOWLEDGE_TAG = DATA_TAG + 1


def ping_pong(case: Case, tag: int = DATA_TAG, on: Any = None) -> Plan:
    """Let the first of each pair send and wait for the answer of the second.

    As osu_latency.c:190 and, after a barrier, osu_multi_lat.c:208. ``on`` is the communicator, by
    default the binding's.
    """
    peer = partner(case)
    if peer is None:
        return idle(case)
    outgoing, incoming = case.message(), case.message()
    send = Call("send", (outgoing,), peer=peer, tag=tag, on=on)
    receive = Call("recv", (incoming,), peer=peer, tag=tag, on=on)
    steps = (send, receive) if case.rank < peer else (receive, send)
    return plan_of(case, steps, [outgoing], [incoming])


def one_way(case: Case, tag: int = DATA_TAG, on: Any = None) -> Plan:
    """Send a window of messages from the first of each pair to the second, then a short answer.

    As osu_bw.c:226 and, after a barrier, osu_mbw_mr.c:514, where native OMB has two. The answer has
    the next tag. ``on`` is the communicator, by default the binding's.
    """
    peer = partner(case)
    if peer is None:
        return idle(case)
    answer = case.message((1,), layout=CONTIGUOUS)
    first = case.rank < peer
    window, messages = post("isend" if first else "irecv", case, peer, tag, on)
    reply = Call("recv" if first else "send", (answer,), peer, tag + 1, on=on)
    sides = (messages, [answer]) if first else ([answer], messages)
    plan = plan_of(case, (window, reply), *sides)
    return replace(plan, messages=case.window * case.options.pairs_in(case.ranks))


def both_ways(case: Case) -> Plan:
    """Send a window of messages in each direction at once: receives posted first, sends after.

    The sends are waited for before the receives, as in osu_bibw.c:226-275.
    """
    peer = 1 - case.rank
    receives, received = post("irecv", case, peer)
    sends, sent = post("isend", case, peer)
    plan = plan_of(case, (Window(receives.groups + sends.groups),), sent, received)
    return replace(plan, messages=2 * case.window)


def partner(case: Case) -> int | None:
    """Return the rank that this one exchanges messages with: half the job away, as in native OMB.

    None for the ranks that ``-p`` leaves without work.
    """
    half = case.ranks // 2
    if case.rank % half >= case.options.pairs_in(case.ranks):
        return None
    return case.rank + half if case.rank < half else case.rank - half


def post(
    function: str, case: Case, peer: int, tag: int = DATA_TAG, on: Any = None
) -> tuple[Window, list[Message]]:
    """Return a window of one non-blocking call, and its messages."""
    messages = window_messages(case, function)
    calls = [Call(function, (message,), peer, tag, on=on) for message in messages]
    return Window((tuple(calls * (case.window // len(calls))),)), messages


def window_messages(case: Case, function: str) -> list[Message]:
    """Return the messages of a window of one call: one for all, or one for each.

    Every message received is checked when data is validated, so each then has its own memory.
    """
    checked = case.options.validate and function == "irecv"
    each = case.options.buffer_per_message or checked
    return [case.message() for _ in range(case.window if each else 1)]


def window_contents(case: Case, messages: list[Message], source: int) -> list[Content]:
    """Return the data of rank ``source`` in a window's messages, before or after they arrive.

    With memory per message, message ``i`` of a window is block ``i`` of its sender's data.
    """
    distinct = case.options.buffer_per_message
    return [
        Content.of(source, message.memory, index if distinct else 0)
        for index, message in enumerate(messages)
    ]


def plan_of(
    case: Case,
    steps: tuple[Step, ...],
    sent: list[Message],
    received: list[Message],
) -> Plan:
    """Return a plan that sends this rank's data and expects its partner's; the first rank times."""
    peer = partner(case)
    assert peer is not None
    inputs, outputs = (
        tuple(window_contents(case, messages, source))
        for messages, source in ((sent, case.rank), (received, peer))
    )
    iteration = CheckedIteration(steps, inputs=inputs, outputs=outputs)
    return Plan((iteration,), case.payload, timed=case.rank < peer)


def window_memory(options: Options, size: int, directions: int) -> int:
    """Return the bytes that one process needs for the windows that it sends, receives, or both."""
    longest = max(VARIED_WINDOWS) if options.vary_window else options.window
    each = options.buffer_per_message or options.validate
    return directions * size * (longest if each else 1)


def pairs_line(options: Options, ranks: int) -> str:
    """Return native OMB's line on pairs and windows below the banner."""
    window = "varied" if options.vary_window else options.window
    return f"# [ pairs: {options.pairs_in(ranks)} ] [ window size: {window} ]"


def idle(case: Case) -> Plan:
    """Return the plan of a rank without a partner: it only takes part in the barriers."""
    return Plan((CheckedIteration(),), case.payload, timed=False)


COMMON = frozenset({"layout", "placement"})
WINDOWED = COMMON | {"window", "buffer_num"}
LATENCY = Defaults(10_000, 100, 1_000, 10, smallest=0, largest=4 << 20)
BANDWIDTH = Defaults(100, 10, 20, 2, smallest=1, largest=4 << 20)
MESSAGE_RATE = Defaults(100, 10, 100, 10, smallest=1, largest=4 << 20)

PING_PONG = Benchmark(
    name="latency",
    title="Latency",
    family="point-to-point",
    summary="Half the round-trip time of one message between two ranks.",
    plan=ping_pong,
    ranks=Ranks.TWO,
    round_trips=lambda options: 2,
    memory=lambda options, size, ranks: 2 * size,
    paced=False,
    defaults=LATENCY,
    options=COMMON | {"buffer_num", "split", "target_busy"},
)
"""The plainest ping-pong; others say what they do otherwise."""

ONE_WAY = Benchmark(
    name="bw",
    title="Bandwidth",
    family="point-to-point",
    summary="Data per second from one rank to another, a window of messages at a time.",
    plan=one_way,
    ranks=Ranks.TWO,
    metric=Metric.BANDWIDTH,
    memory=lambda options, size, ranks: window_memory(options, size, directions=1),
    paced=False,
    defaults=BANDWIDTH,
    options=WINDOWED | {"split"},
)

BENCHMARKS = (
    PING_PONG,
    ONE_WAY,
    replace(
        ONE_WAY,
        name="bibw",
        title="Bi-Directional Bandwidth",
        summary="Data per second when two ranks send to each other at once.",
        plan=both_ways,
        memory=lambda options, size, ranks: window_memory(options, size, directions=2),
        options=WINDOWED | {"split"},
    ),
    replace(
        PING_PONG,
        name="multi_lat",
        title="Multi Latency",
        summary="Half the round-trip time while many pairs of ranks exchange messages.",
        ranks=Ranks.EVEN,
        paced=True,
        defaults=replace(LATENCY, smallest=1),
        options=COMMON | {"buffer_num", "sync"},
    ),
    replace(
        ONE_WAY,
        name="mbw_mr",
        title="Multiple Bandwidth / Message Rate",
        summary="Data and messages per second of many pairs of ranks together.",
        ranks=Ranks.EVEN,
        metric=Metric.MESSAGE_RATE,
        leading_blank=False,
        paced=True,
        defaults=MESSAGE_RATE,
        options=WINDOWED | {"vary_window", "print_rate", "pairs", "sync"},
        heading=lambda options, ranks: (pairs_line(options, ranks),),
    ),
)
