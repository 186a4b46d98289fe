"""Batch scripts of a sweep: short, commented, to be edited, and quoted wherever a value goes."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Sequence
from functools import cache

import jinja2

from omb_py.core.errors import UsageError
from omb_py.core.text.words import count
from omb_py.sweeps.field_types import clock
from omb_py.sweeps.machine import DEFAULT_VENV
from omb_py.sweeps.quoting import Safe, check, comment, directive, plain, shell
from omb_py.sweeps.schedulers import Scheduler
from omb_py.sweeps.sweep_job import SweepJob, without_account

MADE_BY = re.compile(r"^(# Made by: .+?)(?:  # ([0-9a-f]{8}))?$", re.MULTILINE)
"""The command that made a script, in its head, and a digest of the script."""


def script(job: SweepJob) -> str:
    """Return the text of a batch script.

    Raises `UsageError` when a value cannot stand in one, or the walltime is too short.
    """
    scheduler, settings = job.scheduler, job.settings
    seconds = math.floor(settings.walltime - settings.reserve)
    if seconds < 1:
        raise UsageError(
            f"a walltime of {clock(settings.walltime)} leaves nothing but job.reserve = "
            f"{settings.reserve:g} s: ask for more"
        )
    queue, account = map(Safe, scheduler.queue_and_account)
    offered = (f"{queue}QUEUE", job.machine.job.queue), (f"{account}PROJECT", settings.account)
    template = environment().get_template(f"{job.machine.scheduler}.sh.j2")
    modules = job.machine.modules or job.machine.module_paths
    text = template.render(
        job=job,
        machine=job.machine,
        settings=settings,
        nodes=job.size,
        title=job.title,
        headline=headline(job),
        machine_words=machine_words(job),
        seconds=seconds,
        login=Safe(" -l" if modules else ""),
        own_venv=job.machine.virtual_environment != DEFAULT_VENV,
        sentinel=Safe(scheduler.sentinel),
        named=((queue, settings.queue), (account, settings.account)),
        unnamed=[Safe(f"{scheduler.unread} {line}") for line, name in offered if not name],
        by_hand=scheduler.by_hand,
        scheduler_title=scheduler.title,
        time_left=Safe(time_left(scheduler)),
        reserve=math.ceil(settings.reserve),
        without_account=bool(without_account(job.machine)),
        submit_folder=Safe(submit_folder(scheduler)),
        number=Safe(number(scheduler)),
    )
    text = "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n") + "\n"
    return MADE_BY.sub(rf"\g<1>  # {digest(text)}", text, count=1)


def directives(job: SweepJob) -> list[str]:
    """Return the directives of a job's script that its scheduler reads."""
    sentinel = f"{job.scheduler.sentinel} "
    unread = job.scheduler.unread
    lines = script(job).splitlines()
    return [line for line in lines if line.startswith(sentinel) and not line.startswith(unread)]


def is_edited(text: str) -> bool:
    """Return whether a script was edited after it was made, or lacks its digest."""
    found = MADE_BY.search(text)
    return found is None or found[2] != digest(MADE_BY.sub(r"\1", text, count=1))


def digest(text: str) -> str:
    """Return a few digits by which a text is known again."""
    return f"{zlib.crc32(text.encode()):08x}"


@cache
def environment() -> jinja2.Environment:
    """Return templates in which every text passes a filter, or there is no script."""
    filters: dict[str, Callable[..., object]] = {
        "shell": shell,
        "comment": comment,
        "plain": plain,
        "directive": directive,
        "clock": lambda seconds: Safe(clock(math.ceil(seconds))),
        "minutes": minutes,
        "hours_and_minutes": lambda seconds: Safe(clock(60 * minutes(seconds))[:-3]),
    }
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("omb_py.sweeps"),
        undefined=jinja2.StrictUndefined,
        finalize=check,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(filters)
    return made


def minutes(seconds: float) -> int:
    """Return whole minutes, rounded up."""
    return math.ceil(seconds / 60)


def headline(job: SweepJob) -> str:
    """Return the first comment of a script: sweep, machine and nodes."""
    where, counts = count(job.size, "node"), job.plan.node_counts
    if job.nodes is None and len(counts) > 1:
        where = f"{' and '.join(map(str, counts))} nodes in one job"
    text = f"Sweep {job.sweep.name} on {job.machine.name}, {where}"
    return f"{text}: {job.sweep.description}" if job.sweep.description else text


def machine_words(job: SweepJob) -> Safe:
    """Return the words for a machine, and for a queue with other limits."""
    more = [] if job.queue is None else ["--queue", job.queue]
    return Safe(" ".join(shell(word) for word in (job.machine_word, *more)))


def submit_folder(scheduler: Scheduler) -> str:
    """Return the folder of the job's submission; empty if jobs start there anyway."""
    return first_of(scheduler.folder_variables, ".") if scheduler.folder_variables else ""


def time_left(scheduler: Scheduler) -> str:
    """Return the command that prints the seconds left, with the names of commands here."""
    text = scheduler.time_left
    for name, other in scheduler.names.items():
        text = re.sub(rf"\b{re.escape(name)}\b", plain(other), text)
    return text


def number(scheduler: Scheduler) -> str:
    """Return the job's own number, as the value of a variable."""
    if scheduler.job_id_command:
        return f"$({' '.join(map(plain, scheduler.named(scheduler.job_id_command)))})"
    return first_of(scheduler.job_id_variables, "-")


def first_of(variables: Sequence[str], otherwise: str = "") -> str:
    """Return the first of these variables that has a value, for bash."""
    text = otherwise
    for name in reversed(variables):
        text = f"${{{name}:-{text}}}"
    return text
