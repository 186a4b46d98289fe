"""Every host of a job measured by itself, in pairs and in halves: the turns of ``omb-py gate``.

Rank 0 sends the ranks of each turn a text with what to measure. No rank waits for a send. Before a
group measures, its ranks answer its first rank: one that does not is left out, and named, and the
others go on. What is suspected is measured again, with other partners, as long as there is time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from math import inf
from typing import Any, TypeAlias

from omb_py.benchmarks import Benchmark, Defaults, find_benchmark
from omb_py.bindings import BINDINGS, Binding
from omb_py.core.dataclass import dataclass, field, replace
from omb_py.core.errors import OmbError, SharedError, UnsupportedError
from omb_py.core.job import Job
from omb_py.core.job.groups import parse_ranks, ranks_text
from omb_py.core.mpi import launcher
from omb_py.core.options import Options
from omb_py.core.text.words import count
from omb_py.measure import devices
from omb_py.measure.benchmark import OneBinding
from omb_py.measure.conditions import examine
from omb_py.measure.gate_turns import (
    HALVES,
    LARGE,
    NODE,
    PAIRS,
    SMALL,
    Case,
    Nodes,
    Stage,
    copied_size,
    halves,
    stages,
)
from omb_py.measure.groups import row_of
from omb_py.measure.launch import Launch
from omb_py.measure.measurement import Measurement
from omb_py.measure.writers import start_writers
from omb_py.results.columns import Row, new_run
from omb_py.results.destinations import file_writer
from omb_py.results.metadata import COMPLETE, TURN, hosts_of_nodes
from omb_py.results.writer import Collector, Writer

PROBE = 64 << 10
"""Bytes of a message by which the large size is chosen."""

LARGE_SECONDS = 0.01
"""Seconds of a large message between two typical nodes at most, by their fastest iteration."""

COPY_SHARE = 0.03
"""Part of the time that a turn of copies takes at most: where many nodes of a test share the cores
of one machine, copies beyond its caches would take all of it."""

EACH_RANK = 8
"""Ranks of a node up to which all of them measure in pairs, as one of each device; of more, the
first one."""

REPEATS = 3
"""Turns that measure again what is suspected."""

SHARE = 0.4
"""Part of the time for iterations, of which each case gets the same; turns cost time, too."""

RESERVE = 0.35
"""Part of the time that is kept for what is suspected."""

SHORTEST, LONGEST = 0.005, 0.3
"""Seconds of one case's iterations."""

PAUSE, LONGEST_PAUSE = 0.0002, 0.02
"""Seconds between two looks for texts, first and at most."""

COUNTS = Defaults(2_000, 10, 50, 0, smallest=SMALL, largest=LARGE)


@dataclass(frozen=True)
class Suspects:
    """Nodes that seem slow by themselves, in pairs and in halves, and pairs that seem slow alone.

    ``sharing`` are nodes that may be slow only with others: pairs among them tell. ``noisy`` is
    true if noise may hide slow ones.
    """

    alone: frozenset[int] = frozenset()
    paired: frozenset[int] = frozenset()
    halves: frozenset[int] = frozenset()
    links: tuple[tuple[int, int], ...] = ()
    sharing: tuple[int, ...] = ()
    noisy: bool = False


@dataclass(frozen=True)
class Measured:
    """A row, and the number of its turn; ``again`` if that measured what had been suspected."""

    row: dict[str, Any]
    nodes: tuple[int, ...]
    turn: int
    again: bool


Suspect: TypeAlias = Callable[[Sequence[Measured]], Suspects]
"""Finds what seems slow in what was measured so far."""


