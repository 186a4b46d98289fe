"""Collective benchmarks: one row each, and the plan that follows from a row.

What a rank sends and receives decides everything else: which operands the call has, which data
should arrive, how much memory it takes, and what in-place means.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Literal

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Content, Defaults, Plan
from omb_py.core.calls import IN_PLACE, Call, Form, Message, Operand
from omb_py.core.calls.skew import Skew
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError
from omb_py.core.options import Options


class BufferSide(Enum):
    """The data that a rank sends or receives: no data, one block, or one block for each rank."""

    NOTHING = "nothing"
    ONE = "one block"
    EACH = "one block for each rank"


NOTHING, ONE, EACH = BufferSide


@dataclass(frozen=True)
class Collective:
    """One row of the table.

    ``rooted`` names the side that only the root has: ``send`` (scatter), ``recv`` (gather), or
    ``both`` for the single buffer of a broadcast. ``adds`` names the ranks whose contributions a
    reduction leaves on a rank: those of all ranks, of the ranks up to it, or of the ranks before
    it. ``form`` is the form of the call for one block for each rank. ``divided`` means that the
    message size is the whole vector, of which each rank receives a part: parts of ``any`` length,
    or ``equal`` ones. ``own`` is true if it has own algorithms (`omb_py.benchmarks.algorithms`).
    """

    name: str
    title: str
    send: BufferSide
    recv: BufferSide
    rooted: Literal["", "send", "recv", "both"] = ""
    adds: Literal["", "all", "up to", "before"] = ""
    form: Form = ""
    divided: Literal["", "any", "equal"] = ""
    native: bool = True
    own: bool = False

    def skew(self, options: Options) -> Skew | None:
        """Return how the lengths of blocks differ; None for equal ones.

        A congestor has the options of the benchmark that it disturbs, and may have equal ones.
        """
        return options.skew if self.form == "v" else None

    def memory(self, options: Options, size: int, ranks: int) -> int:
        """Return the bytes that one process needs for a message size, the root if it needs most."""
        blocks = {NOTHING: 0, ONE: 1, EACH: 1 if self.divided else ranks}
        messages = size * (blocks[self.send] + blocks[self.recv])
        if (skew := self.skew(options)) is not None:
            messages = int(messages * skew.largest(ranks)) + ranks
        if options.own_algorithm is None:
            return messages
        from omb_py.benchmarks.algorithms import further_memory

        return messages + further_memory(self.name, options, size, ranks)

    def traffic(self, options: Options, size: int, ranks: int) -> tuple[int, float]:
        """Return nccl-tests' size of a message size, and its factor to the bus bandwidth.

        Of unequal blocks the factor is that of the rank that sends or receives most.

        An allreduce sends what it does not own and gets it back added up; whoever has one block
        for each rank keeps its own; a broadcast, reduce or scan passes everything on once (see
        doc/PERFORMANCE.md of nccl-tests; scans, which it lacks, are ours).
        """
        others = (ranks - 1) / ranks
        if (skew := self.skew(options)) is not None:
            others = self.busiest(skew, options.root, ranks)
        if EACH in (self.send, self.recv):
            return size if self.divided else size * ranks, others
        return size, 2 * others if self.adds == "all" and not self.rooted else 1.0

    def busiest(self, skew: Skew, root: int | None, ranks: int) -> float:
        """Return the part of all ranks' unequal blocks that passes the busiest rank's link."""
        if self.send is self.recv:
            return skew.busiest(ranks) / ranks
        shares = skew.shares(ranks)
        own = shares[root or 0] if self.rooted else min(shares)
        return (ranks - own) / ranks

    def parts(self, elements: int, ranks: int) -> tuple[int, ...]:
        """Return the elements of each rank's block; empty if no side has a block for each rank."""
        if self.divided:
            part, rest = divmod(elements, ranks)
            rest = rest if self.divided == "any" else 0
            return tuple(part + (rank < rest) for rank in range(ranks))
        return (elements,) * ranks if EACH in (self.send, self.recv) else ()

    def blocks(self, case: Case) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the elements of each block that this rank sends, and of each that it receives."""
        skew = self.skew(case.options)
        if skew is None:
            parts = self.parts(case.elements, case.ranks)
            return parts, parts
        if self.send is self.recv:
            if case.options.in_place:
                raise UsageError(
                    "--in-place needs what a rank sends to be what it receives: "
                    "leave out --skew and --matrix"
                )
            where = case.rank, case.elements, case.ranks
            return skew.sent(*where), skew.received(*where)
        parts = skew.of_ranks(case.elements, case.ranks)
        return parts, parts

    def sources(self, rank: int, ranks: int) -> range:
        """Return the ranks whose contributions a reduction leaves on ``rank``."""
        return range({"all": ranks, "up to": rank + 1, "before": rank}[self.adds])

    def benchmark(self) -> Benchmark:
        """Return the benchmark of this row, with the options that its call supports."""
        has_data = self.send is not NOTHING
        options = {
            "full": True,
            "sync": True,
            "split": True,
            "library_algorithm": True,
            "algorithm": self.own,
            "node_map": self.name == "allreduce",
            "segment": self.name == "bcast",
            "bus": has_data,
            "root": self.rooted in ("send", "recv"),
            "in_place": has_data and self.rooted != "both",
            "layout": has_data and not self.adds,
            "skew": self.form == "v",
        }
        return Benchmark(
            name=self.name,
            title=f"{self.title} Latency",
            family="collective",
            collective=True,
            summary=f"Time of one MPI_{self.name.capitalize()}, mean over the ranks.",
            plan=partial(plan, self),
            defaults=Defaults(1_000, 100, 100, 10, smallest=1, largest=1 << 20),
            options=frozenset(name for name, applies in options.items() if applies),
            paced=has_data,
            sized=has_data,
            reduces=bool(self.adds),
            memory=self.memory,
            traffic=self.traffic if has_data else None,
            smallest_elements=lambda ranks: ranks if self.divided == "equal" else 0,
            native=self.native,
        )


def plan(row: Collective, case: Case) -> Plan:
    """Return this rank's part: one iteration, or one for each root when the root rotates."""
    if row.send is NOTHING:
        return by_own(Plan((CheckedIteration((Call(row.name),)),), payload=0), row, case)
    roots: range | list[int | None] = [None]
    if row.rooted:
        fixed = case.options.root
        roots = range(case.ranks) if fixed is None else [fixed]
    is_root = case.rank in roots
    parts, received = row.blocks(case)
    send = side(row, row.send, case, parts) if row.rooted != "send" or is_root else None
    recv = None
    if row.rooted != "both" and (row.rooted != "recv" or is_root):
        recv = side(row, row.recv, case, received)
    iterations = tuple(iteration(row, case, root, send, recv, parts) for root in roots)
    payload = sum(parts) * case.datatype.itemsize if row.divided else case.payload
    return by_own(Plan(iterations, payload), row, case)


