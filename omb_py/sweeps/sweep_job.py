"""A sweep on a machine as a command line asks for it, and the batch jobs that measure it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from omb_py.core.errors import UsageError
from omb_py.core.text.words import count
from omb_py.sweeps import catalog
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.machine import JobSettings, Machine
from omb_py.sweeps.points import SweepPlan, SweepPoint, plan
from omb_py.sweeps.quoting import file_name
from omb_py.sweeps.schedulers import SCHEDULERS, Scheduler
from omb_py.sweeps.toml import read, reason

LONGEST_TITLE = 15
"""The most characters that every scheduler takes as the name of a job (POSIX `qsub -N`)."""


SETTINGS = ("account", "queue", "walltime", "chain", "filesystems")
"""Keys of a machine's [job] that are options of the command line as well."""

NO_POINTS = SweepPlan((), ())


@dataclass(frozen=True)
class SweepJob:
    """A sweep on a machine, or its part on ``nodes`` nodes: the points of a script or one start.

    ``sweep_word`` and ``machine_word`` are the command line's words for the two configurations.
    ``plan`` has the points of all jobs, and the points left out; ``nodes`` are those of this job's
    points, None if it has all points. ``folder`` is the sweep's, None for the default. ``wishes``
    are its options, and ``queue`` a queue among them whose limits the sweep has to know.
    """

    sweep: Sweep
    machine: Machine
    sweep_word: str
    machine_word: str
    plan: SweepPlan = NO_POINTS
    nodes: int | None = None
    folder: Path | None = None
    wishes: tuple[str, ...] = ()
    queue: str | None = None

    @property
    def size(self) -> int:
        """The nodes to ask for: those of its largest point, of the largest job without points."""
        return self.nodes or max(self.plan.node_counts, default=self.machine.max_nodes)

    @property
    def settings(self) -> JobSettings:
        """The resources to request; a queue with directives is named only by these."""
        settings, queue = self.machine.job, self.machine.queue
        settings = settings.model_copy(update={"chain": self.machine.chain})
        if queue is None or not queue.directives:
            return settings
        directives = (*queue.directives, *settings.directives)
        return settings.model_copy(update={"queue": None, "directives": directives})

    @property
    def scheduler(self) -> Scheduler:
        """Batch scheduler of the machine."""
        found = self.machine.batch_scheduler
        assert found is not None  # `check` refuses a machine without one
        return found

    @property
    def name(self) -> str:
        """The name of the script and its list of jobs in the sweep's folder."""
        return file_name(f"{self.sweep.name}{self.part}")

    @property
    def part(self) -> str:
        """The part of the script's name that distinguishes jobs on other numbers of nodes."""
        return "" if self.nodes is None else f"-{self.nodes}-node{'' if self.nodes == 1 else 's'}"

    @property
    def file_name(self) -> str:
        """The name of the script among those of other machines."""
        return file_name(f"{self.sweep.name}-{self.machine.name}{self.part}.sh")

    @property
    def root(self) -> Path:
        """Folder of the sweep, where scripts, rows and logs are."""
        return self.folder or Path("sweeps", file_name(f"{self.sweep.name}-{self.machine.name}"))

    @property
    def script(self) -> Path:
        """The script that its jobs keep next to the results, and submit."""
        return self.root / "jobs" / f"{self.name}.sh"

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        """Points that the job measures."""
        return self.plan.on(self.nodes).points

    @property
    def missing(self) -> list[SweepPoint]:
        """The points with a missing row."""
        folder = Folder(self.root)
        return [point for point in self.points if folder.missing(point)]

    @property
    def words(self) -> tuple[str, ...]:
        """The words for the sweep, its machine and its folder on a command line."""
        return (self.sweep_word, "--machine", self.machine_word, *self.wishes)

    @property
    def by_hand(self) -> str:
        """The command by which a person submits the script as it is, from the current folder."""
        return f"{self.scheduler.by_hand} {shlex.quote(str(self.script))}"

    @property
    def submit_command(self) -> str:
        """The command by which a person goes on with the script as it is, from anywhere."""
        return f"cd {shlex.quote(str(Path.cwd()))} && {self.by_hand}"

    @property
    def show_command(self) -> str:
        """The command that shows the results."""
        if all(point.is_application for point in self.points):
            return f"omb-py show {self.root} --speedup"
        return f"omb-py report {self.root}"

    @property
    def title(self) -> str:
        """The job's name for the scheduler: at most 15 characters, the first of them a letter."""
        part = "" if self.nodes is None else f"-{self.nodes}n"
        name = self.sweep.name if self.sweep.name[:1].isalpha() else f"s{self.sweep.name}"
        return f"{name[: LONGEST_TITLE - len(part)]}{part}"

    @property
    def command(self) -> str:
        """The command line that makes this script."""
        part = [] if self.nodes is None else ["--nodes", str(self.nodes)]
        part += ["--one-job"] if not part and len(self.plan.node_counts) > 1 else []
        words = [*self.words[:3], *part, *self.wishes]
        return shlex.join(["omb-py", "job", "render", *words])

    def shortage(self, larger: Sequence[SweepPoint], nodes: int | None) -> str:
        """Return why points that need more than ``nodes`` nodes cannot run, with the remedy.

        Empty without such a point.
        """
        if not larger:
            return ""
        counts = sorted({point.nodes for point in larger})
        needed = f"{' and '.join(map(str, counts))} nodes needed"
        have = count(nodes or 0, "node")
        if self.machine.host_file:
            return f"{needed}, {self.machine.host_file} names {have}: add hosts to it"
        choice = f"--nodes {counts[0]}" if len(counts) == 1 else "--one-job"
        submit = shlex.join(["omb-py", "job", "submit", *self.words])
        return f"{needed}, this job has {have}: ask for more by {submit} {choice}"

    def on(self, nodes: int | None) -> SweepJob:
        """Return the part on ``nodes`` nodes, all of it for None; raises `UsageError` without a
        point."""
        have = self.plan.node_counts
        if nodes is not None and nodes not in have:
            raise UsageError(
                f"sweep {self.sweep.name} has no point on {count(nodes, 'node')} of "
                f"{self.machine.name} (it has on {', '.join(map(str, have))})"
            )
        return replace(self, nodes=nodes)


