"""Many nodes and one: every rank of a node against the rank of its number on all others."""

from __future__ import annotations

from functools import partial

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Content, Metric, Plan, Ranks
from omb_py.benchmarks.pt2pt import (
    ACKNOWLEDGE_TAG,
    BANDWIDTH,
    DATA_TAG,
    WINDOWED,
    window_contents,
    window_memory,
    window_messages,
)
from omb_py.core.calls import Call, Step, Window
from omb_py.core.datatypes import CONTIGUOUS


def plan(inward: bool, case: Case) -> Plan:
    """Exchange a window with each of this rank's peers, then a short answer; the senders time.

    Native OMB's first node is the parent; the ranks of all others are children, which send when the
    traffic is ``inward`` and else receive. A window's messages go to all peers in turn, from one
    memory for all, and one Waitall completes them: osu_bw_fan_in.c:231-324, osu_bw_fan_out.c:228.
    """
    parent = case.nodes[case.rank] == 0
    peers = peers_of(case)
    sends = parent is not inward
    function = "isend" if sends else "irecv"
    if case.options.validate and not sends:  # each peer's data is checked
        memories = {peer: window_messages(case, function) for peer in peers}
    else:
        memories = dict.fromkeys(peers, window_messages(case, function))
    calls = (
        Call(function, (messages[index % len(messages)],), peer, DATA_TAG)
        for index in range(case.window)
        for peer, messages in memories.items()
    )
    answers = {peer: case.message((1,), layout=CONTIGUOUS) for peer in peers}
    replies = (
        Call("recv" if sends else "send", (answer,), peer, ACKNOWLEDGE_TAG)
        for peer, answer in answers.items()
    )
    data = [
        content
        for peer in (peers[:1] if sends else peers)  # what is sent is the same memory for all
        for content in window_contents(case, memories[peer], case.rank if sends else peer)
    ]
    answered = [Content.of(peer if sends else case.rank, answers[peer].memory) for peer in peers]
    inputs, outputs = (data, answered) if sends else (answered, data)
    steps: tuple[Step, ...] = (Window((tuple(calls),)), *replies)
    iteration = CheckedIteration(steps, inputs=tuple(inputs), outputs=tuple(outputs))
    children = sum(node > 0 for node in case.nodes)
    return Plan((iteration,), case.payload, timed=sends, messages=case.window * children)


def peers_of(case: Case) -> tuple[int, ...]:
    """Return the ranks of the same number on the other side: the parent's, or all children's."""
    nodes = case.nodes
    here = [rank for rank in range(case.ranks) if nodes[rank] == nodes[case.rank]]
    number = here.index(case.rank)
    others = range(1, max(nodes) + 1) if nodes[case.rank] == 0 else range(1)
    return tuple(
        [rank for rank in range(case.ranks) if nodes[rank] == node][number] for node in others
    )


def benchmark(name: str, inward: bool, summary: str) -> Benchmark:
    return Benchmark(
        name=name,
        title="Bandwidth",
        family="congestion",
        summary=summary,
        plan=partial(plan, inward),
        ranks=Ranks.SEVERAL,
        metric=Metric.BANDWIDTH,
        memory=lambda options, size, ranks: window_memory(options, size, max(1, ranks - 1)),
        paced=False,
        defaults=BANDWIDTH,
        options=WINDOWED | {"nodes"},
    )


BENCHMARKS = (
    benchmark("bw_fan_in", True, "Data per second from many nodes to one."),
    benchmark("bw_fan_out", False, "Data per second from one node to many."),
)