def by_own(plan: Plan, row: Collective, case: Case) -> Plan:
    """Return the plan with the steps of a requested own algorithm instead of the calls."""
    if case.options.own_algorithm is None:
        return plan
    from omb_py.benchmarks.algorithms import own

    return own(plan, case, row.name)


def side(row: Collective, kind: BufferSide, case: Case, parts: tuple[int, ...]) -> Message:
    """Return the message of one side, in memory of its own."""
    if kind is ONE:
        own = row.divided or row.skew(case.options) is not None
        return case.message((parts[case.rank],) if own else None)
    if row.divided == "any":
        return case.message((sum(parts),))
    return case.message(parts, row.form)


def iteration(
    row: Collective,
    case: Case,
    root: int | None,
    send: Message | None,
    recv: Message | None,
    parts: tuple[int, ...],
) -> CheckedIteration:
    """Return one iteration with ``root``: the call, its input and its expected output."""
    here = root is None or case.rank == root
    source: Operand = send if row.rooted not in ("send", "both") or here else None
    target: Operand = recv if row.rooted != "recv" or here else None
    if row.rooted == "both":
        target = send
    elif case.options.in_place and here:
        if row.rooted == "send":
            target = IN_PLACE
        else:
            source, target = IN_PLACE, send if row.divided else recv
    call = Call(
        row.name,
        operands=(target,) if row.rooted == "both" else (source, target),
        root=root,
        op="sum" if row.adds else None,
        counts=parts if row.divided == "any" else None,
    )
    data = target if source is IN_PLACE else source
    inputs = contributions(row, case, data) if isinstance(data, Message) else ()
    outputs = expected_data(row, case, root, target, parts) if isinstance(target, Message) else ()
    return CheckedIteration((call,), inputs=inputs, outputs=outputs)