def find(
    sweep: str,
    machine: str | None,
    folder: Path | None = None,
    scheduled: bool = True,
    **settings: str | None,
) -> SweepJob:
    """Return a sweep on a machine by their words, with other ``settings`` of jobs than the
    machine's.

    ``scheduled``: by the jobs of a batch scheduler. Raises `UsageError` for invalid arguments.
    """
    if machine is None:
        raise UsageError("name the machine: --machine MACHINE")
    asked, where = read(catalog.find("sweeps", sweep), Sweep), find_machine(machine, **settings)
    given = [(name, value) for name in SETTINGS if (value := settings.get(name)) is not None]
    words = [word for name, value in given for word in (f"--{name}", value)]
    words += [] if folder is None else ["--folder", str(folder)]
    if scheduled:
        check(where)
    return SweepJob(
        sweep=asked,
        machine=where,
        sweep_word=argument(sweep),
        machine_word=argument(machine),
        plan=plan(asked, where),
        folder=folder,
        wishes=tuple(words),
        queue=settings.get("queue") if where.queue is not None else None,
    )


def find_machine(word: str, **settings: str | None) -> Machine:
    """Return a machine by name or path, with ``settings`` of its jobs; raises `UsageError`."""
    given: dict[str, Any] = {name: one for name, one in settings.items() if one is not None}
    if "filesystems" in given:
        given["filesystems"] = given["filesystems"].replace(":", ",").split(",")
    return with_settings(read(catalog.find("machines", word), Machine), given)


def divide(job: SweepJob, nodes: int | None, one_job: bool) -> list[SweepJob]:
    """Return the jobs of a sweep: one for each number of nodes, to wait only for the nodes needed.

    ``nodes`` chooses one number, ``one_job`` makes one job for all, on as many nodes as the largest
    point takes; so does a queue that takes fewer jobs of a user. Raises `UsageError` when there is
    no such point, or the queue takes no job of this walltime on the nodes.
    """
    counts, queue = job.plan.node_counts, job.machine.queue
    if queue is not None and queue.max_queued is not None:
        # While a job runs it submits the next.
        one_job |= len(counts) + (job.machine.chain == "resubmit") > queue.max_queued
    found = [job.on(number) for number in (counts if nodes is None else (nodes,))]
    if len(counts) == 1 or (one_job and nodes is None):
        found = [job]
    for one in found:
        one.machine.check_walltime(one.size)
    return found


def check(machine: Machine) -> None:
    """Raise `UsageError` if the machine's description of jobs is incomplete or invalid.

    It has no scheduler, or the scheduler does not know a resource that it requests.
    """
    if machine.scheduler not in SCHEDULERS:
        raise UsageError(
            f"machine {machine.name} has no scheduler: run omb-py sweep itself, or set scheduler "
            f"in its configuration to one of {', '.join(SCHEDULERS)}"
        )
    scheduler = SCHEDULERS[machine.scheduler]
    for setting in ("select", "attributes", "filesystems"):
        if getattr(machine.job, setting) and setting not in scheduler.settings:
            raise UsageError(f"machine {machine.name}: {scheduler.title} knows no job.{setting}")


def without_account(machine: Machine) -> str:
    """Return why the scheduler refuses jobs without an account, with the remedy; else empty."""
    if machine.job.account or not machine.job.account_required:
        return ""
    return (
        f"machine {machine.name} takes no job without an account: add --account PROJECT, or set "
        "account in [job] of its file"
    )


def with_settings(machine: Machine, given: Mapping[str, str | Sequence[str]]) -> Machine:
    """Return the machine with other settings of its jobs, checked as in a configuration.

    Raises `UsageError`.
    """
    try:
        settings = JobSettings.model_validate(
            {**machine.job.model_dump(exclude_unset=True), **given}
        )
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise UsageError(f"--{fault['loc'][0]}: {reason(fault)}") from error
    return machine.model_copy(update={"job": settings})


def argument(word: str) -> str:
    """Return a configuration's name or path as a word that is not an option, with any dash."""
    return f"./{word}" if word.startswith("-") else word
