"""Every pair of ranks: which link is slow.

Pairs are measured in rounds. In a round every rank has at most one partner: a round-robin
tournament by the circle method (T. P. Kirkman, 1847; Lucas, Recreations mathematiques 2, 1883).
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from math import nan
from typing import Literal, TypeAlias

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Defaults, Metric, Plan, Ranks
from omb_py.bindings import BINDINGS, Binding
from omb_py.core.calls import Step, addressed
from omb_py.core.calls.loop import Pace
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.errors import UsageError
from omb_py.core.job import Job, first_ranks
from omb_py.core.options import Options
from omb_py.core.statistics import percentile
from omb_py.core.text.words import count
from omb_py.measure import devices
from omb_py.measure.adapted import check_binding_options
from omb_py.measure.conditions import CPU, SYS, content
from omb_py.measure.launch import Launch
from omb_py.measure.measurement import Kind, Measurement
from omb_py.measure.progress import Progress
from omb_py.measure.rows import MEGABYTE, MICROSECONDS, of_case
from omb_py.measure.sampling import run_counted
from omb_py.measure.turns import turns
from omb_py.results.columns import PairRow
from omb_py.results.destinations import writers_of

Unit: TypeAlias = Literal["rank", "node", "socket", "device"]
"""The unit of a rank: itself, or its node, socket or device, whose first rank it is."""

Round: TypeAlias = Sequence[tuple[int, int]]
"""Disjoint pairs, each of a sender and a receiver."""

UNITS: tuple[Unit, ...] = ("rank", "node", "socket", "device")

MOST_ROUNDS = 255
"""Rounds by default: all pairs of 256 ranks. Of more ranks, each meets so many others."""

LATENCY = Defaults(200, 20, 50, 5, smallest=8, largest=4096)
BANDWIDTH = Defaults(10, 2, 5, 1, smallest=65536, largest=1 << 20)
"""Iterations by default, and the two message sizes: few, since there are many pairs."""

PACKAGE = f"{SYS}/{CPU}/cpu{{}}/topology/physical_package_id"


@dataclass(frozen=True)
class PairsRequest:
    """The choice of pairs and of their measurement.

    ``by`` is the unit of a row of the matrix; ``alone`` leaves all other links idle; ``rounds`` is
    the maximum number of rounds of the tournament to measure; ``repeats`` is the number of repeats
    of all measurements.
    """

    by: Unit = "rank"
    alone: bool = False
    rounds: int | None = None
    repeats: int = 3


def has_pairs(benchmark: Benchmark) -> bool:
    """Return whether a benchmark is of two ranks that send to each other, one thread each."""
    return (
        benchmark.family == "point-to-point"
        and benchmark.ranks is Ranks.TWO
        and not benchmark.options & {"threads", "processes"}
    )


def for_pairs(benchmark: Benchmark) -> Benchmark:
    """Return a benchmark of two ranks as it runs on pairs of many."""
    latency = benchmark.metric is Metric.LATENCY
    return replace(
        benchmark,
        ranks=Ranks.SEVERAL,
        options=benchmark.options - {"placement"},  # a rank is either end in turn
        defaults=LATENCY if latency else BANDWIDTH,
    )


def tournament(units: int) -> list[list[tuple[int, int]]]:
    """Return rounds in which each of ``units`` meets every other once; of an odd number, one rests.

    >>> tournament(4)
    [[(0, 3), (1, 2)], [(0, 2), (3, 1)], [(0, 1), (2, 3)]]
    """
    places: list[int | None] = [*range(units), *([None] if units % 2 else [])]
    found = []
    for _ in range(len(places) - 1):
        half = len(places) // 2
        both = zip(places[:half], reversed(places[half:]), strict=True)
        found.append([(a, b) for a, b in both if a is not None and b is not None])
        places = [places[0], places[-1], *places[1:-1]]
    return found


def chosen_rounds(units: int, rounds: int | None, alone: bool) -> list[Round]:
    """Return the rounds that are measured, in both directions, each pair by itself if ``alone``.

    ``rounds`` of the tournament at most, evenly spread over it.
    """
    whole = tournament(units)
    limit = min(len(whole), MOST_ROUNDS if rounds is None else rounds)
    spread = [whole[index * len(whole) // limit] for index in range(limit)]
    if alone:
        spread = [[pair] for one in spread for pair in one]
    return [
        direction
        for one in spread
        for direction in (one, [(second, first) for first, second in one])
    ]


def kind_of_pairs(
    request: PairsRequest, launch: Launch, benchmark: Benchmark, options: Options
) -> Kind:
    """Return the measurement of pairs of ranks; collective.

    Raises `UsageError` for an option that the binding has no use for.
    """
    check_binding_options(options, (options.binding,))
    binding: Binding = BINDINGS.load(options.binding)(launch.job.communicator, options)
    launch.job.at_end(binding.close)
    pairs = Pairs(Measurement(launch, benchmark, options, [binding]), request)
    return Kind(
        pairs.measurement,
        pairs.measure_case,
        partial(writers_of, PairRow, None, options),
        get_ready=pairs.get_ready,
    )


class Pairs:
    """A benchmark of two ranks, on pairs of many; its methods are collective."""

    def __init__(self, measurement: Measurement, request: PairsRequest) -> None:
        self.measurement = measurement
        self.benchmark, self.options = measurement.benchmark, measurement.options
        self.job = measurement.job
        (self._binding,) = measurement.bindings
        self._request = request
        self._members: tuple[int, ...] = ()
        self._hosts: list[str] = []
        self._rounds: list[Round] = []

    def get_ready(self) -> None:
        """Choose the rounds of pairs, then as `Measurement.get_ready`."""
        request, job, measurement = self._request, self.job, self.measurement
        job.check_launcher()
        device = devices.word(measurement.launch.buffer.device)
        self._members = members(job, request.by, device)
        self._hosts = job.host_of_each_rank()
        units = len(self._members)
        if units < 2:
            place = (
                ""
                if request.by == "rank"
                else f", and {count(job.ranks, 'rank')} on 1 {request.by} are one: choose another "
                "--by"
            )
            raise UsageError(
                f"pairs needs two {request.by}s or more{place or ': start more of them'}"
            )
        self._rounds = chosen_rounds(units, request.rounds, request.alone)
        measured = sum(map(len, self._rounds)) // 2
        if measured < units * (units - 1) // 2:
            job.note(
                f"{measured} of {units * (units - 1) // 2} pairs are measured, in which each "
                f"{request.by} meets {2 * measured // units} others: --rounds {units - 1} measures "
                "all"
            )
        measurement.get_ready()

    def measure_case(self, case: Case) -> None:
        """Measure one message size on all pairs, and write their rows together."""
        measurement, repeats = self.measurement, self._request.repeats
        iterations, warmup = self.benchmark.counts(self.options, case.size)
        plans = [measurement.plan(replace(case, rank=end, ranks=2))[0] for end in (0, 1)]
        found: dict[tuple[int, int], list[array[float]]] = {}
        progress = Progress(repeats * len(self._rounds), "rounds", self.job.rank)
        for done, (_, number) in enumerate(turns(repeats, len(self._rounds)), 1):
            progress.over(done - 1, f"measuring messages of {case.size} bytes")
            what = (self._rounds[number], plans, iterations, warmup)
            for sent in measurement.unstopped(case, partial(self._measure_round, *what))[0]:
                found.setdefault((int(sent[0]), int(sent[1])), []).append(sent[2:])
            if measurement.report is not None:
                measurement.report(done, repeats * len(self._rounds))
        with self.job.agreement():
            rows = [self._row(case, pair, times, plans[0]) for pair, times in found.items()]
            for writer in measurement.writers:
                writer.together(rows)

    def _measure_round(
        self, pairs: Round, plans: Sequence[Plan], iterations: int, warmup: int
    ) -> Iterator[array[float]]:
        """Return sender, receiver and statistics in seconds of a round's pairs, on rank 0.

        Collective; ranks without a partner wait.
        """
        job = self.job
        mine = self._part(pairs)
        loop = None
        with job.agreement():
            if mine is not None:
                end, both = mine
                addressed_calls = [to_ranks(iteration, both) for iteration in plans[end].iterations]
                devices.check(self._binding, addressed_calls, self.options)
                loop = self._binding.loop(addressed_calls, Pace(barrier=False))
        job.barrier()
        sent = array("d")
        with self.measurement.iterating():
            if loop is not None and mine is not None:
                seconds = sorted(run_counted(loop, 0, warmup, iterations))
                end, both = mine
                if plans[end].timed:
                    middle, tail = (percentile(seconds, percent) for percent in (50, 99))
                    sent = array("d", [*both, middle, seconds[0], tail])
            received = job.gather(sent.tobytes())  # a rank that rests waits here
        self._binding.release()
        return (array("d", data) for data in received if data)

    def _part(self, pairs: Round) -> tuple[int, tuple[int, int]] | None:
        """Return this rank's end of a pair, and both ranks; None for one that rests."""
        for first, second in pairs:
            both = self._members[first], self._members[second]
            if self.job.rank in both:
                return both.index(self.job.rank), both
        return None

    def _row(
        self, case: Case, pair: tuple[int, int], times: list[array[float]], plan: Plan
    ) -> PairRow:
        """Return the row of a pair, from its statistics in each repeat."""
        options, benchmark = self.options, self.benchmark
        scale = MICROSECONDS / benchmark.round_trips(options)
        middle, tail = (
            percentile(sorted(one[place] for one in times), 50) * scale for place in (0, 2)
        )
        latency = benchmark.metric is Metric.LATENCY
        iterations, warmup = benchmark.counts(options, case.size)
        moved = plan.messages * plan.payload / MEGABYTE
        return PairRow(
            **of_case(self.measurement.run_name, benchmark, case),
            binding=options.binding,
            sender=pair[0],
            receiver=pair[1],
            sender_host=self._hosts[pair[0]],
            receiver_host=self._hosts[pair[1]],
            latency_us=middle if latency else None,
            bandwidth_MBps=None if latency else moved / (middle / MICROSECONDS) if middle else nan,
            median_us=middle,
            min_us=min(one[1] for one in times) * scale,
            p99_us=tail,
            iterations=iterations,
            warmup=warmup,
            repeats=len(times),
            by=self._request.by,
            alone=self._request.alone,
        )