@dataclass(frozen=True)
class Measurements:
    """All that was measured, on rank 0.

    ``absent`` has a sentence for each node that does not answer, ``unclear`` one for nodes of which
    one does not; ``failed`` sentences on what could not be measured; ``done`` one sentence on what
    was, ``left_out`` on what the time did not allow.
    ``lost`` are ranks that may wait for ever, ``lacking`` sentences on benchmarks that the binding
    cannot run.
    """

    measured: list[Measured] = field(default_factory=list)
    absent: dict[int, str] = field(default_factory=dict)
    unclear: dict[tuple[int, ...], str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)


class Team:
    """The ranks of a gate, which measure in groups; texts lead them."""

    def __init__(self, launch: Launch, options: Options, patience: float) -> None:
        """Collective. ``patience`` are the seconds in which a rank has to answer."""
        self.launch, self.options, self.patience = launch, options, patience
        self.job: Job = launch.job
        self.mail = self.job.mailbox()
        self._unread: list[tuple[int, dict[str, Any]]] = []
        self._benchmarks = {one: for_gate(find_benchmark(one)) for one in BENCHMARKS}
        # torch connects all ranks before any group of them
        binding: Binding = BINDINGS.load(options.binding)(self.job.communicator, options)
        self.job.at_end(binding.close)

    def tell(self, rank: int, **what: Any) -> None:
        """Send facts to a rank."""
        if rank == self.job.rank:
            self._unread.append((rank, what))
        else:
            self.mail.send(rank, json.dumps(what))

    def hear(self, wanted: Callable[[int, dict[str, Any]], bool], seconds: float | None) -> Any:
        """Return the first facts that are ``wanted``, with their sender; None after ``seconds``."""
        end = None if seconds is None else time.monotonic() + seconds
        pause = PAUSE
        while True:
            self._unread += [(rank, json.loads(text)) for rank, text in self.mail.receive()]
            for place, (rank, what) in enumerate(self._unread):
                if wanted(rank, what):
                    return self._unread.pop(place)
            if end is not None and time.monotonic() > end:
                return None
            if self.launch.report is not None:
                self.launch.report(0, 0)
            time.sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)

    def follow(self) -> int:
        """Measure what rank 0 asks for, until it ends the gate; return the exit code.

        Raises `SharedError` if rank 0 failed.
        """
        while True:
            _, task = self.hear(lambda rank, what: rank == 0 and "do" in what, None)
            if task["do"] == "end":
                self.mail.close()
                if task["error"]:
                    raise SharedError(task["error"], task["code"])
                return int(task["code"])
            self.take_part(task)

    def take_part(self, task: Mapping[str, Any]) -> None:
        """Measure in a group of one turn, and tell rank 0 what came of it."""
        group, turn = task["group"], task["turn"]
        ranks = parse_ranks(group)
        first = ranks[0]
        absent = self.meet(ranks, turn)
        if absent:
            if self.job.rank == first or absent == [first]:
                self.tell(0, turn=turn, of=group, absent=absent)
            return
        cases = [Case(*one) for one in task["cases"]]
        self.launch.progress(f"measuring {cases[0].benchmark} on ranks {group}")
        error = ""
        lacking: dict[str, str] = {}
        try:
            rows, lacking = self.measure(ranks, turn, cases, task["seconds"])
        except OmbError as failure:
            rows, error = [], str(failure)
        if self.job.rank == first:
            found = {"rows": [vars(row) for row in rows], "error": error, "lacking": lacking}
            self.tell(0, turn=turn, of=group, **found)

    def meet(self, ranks: Sequence[int], turn: int) -> list[int]:
        """Return the ranks of a group that do not answer, or its first one if that does not."""
        first, others = ranks[0], set(ranks[1:])
        if self.job.rank != first:
            self.tell(first, here=turn)
            answer = self.hear(
                lambda rank, what: rank == first and what.get("go") == turn, 2 * self.patience
            )
            return [first] if answer is None else answer[1]["without"]
        end = time.monotonic() + self.patience
        while others:
            found = self.hear(
                lambda rank, what: rank in others and what.get("here") == turn,
                end - time.monotonic(),
            )
            if found is None:
                break
            others.remove(found[0])
        for rank in ranks[1:]:
            self.tell(rank, go=turn, without=sorted(others))
        return sorted(others)

    def measure(
        self, ranks: Sequence[int], turn: int, cases: Sequence[Case], seconds: float
    ) -> tuple[list[Row], dict[str, str]]:
        """Measure some cases on some ranks; collective over these, which returns rows on the first,
        and a sentence for each benchmark that the binding lacks.

        Raises `OmbError` on all of them if another case cannot be measured.
        """
        part = self.job.among(ranks, turn)
        launch = replace(self.launch, job=part)
        rows: list[Row] = []
        lacking: dict[str, str] = {}
        try:
            with part.scope():
                binding: Binding = BINDINGS.load(self.options.binding)(
                    part.communicator, self.options
                )
                part.at_end(binding.close)
                for case in cases:
                    options = replace(self.options, sizes=(case.size,), max_time=seconds)
                    benchmark = self._benchmarks[case.benchmark]
                    one = Measurement(launch, benchmark, options, [binding], part)
                    kind = OneBinding(one, keep=rows.append).kind()
                    (kind.get_ready or one.get_ready)()
                    datatype = one.datatypes[0]
                    (kind.begin_type or one.begin_type)(datatype)
                    try:
                        kind.measure_case(one.case(datatype, case.size, options.window))
                    except SharedError as error:
                        if error.exit_code != UnsupportedError.exit_code:
                            raise
                        lacking[case.benchmark] = str(error)
                    finally:
                        one.close()
        finally:
            part.free()
        return [row.replace(group=ranks_text(ranks)) for row in rows], lacking


