"""Many nodes and one: every rank of a node against the rank of its number on all others."""

from __future__ import annotations

from functools import partial

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Content, Metric, Plan, Ranks
from omb_py.benchmarks.pt2pt import ACKNOWLEDGE_TAG, BANDWIDTH, WINDOWED, post, window_memory
from omb_py.core.calls import Call, Step, Window
from omb_py.core.datatypes import CONTIGUOUS


def plan(inward: bool, case: Case) -> Plan:
    """Exchange a window with this rank's peers, then a short answer; other nodes' clocks count.

    Native OMB's first node is the parent; the ranks of all others are children, which send when the
    traffic is ``inward`` and else receive.
    """
    parent = case.nodes[case.rank] == 0
    peers = peers_of(case)
    sends = parent is not inward
    groups: list[tuple[Call, ...]] = []
    steps: list[Step] = []
    inputs: list[Content] = []
    outputs: list[Content] = []
    for peer in peers:
        window, messages = post("isend" if sends else "irecv", case, peer)
        answer = case.message((1,), layout=CONTIGUOUS)
        groups += window.groups
        steps.append(Call("recv" if sends else "send", (answer,), peer, ACKNOWLEDGE_TAG))
        sender, receiver = (case.rank, peer) if sends else (peer, case.rank)
        data = [Content.of(sender, message.memory) for message in messages]
        reply = Content.of(receiver, answer.memory)
        inputs += data if sends else [reply]
        outputs += [reply] if sends else data
    everything: tuple[Step, ...] = (Window(tuple(groups)), *steps)
    exchange = CheckedIteration(everything, inputs=tuple(inputs), outputs=tuple(outputs))
    children = sum(node > 0 for node in case.nodes)
    return Plan((exchange,), case.payload, not parent, messages=case.window * children)


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
        defaults=BANDWIDTH,
        options=WINDOWED | {"nodes"},
    )


BENCHMARKS = (
    benchmark("bw_fan_in", True, "Data per second from many nodes to one."),
    benchmark("bw_fan_out", False, "Data per second from one node to many."),
)
