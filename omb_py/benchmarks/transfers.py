"""Other ways to move a message between ranks than send and receive; native OMB has none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Content, Defaults, Metric, Plan
from omb_py.benchmarks.pt2pt import (
    BANDWIDTH,
    COMMON,
    DATA_TAG,
    PING_PONG,
    ping_pong,
    plan_of,
)
from omb_py.core.calls import Call, Message, Slot, Step, Window
from omb_py.core.dataclass import replace
from omb_py.core.options import Options


def sendrecv(case: Case, tag: int = DATA_TAG, on: Any = None) -> Plan:
    """Let every rank send to the next and receive from the one before it, in one call.

    ``on`` is the communicator, by default the binding's.
    """
    after, before = (case.rank + 1) % case.ranks, (case.rank - 1) % case.ranks
    outgoing, incoming = case.message(), case.message()
    values = (after, tag, before, tag)
    call = Call("sendrecv", (outgoing, incoming), values=values, on=on)
    sent = Content.of(case.rank, outgoing.memory)
    received = Content.of(before, incoming.memory)
    return Plan((CheckedIteration((call,), inputs=(sent,), outputs=(received,)),), case.payload)


def exchange(case: Case) -> Plan:
    """Let every rank send to both of its neighbours in a ring and receive from both."""
    after, before = (case.rank + 1) % case.ranks, (case.rank - 1) % case.ranks
    outgoing, from_before, from_after = case.message(), case.message(), case.message()
    calls = (
        Call("irecv", (from_before,), before, DATA_TAG),
        Call("irecv", (from_after,), after, DATA_TAG + 1),
        Call("isend", (outgoing,), after, DATA_TAG),
        Call("isend", (outgoing,), before, DATA_TAG + 1),
    )
    inputs = (Content.of(case.rank, outgoing.memory),)
    outputs = Content.of(before, from_before.memory), Content.of(after, from_after.memory)
    return Plan(
        (CheckedIteration((Window((calls,)),), inputs=inputs, outputs=outputs),), case.payload
    )


def probe_then_receive(receive: Call) -> tuple[Step, ...]:
    """Return a receive after a probe, as by who does not know the length of what comes."""
    return Call("probe", peer=receive.peer, tag=receive.tag), receive


def matched_probe(receive: Call) -> tuple[Step, ...]:
    """Receive by a matched probe, which threads cannot take from each other."""
    slot = Slot()
    probe = Call("mprobe", peer=receive.peer, tag=receive.tag, slot=slot)
    return probe, Call("mrecv", receive.operands, slot=slot)


def ping_pong_with(receiving: Callable[[Call], tuple[Step, ...]], case: Case) -> Plan:
    """Return a ping-pong that receives in another way."""
    plan = ping_pong(case)
    (iteration,) = plan.iterations
    steps: list[Step] = []
    for step in iteration.steps:
        receives = isinstance(step, Call) and step.function == "recv"
        steps += receiving(step) if isinstance(step, Call) and receives else (step,)
    return replace(plan, iterations=(replace(iteration, steps=tuple(steps)),))


def partitioned_calls(case: Case, function: str, peer: int, message: Message) -> CheckedIteration:
    """Set up a partitioned message and start it, all parts ready at once, and wait for it."""
    slot, parts = Slot(), case.options.partitions
    values = (parts, peer, DATA_TAG)
    steps: list[Step] = [Call("start", slot=slot)]
    if function == "psend":
        steps += [Call("pready", values=(part,), slot=slot) for part in range(parts)]
    return CheckedIteration(
        (*steps, Call("wait", slot=slot)),
        setup=(Call(f"{function}_init", (message,), values=values, slot=slot),),
        teardown=(Call("request_free", slot=slot),),
    )


def partitioned_ping_pong(case: Case) -> Plan:
    """Return a ping-pong of messages whose parts become ready one by one."""
    peer = 1 - case.rank
    outgoing, incoming = case.message(), case.message()
    send = partitioned_calls(case, "psend", peer, outgoing)
    receive = partitioned_calls(case, "precv", peer, incoming)
    return together(
        case, (send, receive) if case.rank == 0 else (receive, send), outgoing, incoming
    )


def partitioned_one_way(case: Case) -> Plan:
    """Send one partitioned message, then a short answer."""
    peer = 1 - case.rank
    message, answer = case.message(), case.message((1,))
    sends = case.rank == 0
    parts = partitioned_calls(case, "psend" if sends else "precv", peer, message)
    reply = CheckedIteration((Call("recv" if sends else "send", (answer,), peer, DATA_TAG),))
    sides = (message, answer) if sends else (answer, message)
    return together(case, (parts, reply), *sides)


def together(
    case: Case, parts: tuple[CheckedIteration, ...], sent: Message, received: Message
) -> Plan:
    """Return one iteration of several parts, one after the other."""
    plan = plan_of(case, tuple(step for part in parts for step in part.steps), [sent], [received])
    (whole,) = plan.iterations
    setup = tuple(step for part in parts for step in part.setup)
    teardown = tuple(step for part in parts for step in part.teardown)
    return replace(plan, iterations=(replace(whole, setup=setup, teardown=teardown),))


def count_parts(options: Options, ranks: int) -> tuple[str, ...]:
    """Return the line that later releases of native OMB have below the banner."""
    return (f"# Partitions: {options.partitions}",)


RING = Defaults(1_000, 100, 100, 10, smallest=0, largest=4 << 20)


SENDRECV = Benchmark(
    name="sendrecv",
    title="Sendrecv Latency",
    family="point-to-point",
    summary="Time of MPI_Sendrecv along a ring of all ranks, mean over the ranks.",
    plan=sendrecv,
    defaults=RING,
    options=frozenset({"full", "sync", "layout"}),
    memory=lambda options, size, ranks: 2 * size,
    native=False,
)
PROBED = replace(
    PING_PONG,
    name="probe",
    title="Probe Latency",
    summary="Half the round-trip time of messages that are probed for before they are received.",
    plan=partial(ping_pong_with, probe_then_receive),
    options=COMMON,
    native=False,
)
PARTITIONED = replace(
    PING_PONG,
    name="partitioned_latency",
    title="Partitioned Latency",
    family="partitioned point-to-point",
    summary="Half the round-trip time of one partitioned message.",
    plan=partitioned_ping_pong,
    options=frozenset({"partitions"}),
    heading=count_parts,
    parts=lambda options: options.partitions,
    native=False,
)

BENCHMARKS = (
    SENDRECV,
    replace(
        SENDRECV,
        name="exchange",
        title="Exchange Latency",
        summary="Time to exchange messages with both neighbours in a ring, mean over the ranks.",
        plan=exchange,
        memory=lambda options, size, ranks: 3 * size,
    ),
    PROBED,
    replace(
        PROBED,
        name="mprobe",
        title="Matched Probe Latency",
        summary="Half the round-trip time of messages that a matched probe finds.",
        plan=partial(ping_pong_with, matched_probe),
    ),
    PARTITIONED,
    replace(
        PARTITIONED,
        name="partitioned_bw",
        title="Partitioned Bandwidth",
        summary="Data per second by one partitioned message at a time.",
        plan=partitioned_one_way,
        metric=Metric.BANDWIDTH,
        round_trips=lambda options: 1,
        defaults=BANDWIDTH,
    ),
)