BENCHMARKS = ("pack", "allreduce", "latency")


def for_gate(benchmark: Benchmark) -> Benchmark:
    """Return a benchmark with fewer iterations: its time is limited, and a turn should be short."""
    return replace(benchmark, defaults=COUNTS)


class Gate(Team):
    """Rank 0 of a gate, which leads the others."""

    def __init__(
        self, launch: Launch, options: Options, patience: float, nodes: Nodes, end: float
    ) -> None:
        """``nodes`` has the ranks of each node, ``end`` is the time by which to be ready."""
        super().__init__(launch, options, patience)
        self.nodes, self.ready_by = nodes, end
        self.began = time.monotonic()
        self.all = Measurements()
        self.turn = 0
        self.longest: dict[str, float] = {}

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.ready_by - time.monotonic()

    def alive(self, groups: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """Return groups of nodes without absent ones; pairs without partner are none."""
        gone = self.gone
        found = [tuple(one for one in group if one not in gone) for group in groups]
        return [
            one
            for one, group in zip(found, groups, strict=True)
            if one and (len(one) == len(group) or len(one) > 1)
        ]

    def ranks_of(self, stage: Stage, group: Sequence[int]) -> list[list[int]]:
        """Return the ranks that measure in a group of nodes: several sets for a pair of nodes."""
        if stage.split != PAIRS:
            return [sorted(rank for node in group for rank in self.nodes[node])]
        own = [self.nodes[node] for node in group]
        number = min(map(len, own))
        return [sorted(one) for one in zip(*own, strict=False)][
            : number if number <= EACH_RANK else 1
        ]

    def run_turn(
        self,
        stage: Stage,
        groups: Sequence[Sequence[int]],
        seconds: float,
        again: bool,
        keep: KeptResults | None,
    ) -> None:
        """Let groups of nodes measure at the same time, and take their rows."""
        began = time.monotonic()
        self.turn += 1
        if keep is not None:
            keep.begin(self.turn, stage.split)
        sent: dict[str, tuple[int, ...]] = {}
        own: dict[str, Any] | None = None
        known = [one for one in stage.cases if one.benchmark not in self.all.lacking]
        cases = [(one.benchmark, one.size) for one in known]
        if not cases:
            return
        for group in self.alive(groups):
            for ranks in self.ranks_of(stage, group):
                name = ranks_text(ranks)  # short, since each of its ranks is sent it
                sent[name] = tuple(group)
                task: dict[str, Any] = {"do": "measure", "turn": self.turn, "group": name}
                task |= {"cases": cases, "seconds": seconds}
                for rank in ranks:
                    if rank == self.job.rank:
                        own = task
                    else:
                        self.tell(rank, **task)
        if own is not None:
            self.take_part(own)
        rows: list[Measured] = []
        # ranks that miss others in their group say so after their own patience
        end = time.monotonic() + 3 * len(cases) * seconds + 1.5 * self.patience
        while sent:
            found = self.hear(
                lambda _, what: what.get("turn") == self.turn and "of" in what,
                end - time.monotonic(),
            )
            if found is None:
                break
            what = found[1]
            nodes = sent.pop(what["of"], None)
            if nodes is None:
                continue
            if "absent" in what:
                self.lose(what["absent"])
            elif what["error"]:
                self.all.failed.append(f"{stage.words}, ranks {what['of']}: {what['error']}")
            else:
                rows += [Measured(row, nodes, self.turn, again) for row in what["rows"]]
                self.all.lacking.update(what["lacking"])
        for silent, members in sent.items():
            self.silent(stage, parse_ranks(silent), members)
        for one in rows:
            one.row["split"] = stage.split or None
        self.all.measured.extend(rows)
        if keep is not None:
            keep.keep([row_of(one.row) for one in rows])
        spent = time.monotonic() - began
        self.longest[stage.split] = max(self.longest.get(stage.split, 0.0), spent)

    def needed(self, stage: Stage) -> float:
        """Return the most seconds of a turn of a stage so far.

        If none was measured, they are those of the shortest stage: copies take long.
        """
        return self.longest.get(stage.split, min(self.longest.values(), default=0.0))

    def lose(self, ranks: Sequence[int]) -> None:
        """Note that ranks do not answer."""
        for node, members in enumerate(self.nodes):
            if gone := sorted({*ranks} & {*members}):
                names = f"{count(len(gone), 'rank')} of it ({ranks_text(gone)})"
                self.all.absent.setdefault(node, f"does not answer: {names}")
        self.all.lost.extend(ranks)

    def silent(self, stage: Stage, ranks: Sequence[int], nodes: Sequence[int]) -> None:
        """Note that a group began to measure and did not end: which of its nodes is not known."""
        self.all.lost.extend(ranks)
        since = f"since it began to measure {stage.words}"
        if len(nodes) == 1:
            self.all.absent.setdefault(nodes[0], f"does not answer {since}")
        else:
            self.all.unclear[tuple(nodes)] = f"one of them does not answer {since}"

    @property
    def gone(self) -> set[int]:
        """The nodes that may not answer."""
        return {*self.all.absent, *(node for nodes in self.all.unclear for node in nodes)}

    def large_size(self) -> int:
        """Return a message size that the typical pair of nodes sends in `LARGE_SECONDS`.

        `LARGE`, but on slow networks less: a turn should not take a part of the time.
        """
        if len(self.nodes) < 2:
            return LARGE
        (probe,) = stages(self.nodes, (PROBE,), LARGE, 1)[1:2]
        typical, size = self.probed(probe), LARGE
        while size > PROBE and typical * size / PROBE > LARGE_SECONDS:
            size //= 4
        return size

    def copy_size(self) -> int:
        """Return the bytes of a rank's copy: beyond caches, if that takes `COPY_SHARE` at most."""
        size, largest = LARGE, copied_size(max(map(len, self.nodes)))
        if len(self.nodes) == 1:  # it shares its cores with no other one
            return largest
        whole = self.left
        while size < largest:
            (local, *_) = stages(self.nodes, (SMALL,), size, 1)
            began = time.monotonic()
            self.probed(replace(local, cases=local.cases[:1]))
            if 4 * (time.monotonic() - began) > COPY_SHARE * whole:
                return size
            size = min(4 * size, largest)
        return size

    def probed(self, stage: Stage) -> float:
        """Return the seconds that a stage takes on the typical node or pair, 0 if none tells."""
        self.run_turn(stage, stage.turns[0], 10 * SHORTEST, False, None)
        times = sorted(one.row.get("sample_min_us") or inf for one in self.all.measured)
        self.all.measured.clear()
        return times[len(times) // 2] / 1e6 if times else 0.0

    def lead(
        self, sizes: Sequence[int] | None, partners: int, suspect: Suspect, keep: KeptResults
    ) -> Measurements:
        """Measure all stages, then again what is suspected; return all that came of it."""
        copied = self.copy_size()
        plan = stages(self.nodes, sizes or (SMALL, self.large_size()), copied, partners)
        slots = sum(len(one.cases) * len(one.turns) for one in plan)
        whole = self.left
        seconds = min(LONGEST, max(SHORTEST, SHARE * (1 - RESERVE) * whole / slots))
        more: list[tuple[Stage, Any]] = []
        for place, stage in enumerate(plan):
            done = 0
            rest = plan[place + 1 :]
            for groups in stage.turns:
                later = sum(min(2, len(one.turns)) * self.needed(one) for one in rest)
                needed = self.needed(stage) + later + RESERVE * whole
                if done >= min(2, len(stage.turns)) and self.left < needed:
                    break
                self.run_turn(stage, groups, seconds, False, keep)
                done += 1
            more += [(stage, turn) for turn in (*stage.turns[done:], *stage.turns[:done])]
            what = f"{stage.words}: {done} of {count(len(stage.turns), 'turn')}"
            (self.all.done if done == len(stage.turns) else self.all.left_out).append(what)
        found = self.judged(suspect)
        if found == Suspects(noisy=True):
            # pairs come before nodes, and those that were left out first
            more.sort(key=lambda one: one[0].split == NODE)
            for stage, groups in cycle(one for one in more if one[0].split in (NODE, PAIRS)):
                each = (time.monotonic() - self.began) / self.turn
                if self.left < 2 * REPEATS * each:
                    break
                self.run_turn(stage, groups, seconds, False, keep)
            found = self.judged(suspect)
        self.repeat(plan, found, seconds, keep)
        return self.all

    def judged(self, suspect: Suspect) -> Suspects:
        """Return what seems slow so far."""
        with self.launch.working("judging what was measured"):
            return suspect(self.all.measured)

    def end(self, code: int, error: OmbError | None) -> None:
        """End the gate on all ranks with an exit code, or an error.

        Where a rank does not answer, the others cannot leave MPI: the job is aborted.
        """
        if self.all.lost:
            if error is not None:
                launcher.say(str(error))
            sys.stdout.flush()
            time.sleep(launcher.SECONDS_TO_BE_HEARD)
            self.job.abort(code if error is None else error.exit_code)
        text = "" if error is None else str(error)
        code = code if error is None else error.exit_code
        for rank in range(1, self.job.ranks):
            self.tell(rank, do="end", code=code, error=text)
        self.mail.close()
        if error is not None:
            raise SharedError(text, code)

    def repeat(
        self, plan: Sequence[Stage], found: Suspects, seconds: float, keep: KeptResults
    ) -> None:
        """Measure again what is suspected, each at most `REPEATS` times, while there is time."""
        by_split = {stage.split: stage for stage in plan}
        partners = self.fresh_pairs(found)
        inside = pairs_among(found.sharing)
        order = [*range(1, len(self.nodes), 2), *range(0, len(self.nodes), 2)]
        splits = [*halves(order)] if found.halves else []
        tasks: list[tuple[str, Sequence[Sequence[int]]]] = []
        for number in range(REPEATS):
            if found.alone:
                tasks.append((NODE, [(node,) for node in range(len(self.nodes))]))
            if found.paired or found.links:
                tasks.append((PAIRS, next(partners)))
            if inside and number == 0:
                tasks.append((PAIRS, inside))
        tasks += [(HALVES, split) for split in splits]
        for done, (split, groups) in enumerate(tasks):
            if self.left < self.needed(by_split[split]):
                left = len(tasks) - done
                self.all.left_out.append(f"{count(left, 'turn')} that would have confirmed")
                return
            self.run_turn(by_split[split], groups, seconds, True, keep)

    def fresh_pairs(self, found: Suspects) -> Iterator[list[tuple[int, int]]]:
        """Yield pairs of all nodes in which each suspected node has another, healthy partner.

        Slow links are measured as they are, in the same turn.
        """
        number, turn = len(self.nodes), 0
        while True:
            left = [node for node in range(number) if node not in self.gone]
            pairs: list[tuple[int, int]] = []
            for link in found.links:
                if {*link} <= {*left}:
                    pairs.append(link)
                    left = [node for node in left if node not in link]
            suspects = [node for node in left if node in found.paired]
            healthy = [node for node in left if node not in found.paired]
            shift = (turn * max(1, len(healthy) // REPEATS)) % max(1, len(healthy))
            healthy = healthy[shift:] + healthy[:shift]
            both = min(len(suspects), len(healthy))
            pairs += zip(suspects, healthy[:both], strict=False)
            rest = healthy[both:] + suspects[both:]
            pairs += zip(rest[::2], rest[1::2], strict=False)
            turn += 1
            yield [tuple(sorted(one)) for one in pairs]  # type: ignore[misc]


def pairs_among(nodes: Sequence[int]) -> list[tuple[int, int]]:
    """Return disjoint pairs of some nodes."""
    return [*zip(nodes[::2], nodes[1::2], strict=False)]


class KeptResults:
    """The file of what a gate measures, and the hosts of its nodes; on rank 0."""

    def __init__(
        self, run: str, hosts: Sequence[str], writers: Sequence[Writer[Row]], facts: Collector
    ) -> None:
        """``hosts`` are the names of nodes, ``facts`` keeps the metadata."""
        self.run, self.hosts = run, [*hosts]
        self._writers, self._facts = writers, facts

    @property
    def runs(self) -> dict[str, dict[str, str]]:
        """The metadata of the run."""
        return self._facts.runs

    def begin(self, turn: int, split: str) -> None:
        """Note which turn begins: if the job ends in it, the file tells."""
        self._amend(f"{turn} {split}".strip())

    def _amend(self, turn: str) -> None:
        for writer in self._writers:
            writer.amend(self.run, {TURN: turn})

    def keep(self, rows: Sequence[Row]) -> None:
        """Write the rows of a turn."""
        for writer in self._writers:
            writer.together([row.replace(run=self.run) for row in rows])

    def finish(self) -> None:
        """Note that no more rows come."""
        self._amend(COMPLETE)
        for writer in self._writers:
            writer.finish()


def open_results(launch: Launch, options: Options) -> KeptResults:
    """Look at the hosts of a job, and open its file of results on rank 0; collective."""
    job, device = launch.job, launch.buffer.device
    examined = examine(job, devices.word(device), device.identity if device else "")
    job.note(job.oversubscription(examined.nodes), *examined.notes)
    run, facts = new_run(), Collector()

    def opened() -> list[Writer[Any]]:
        if options.output is None:
            return [facts]
        try:
            return [facts, file_writer(options.output, Row, options.force)]
        except OmbError as error:
            raise type(error)(str(error).replace("--output", "--results")) from error

    wanted = replace(options, format="csv")  # all metadata
    writers = start_writers(launch, wanted, run, examined.nodes, opened, (), examined.metadata)
    names = hosts_of_nodes(facts.runs.get(run, {}))
    return KeptResults(run, names, writers, facts)
