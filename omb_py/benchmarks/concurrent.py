"""Ping-pongs of ranks with several threads, or with forked processes."""

from __future__ import annotations

from math import lcm

from omb_py.benchmarks import Case, Plan
from omb_py.benchmarks.pt2pt import COMMON, PING_PONG, ping_pong
from omb_py.core.dataclass import replace
from omb_py.core.options import Options


def with_threads(case: Case) -> Plan:
    """Give iterations tags of their own, so that each answer finds the thread that waits for it.

    Sender ``i % S`` and receiver ``i % R`` make iteration ``i``; tags repeat only after both sides
    have come round.
    """
    threads = case.options.threads[case.rank]
    tags = range(lcm(*case.options.threads))
    exchanges = tuple(ping_pong(case, tag).exchanges[0] for tag in tags)
    return Plan(exchanges, case.payload, timed=case.rank == 0, threads=threads)


def with_processes(case: Case) -> Plan:
    """Return a ping-pong while forked processes, which share the ranks' memory, sleep."""
    plan = ping_pong(case)
    case.resources.fork(case.options.threads[case.rank])
    return plan


def count_threads(options: Options, ranks: int) -> tuple[str, ...]:
    """Return native OMB's lines on the number of threads of each side."""
    senders, receivers = options.threads
    return f"# Number of Sender threads: {senders}", f"# Number of Receiver threads: {receivers}"


def count_processes(options: Options, ranks: int) -> tuple[str, ...]:
    """Return native OMB's lines on the number of processes that each side has forked."""
    words = "# Number of forked processes in"
    return tuple(
        f"{words} {side}: {number}"
        for side, number in zip(("sender", "receiver"), options.threads, strict=True)
    )


BENCHMARKS = (
    replace(
        PING_PONG,
        name="latency_mt",
        title="Multi-threaded Latency",
        summary="Half the round-trip time between threads of two ranks.",
        plan=with_threads,
        memory=lambda options, size, ranks: 2 * size * lcm(*options.threads),
        options=COMMON | {"threads"},
        preset={"thread_level": "multiple"},
        heading=count_threads,
    ),
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
)
