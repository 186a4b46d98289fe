"""Ping-pongs of ranks with several threads, or with forked processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import lcm

from omb_py.benchmarks import Case, Metric, Plan, Ranks
from omb_py.benchmarks.pt2pt import (
    COMMON,
    MESSAGE_RATE,
    PING_PONG,
    WINDOWED,
    one_way,
    ping_pong,
    window_memory,
)
from omb_py.benchmarks.transfers import RING, sendrecv
from omb_py.core.dataclass import replace
from omb_py.core.errors import UsageError
from omb_py.core.options import Options

TAGS = 2
"""Tags of one exchange: of its messages, and of the answer to a window."""


def with_threads(exchange: Callable[..., Plan], case: Case) -> Plan:
    """Give iterations tags of their own, so that each answer finds the thread that waits for it.

    A thread's iteration is that of osu_latency_mt.c:445. Sender ``i % S`` and receiver ``i % R``
    make iteration ``i``; tags, and communicators if threads do not share one, repeat only after
    both sides have come round. ``exchange`` returns the plan of one thread, given the case, a tag
    and a communicator.
    """
    options = case.options
    count = lcm(*options.threads)
    comms = case.resources.duplicates(count) if options.thread_comm == "each" else [None] * count
    plans = [exchange(case, TAGS * number, comm) for number, comm in enumerate(comms)]
    return replace(
        plans[0],
        iterations=tuple(plan.iterations[0] for plan in plans),
        messages=plans[0].messages * options.threads[0],
        threads=options.threads[min(case.rank, 1)],
    )


def around_ring(case: Case) -> Plan:
    """Let as many threads of every rank exchange messages with those of its neighbours at once.

    Raises `UsageError` for other numbers of threads on the sending side.
    """
    senders, receivers = case.options.threads
    if senders != receivers:
        raise UsageError(
            f"-t {senders}:{receivers}: {NAME_OF_RING} has as many threads on every rank: use "
            f"-t {senders}:{senders}"
        )
    return with_threads(sendrecv, case)


def with_processes(case: Case) -> Plan:
    """Return a ping-pong while forked processes, which share the ranks' memory, sleep.

    As osu_latency_mp.c:230; native OMB's receiver forks none.
    """
    plan = ping_pong(case)
    case.resources.fork(case.options.threads[case.rank])
    return plan


def count_threads(options: Options, ranks: int) -> tuple[str, ...]:
    """Return native OMB's lines on the number of threads of each side."""
    senders, receivers = options.threads
    return f"# Number of Sender threads: {senders}", f"# Number of Receiver threads: {receivers}"


def count_processes(options: Options, ranks: int) -> tuple[str, ...]:
    """Return native OMB's lines on the number of processes that each side has forked."""
    senders, receivers = options.threads
    words = "# Number of forked processes in"
    return f"{words} sender: {senders}", f"{words} receiver: {receivers}"


NAME_OF_RING = "sendrecv_mt"
MULTI_THREADED = replace(
    PING_PONG,
    name="latency_mt",
    title="Multi-threaded Latency",
    summary="Half the round-trip time between threads of two ranks.",
    plan=partial(with_threads, ping_pong),
    memory=lambda options, size, ranks: 2 * size * lcm(*options.threads),
    options=COMMON | {"threads"},
    preset={"thread_level": "multiple"},
    heading=count_threads,
)

BENCHMARKS = (
    MULTI_THREADED,
    replace(
        PING_PONG,
        name="latency_mp",
        title="Multi-process Latency",
        summary="Half the round-trip time between two ranks that have forked processes.",
        plan=with_processes,
        paced=True,
        options=COMMON | {"processes"},
        heading=count_processes,
    ),
    replace(
        MULTI_THREADED,
        name="mbw_mr_mt",
        title="Multi-threaded Bandwidth / Message Rate",
        summary="Data and messages per second of many threads of two ranks together.",
        plan=partial(with_threads, one_way),
        metric=Metric.MESSAGE_RATE,
        round_trips=lambda options: 1,
        memory=lambda options, size, ranks: (
            window_memory(options, size, directions=1) * lcm(*options.threads)
        ),
        defaults=MESSAGE_RATE,
        options=WINDOWED | {"threads", "print_rate"},
        preset={"thread_level": "multiple", "threads": "2:2"},
        native=False,
    ),
    replace(
        MULTI_THREADED,
        name=NAME_OF_RING,
        title="Multi-threaded Sendrecv Latency",
        summary="Time of MPI_Sendrecv of many threads along a ring of all ranks.",
        plan=around_ring,
        ranks=Ranks.ANY,
        round_trips=lambda options: 1,
        defaults=RING,
        options=frozenset({"threads", "layout"}),
        preset={"thread_level": "multiple", "threads": "2:2"},
        native=False,
    ),
)
