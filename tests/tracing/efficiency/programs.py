"""Random programs that cannot deadlock, and machines that run them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.tracing.efficiency.machine import Machine, Request

COLLECTIVES = (
    "MPI_Barrier MPI_Allreduce MPI_Alltoall MPI_Bcast MPI_Scatter MPI_Reduce MPI_Gather MPI_Scan "
    "MPI_Exscan MPI_Win_fence"
).split()
RANKS = st.integers(0, 3)
STEPS = st.one_of(
    st.tuples(st.just("compute"), RANKS, st.integers(0, 500)),
    st.tuples(st.sampled_from("send post exchange synchronous".split()), RANKS, RANKS),
    st.tuples(st.sampled_from("receive wait".split()), RANKS, st.just(0)),
    st.tuples(st.sampled_from(COLLECTIVES), RANKS, st.integers(0, 15)),
    st.tuples(st.just("start"), RANKS, st.just(0)),
)
PROGRAMS = st.tuples(
    st.integers(2, 4),
    st.lists(st.tuples(RANKS, st.integers(1, 400)), min_size=1, max_size=4),
    st.lists(STEPS, max_size=25),
)
"""Ranks, what some of them compute first, and steps; numbers of ranks are taken modulo."""

Program = tuple[int, list[tuple[int, int]], list[tuple[str, int, int]]]


def run(machine: Machine, program: Program) -> Machine:
    """Run a program's steps one after the other, which cannot deadlock, and end its requests."""
    ranks, computed, steps = program
    sent: list[tuple[int, int, Request]] = []
    waiting: dict[int, list[Request]] = {}
    for rank, time in computed:
        machine.compute(rank % ranks, time)
    for index, (kind, first, second) in enumerate(steps):
        one, other = first % ranks, second % ranks
        tag = index % 2
        if kind == "compute":
            machine.compute(one, second)
        elif kind == "receive":
            for entry in [entry for entry in sent if entry[1] == one]:
                machine.receive(one, entry[0], entry[2])
                sent.remove(entry)
        elif kind == "wait":
            machine.wait(one, *waiting.pop(one, []))
        elif kind == "start":
            begin(waiting, machine.start_collective("MPI_Iallreduce"))
        elif kind.startswith("MPI_"):
            members = [rank for rank in range(ranks) if second & 1 << rank] or None
            key = f"some-{second}" if members else ""
            there = members or list(range(ranks))
            root = there[first % len(there)]
            rooted = kind in ("MPI_Bcast", "MPI_Scatter", "MPI_Reduce", "MPI_Gather")
            machine.collective(kind, members, root if rooted else -1, key=key)
        elif one != other:
            between(machine, kind, one, other, tag, sent, waiting)
    for source, dest, message in sent:
        machine.receive(dest, source, message)
    for rank, requests in waiting.items():
        machine.wait(rank, *requests)
    return machine


def between(
    machine: Machine,
    kind: str,
    one: int,
    other: int,
    tag: int,
    sent: list[tuple[int, int, Request]],
    waiting: dict[int, list[Request]],
) -> None:
    """A step of two ranks."""
    if kind == "send":
        sent.append((one, other, machine.send(one, other, tag=tag)))
    elif kind == "post":
        begin(waiting, machine.post(one, other, tag=tag))
    elif kind == "exchange":
        machine.exchange(one, other, tag=tag)
    else:
        machine.synchronous(one, other, tag=tag)


def begin(waiting: dict[int, list[Request]], requests: Any) -> None:
    """Keep requests until their ranks wait."""
    for rank, request in requests:
        waiting.setdefault(rank, []).append(request)
