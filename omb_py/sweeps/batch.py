"""The batch jobs of a sweep: what each of them measures, and where its files are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from omb_py.core.errors import UsageError
from omb_py.core.text.words import count
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.machine import JobSettings, Machine
from omb_py.sweeps.points import Plan, Point, plan
from omb_py.sweeps.quoting import file_name
from omb_py.sweeps.scheduler import Scheduler
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.toml import reason

LONGEST_TITLE = 15
"""The most characters that every scheduler takes as the name of a job (POSIX `qsub -N`)."""

NO_POINTS = Plan((), ())


@dataclass(frozen=True)
class Job:
    """One batch script: a sweep on a machine, or its part on so many nodes.

    ``sweep_word`` and ``machine_word`` are what the command line calls the two configurations.
    ``nodes`` are asked for; ``only`` is true when points on other numbers of nodes are left to
    other jobs. ``folder`` is the sweep's, None for the usual one. ``wishes`` are the options that
    the script was made with, for its header, and ``queue`` a queue among them whose limits the
    sweep has to know. ``profile``: the sweep is told to profile applications, by ``library`` where
    that is named. ``plan`` has the points of all the jobs, and what none of them measures.
    """

    sweep: Sweep
    machine: Machine
    sweep_word: str
    machine_word: str
    nodes: int
    counts: tuple[int, ...]
    only: bool = False
    folder: Path | None = None
    wishes: tuple[str, ...] = ()
    queue: str | None = None
    profile: bool = False
    library: str | None = None
    plan: Plan = NO_POINTS

    @property
    def settings(self) -> JobSettings:
        """What is asked for; a queue that has directives of its own is named by these alone."""
        settings, queue = self.machine.job, self.machine.queue
        settings = settings.model_copy(update={"chain": self.machine.chain})
        if queue is None or not queue.directives:
            return settings
        directives = (*queue.directives, *settings.directives)
        return settings.model_copy(update={"queue": None, "directives": directives})

    @property
    def scheduler(self) -> Scheduler:
        """The machine's."""
        found = self.machine.batch_scheduler
        assert found is not None  # `check` refuses a machine without one
        return found

    @property
    def name(self) -> str:
        """What the script and its list of jobs are called in the sweep's folder."""
        part = f"-{self.nodes}-node{'' if self.nodes == 1 else 's'}" if self.only else ""
        return file_name(f"{self.sweep.name}{part}")

    @property
    def file_name(self) -> str:
        """What the script is called among those of other machines."""
        part = self.name.removeprefix(self.sweep.name)
        return file_name(f"{self.sweep.name}-{self.machine.name}{part}.sh")

    @property
    def root(self) -> Path:
        """The sweep's folder."""
        return self.folder or Path("sweeps", file_name(f"{self.sweep.name}-{self.machine.name}"))

    @property
    def script(self) -> Path:
        """The script that its jobs keep beside the results, and submit."""
        return self.root / "jobs" / f"{self.name}.sh"

    @property
    def points(self) -> tuple[Point, ...]:
        """The points that it measures."""
        return self.plan.on(self.nodes if self.only else None).points

    @property
    def missing(self) -> list[Point]:
        """Those of which a row is missing."""
        folder = Folder(self.root)
        return [point for point in self.points if folder.missing(point)]

    @property
    def words(self) -> tuple[str, ...]:
        """What names the sweep, its machine and its folder on a command line."""
        return (self.sweep_word, "--machine", self.machine_word, *self.wishes)

    @property
    def submit_command(self) -> str:
        """The command by which a person goes on with the script as it is, from anywhere."""
        here = shlex.quote(str(Path.cwd()))
        return f"cd {here} && omb-py job submit {shlex.quote(str(self.script))}"

    @property
    def title(self) -> str:
        """The job's name for the scheduler: at most 15 characters, the first of them a letter."""
        part = f"-{self.nodes}n" if self.only else ""
        name = self.sweep.name if self.sweep.name[0].isalpha() else f"s{self.sweep.name}"
        return f"{name[: LONGEST_TITLE - len(part)]}{part}"

    @property
    def command(self) -> str:
        """The command line that makes this script."""
        part = ["--nodes", str(self.nodes)] if self.only else []
        part += ["--one-job"] if not self.only and len(self.counts) > 1 else []
        words = [*self.words[:3], *part, *self.wishes]
        return shlex.join(["omb-py", "job", "render", *words])


def jobs(job: Job, nodes: int | None, one_job: bool) -> list[Job]:
    """The jobs of a sweep: one for each number of nodes, so that none waits for more than it needs.

    ``nodes`` chooses one number, ``one_job`` makes one job for all, on as many nodes as the largest
    point takes; so does a queue that does not take so many jobs of a user. Raises `UsageError`
    when there is no such point, or the queue takes no job of this walltime on so many nodes.
    """
    found = divided(job, nodes, one_job)
    for one in found:
        check_walltime(one.machine, one.nodes)
    return found


def divided(job: Job, nodes: int | None, one_job: bool) -> list[Job]:
    """The jobs that `jobs` returns, whatever their walltime."""
    if nodes is not None and nodes not in job.counts:
        have = ", ".join(str(number) for number in job.counts)
        raise UsageError(
            f"sweep {job.sweep.name} has no point on {count(nodes, 'node')} of {job.machine.name} "
            f"(it has on {have})"
        )
    queue = job.machine.queue
    if queue is not None and queue.max_queued is not None:
        # While a job runs it submits the next.
        one_job |= len(job.counts) + (job.machine.chain == "resubmit") > queue.max_queued
    if len(job.counts) == 1 or (one_job and nodes is None):
        return [replace(job, nodes=max(job.counts))]
    chosen = job.counts if nodes is None else (nodes,)
    return [replace(job, nodes=number, only=True) for number in chosen]


def node_count(sweep: Sweep, script: str) -> int | None:
    """The number of nodes on which a script's points are, by its name; None for all."""
    found = re.fullmatch(rf"{re.escape(file_name(sweep.name))}-(\d{{1,9}})-nodes?", script)
    return int(found[1]) if found else None


def plan_jobs(sweep: Sweep, machine: Machine) -> Plan:
    """The points that jobs measure, and what they leave out; raises as `check` does."""
    check(machine)
    return plan(sweep, machine)


def check(machine: Machine) -> None:
    """Raise `UsageError` when a machine cannot have jobs as it describes them.

    It has no scheduler, or what it asks for is not known there.
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


def check_walltime(machine: Machine, nodes: int) -> None:
    """Raise `UsageError` when its queue takes no job of this walltime on so many nodes."""
    try:
        machine.check_walltime(nodes)
    except ValueError as error:
        raise UsageError(str(error)) from error


def without_account(machine: Machine) -> str:
    """Why the scheduler will refuse jobs that name no account, and what to do; empty if not."""
    if machine.job.account or not machine.job.account_required:
        return ""
    return (
        f"machine {machine.name} takes no job without an account: add --account PROJECT, or set "
        "account in [job] of its file"
    )


def with_settings(machine: Machine, given: Mapping[str, str | Sequence[str]]) -> Machine:
    """The machine with other settings of its jobs, checked as in a configuration.

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
    """A configuration's name or path so that no dash in front makes an option of it."""
    return f"./{word}" if word.startswith("-") else word
