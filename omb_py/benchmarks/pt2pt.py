"""Point-to-point benchmarks: messages between pairs of ranks."""

from __future__ import annotations

from omb_py.benchmarks import (
    Benchmark,
    Case,
    Content,
    Defaults,
    Exchange,
    Metric,
    Plan,
    Ranks,
)
from omb_py.calls import Call, Message, Window
from omb_py.layout import CONTIGUOUS
from omb_py.options import VARIED_WINDOWS, Options

DATA_TAG = 100
ACKNOWLEDGE_TAG = 101


def ping_pong(case: Case) -> Plan:
    """The first of each pair sends and waits for the answer; the second answers."""
    peer = partner(case)
    if peer is None:
        return idle(case)
    outgoing, incoming = case.message(), case.message()
    send = Call("send", (outgoing,), peer=peer, tag=DATA_TAG)
    receive = Call("recv", (incoming,), peer=peer, tag=DATA_TAG)
    first = case.rank < peer
    return plan_of(case, (send, receive) if first else (receive, send), [outgoing], [incoming])


def one_way(case: Case) -> Plan:
    """A window of messages from the first of each pair to the second, then one short answer."""
    peer = partner(case)
    if peer is None:
        return idle(case)
    answer = case.message((1,), layout=CONTIGUOUS)
    if case.rank < peer:
        window, sent = post("isend", case, peer)
        return plan_of(
            case, (window, Call("recv", (answer,), peer, ACKNOWLEDGE_TAG)), sent, [answer]
        )
    window, received = post("irecv", case, peer)
    return plan_of(
        case, (window, Call("send", (answer,), peer, ACKNOWLEDGE_TAG)), [answer], received
    )


def both_ways(case: Case) -> Plan:
    """A window of messages in each direction at once: receives posted first, sends after."""
    peer = 1 - case.rank
    receives, received = post("irecv", case, peer)
    sends, sent = post("isend", case, peer)
    return plan_of(case, (Window(receives.groups + sends.groups),), sent, received)


def partner(case: Case) -> int | None:
    """The rank that this one exchanges messages with: half the job away, as in native OMB.

    None for the ranks that ``-p`` leaves without work.
    """
    half = case.ranks // 2
    if case.rank % half >= case.options.pairs_in(case.ranks):
        return None
    return case.rank + half if case.rank < half else case.rank - half


def post(function: str, case: Case, peer: int) -> tuple[Window, list[Message]]:
    """A window of one non-blocking call, and its messages: one for all, or one for each.

    Every message received is checked when data is validated, so each then has its own memory.
    """
    checked = case.options.validate and function == "irecv"
    messages = [case.message()]
    if case.options.buffer_per_message or checked:
        messages += [case.message() for _ in range(case.window - 1)]
    calls = [Call(function, (message,), peer, DATA_TAG) for message in messages]
    return Window((tuple(calls * (case.window // len(calls))),)), messages


def plan_of(
    case: Case,
    steps: tuple[Call | Window, ...],
    sent: list[Message],
    received: list[Message],
) -> Plan:
    """A plan that sends this rank's data and expects its partner's; the first of a pair times.

    With memory per message, message ``i`` of a window is block ``i`` of its sender's data.
    """
    peer = partner(case)
    assert peer is not None
    distinct = case.options.buffer_per_message

    def contents(messages: list[Message], source: int) -> tuple[Content, ...]:
        return tuple(
            Content(message.memory, range(source, source + 1), block=index if distinct else 0)
            for index, message in enumerate(messages)
        )

    exchange = Exchange(steps, contents(sent, case.rank), contents(received, peer))
    return Plan((exchange,), case.payload, timed=case.rank < peer)


def window_memory(options: Options, size: int, directions: int) -> int:
    """Bytes that one process needs for the windows that it sends, receives, or both."""
    longest = max(VARIED_WINDOWS) if options.vary_window else options.window
    each = options.buffer_per_message or options.validate
    return directions * size * (longest if each else 1)


def idle(case: Case) -> Plan:
    """The plan of a rank without a partner: it only takes part in the barriers."""
    return Plan((Exchange(),), case.payload, timed=False)


COMMON = frozenset({"layout", "placement"})
WINDOWED = COMMON | {"window", "buffer_num"}
LATENCY = Defaults(10_000, 100, 1_000, 10, smallest=0, largest=4 << 20)
BANDWIDTH = Defaults(100, 10, 20, 2, smallest=1, largest=4 << 20)
MESSAGE_RATE = Defaults(100, 10, 100, 10, smallest=1, largest=4 << 20)

BENCHMARKS = (
    Benchmark(
        name="latency",
        title="Latency",
        family="point-to-point",
        summary="Half the round-trip time of one message between two ranks.",
        plan=ping_pong,
        ranks=Ranks.TWO,
        round_trips=2,
        memory=lambda options, size, ranks: 2 * size,
        paced=False,
        defaults=LATENCY,
        options=COMMON | {"buffer_num"},
    ),
    Benchmark(
        name="bw",
        title="Bandwidth",
        family="point-to-point",
        summary="Data per second from one rank to another, a window of messages at a time.",
        plan=one_way,
        ranks=Ranks.TWO,
        metric=Metric.BANDWIDTH,
        messages=lambda options, ranks, window: window,
        memory=lambda options, size, ranks: window_memory(options, size, directions=1),
        paced=False,
        defaults=BANDWIDTH,
        options=WINDOWED | {"test_calls"},
    ),
    Benchmark(
        name="bibw",
        title="Bi-Directional Bandwidth",
        family="point-to-point",
        summary="Data per second when two ranks send to each other at once.",
        plan=both_ways,
        ranks=Ranks.TWO,
        metric=Metric.BANDWIDTH,
        messages=lambda options, ranks, window: 2 * window,
        memory=lambda options, size, ranks: window_memory(options, size, directions=2),
        paced=False,
        defaults=BANDWIDTH,
        options=WINDOWED,
    ),
    Benchmark(
        name="multi_lat",
        title="Multi Latency",
        family="point-to-point",
        summary="Half the round-trip time while many pairs of ranks exchange messages.",
        plan=ping_pong,
        ranks=Ranks.EVEN,
        round_trips=2,
        memory=lambda options, size, ranks: 2 * size,
        defaults=LATENCY,
        options=COMMON | {"sync"},
    ),
    Benchmark(
        name="mbw_mr",
        title="Multiple Bandwidth / Message Rate",
        family="point-to-point",
        summary="Data and messages per second of many pairs of ranks together.",
        plan=one_way,
        ranks=Ranks.EVEN,
        metric=Metric.MESSAGE_RATE,
        messages=lambda options, ranks, window: window * options.pairs_in(ranks),
        memory=lambda options, size, ranks: window_memory(options, size, directions=1),
        defaults=MESSAGE_RATE,
        options=WINDOWED | {"vary_window", "print_rate", "pairs", "sync"},
    ),
)