def contributions(row: Collective, case: Case, data: Message) -> tuple[Content, ...]:
    """Return this rank's input in ``data``, which in place is also where the result goes."""
    me = case.rank
    if row.adds:
        return (Content.of(me, data.memory, added=True),)
    if row.send is EACH:
        return tuple(Content.of(me, block, index) for index, block in enumerate(data.blocks()))
    block = data.blocks()[case.rank] if len(data.counts) == case.ranks > 1 else data.memory
    return (Content.of(me, block),)


def expected_data(
    row: Collective, case: Case, root: int | None, target: Message, parts: tuple[int, ...]
) -> tuple[Content, ...]:
    """Return the expected content of ``target`` after the call."""
    if row.adds:
        sources = row.sources(case.rank, case.ranks)
        if not sources:
            return ()
        if not row.divided:
            return (Content(target.memory, sources, added=True),)
        mine = target.memory.slice(0, parts[case.rank] * case.datatype.itemsize)
        return (Content(mine, sources, start=sum(parts[: case.rank]), added=True),)
    block = case.rank if row.send is EACH else 0
    if row.recv is EACH:
        return tuple(Content.of(rank, memory, block) for rank, memory in enumerate(target.blocks()))
    assert root is not None
    return (Content.of(root, target.memory, block),)


# The timed part of native OMB's programs: osu_allgather.c:159, osu_allgatherv.c:178,
# osu_allreduce.c:163, osu_alltoall.c:169, osu_alltoallv.c:199, osu_alltoallw.c:214,
# osu_barrier.c:97, osu_bcast.c:146, osu_gather.c:159, osu_gatherv.c:178, osu_reduce.c:165,
# osu_reduce_scatter.c:188, osu_reduce_scatter_block.c:181, osu_scatter.c:170, osu_scatterv.c:189.
TABLE = (
    Collective("allgather", "Allgather", ONE, EACH, own=True),
    Collective("allgatherv", "Allgatherv", ONE, EACH, form="v", own=True),
    Collective("allreduce", "Allreduce", ONE, ONE, adds="all", own=True),
    Collective("alltoall", "All-to-All Personalized Exchange", EACH, EACH, own=True),
    Collective("alltoallv", "All-to-Allv Personalized Exchange", EACH, EACH, form="v", own=True),
    Collective("alltoallw", "All-to-Allw Personalized Exchange", EACH, EACH, form="w"),
    Collective("barrier", "Barrier", NOTHING, NOTHING, own=True),
    Collective("bcast", "Broadcast", ONE, NOTHING, rooted="both", own=True),
    Collective("exscan", "Exscan", ONE, ONE, adds="before", native=False),
    Collective("gather", "Gather", ONE, EACH, rooted="recv", own=True),
    Collective("gatherv", "Gatherv", ONE, EACH, rooted="recv", form="v", own=True),
    Collective("reduce", "Reduce", ONE, ONE, rooted="recv", adds="all", own=True),
    Collective("reduce_scatter", "Reduce_scatter", EACH, ONE, adds="all", divided="any", own=True),
    Collective(
        "reduce_scatter_block",
        "Reduce_scatter_block",
        EACH,
        ONE,
        adds="all",
        divided="equal",
        own=True,
    ),
    Collective("scan", "Scan", ONE, ONE, adds="up to", native=False),
    Collective("scatter", "Scatter", EACH, ONE, rooted="send", own=True),
    Collective("scatterv", "Scatterv", EACH, ONE, rooted="send", form="v", own=True),
)

BENCHMARKS = tuple(row.benchmark() for row in TABLE)