def to_ranks(iteration: CheckedIteration, ranks: Sequence[int]) -> CheckedIteration:
    """Return an iteration between ranks 0 and 1 as one between two ranks of the job."""

    def moved(steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(addressed(step, ranks) for step in steps)

    return replace(
        iteration,
        steps=moved(iteration.steps),
        before=moved(iteration.before),
        after=moved(iteration.after),
        setup=moved(iteration.setup),
        teardown=moved(iteration.teardown),
    )


def members(job: Job, by: Unit, device: str) -> tuple[int, ...]:
    """Return the first rank of each unit, ordered by node; collective.

    ``device`` is this rank's in a word. Raises `UsageError` if ranks have no device, or the system
    does not say on which socket they are.
    """
    node = first_ranks(job)
    own = ""
    if by == "device":
        own = device
        if job.total(int(device == "-")):
            raise UsageError(
                "--by device: the buffer has no device: choose one, as in --buffer cupy"
            )
    if by == "socket":
        own = socket()
        if job.total(int(not own)):
            raise UsageError("--by socket: the system does not say which socket a core is on")
    words = job.allgather((str(job.rank) if by == "rank" else own).encode())
    first: dict[tuple[int, bytes], int] = {}
    for rank, key in enumerate(zip(node, words, strict=True)):
        first.setdefault(key, rank)
    return tuple(sorted(first.values(), key=lambda rank: (node[rank], rank)))


def socket() -> str:
    """Return the socket of the first core that this process may run on; empty if unknown."""
    return content(PACKAGE.format(min(os.sched_getaffinity(0))))
