"""How far a sweep's jobs are: rows, the scheduler's own word, reasons, what to do next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.core.errors import OmbError
from omb_py.core.text.tables import Sheet, on_console
from omb_py.sweeps import reasons
from omb_py.sweeps.batch import Job, node_count
from omb_py.sweeps.folder import FAILURES, MISSING, Folder
from omb_py.sweeps.jobs import JobRecord, read_record
from omb_py.sweeps.points import Point
from omb_py.sweeps.scheduler import Said, said_of

COMPLETE, INCOMPLETE, UNDER_WAY, NO_ANSWER = 0, 1, 75, 69
"""Exit codes of `omb-py job status`."""


@dataclass(frozen=True)
class ScriptStatus:
    """A script: its rows, and of its job that waits or runs, else its last one, what is said.

    ``missing`` rows can still be measured. ``state`` is the scheduler's own word; ``why`` has its
    reasons and how the script ended.
    """

    script: str
    rows: int
    planned: int
    missing: int
    job: str | None
    state: str
    why: str


@dataclass(frozen=True)
class SweepStatus:
    """A sweep: its scripts, its rows, why points failed, and what to do next."""

    folder: str
    rows: int
    planned: int
    missing: int
    scripts: tuple[ScriptStatus, ...]
    failures: tuple[str, ...]
    next: str
    exit_code: int


def status(job: Job) -> SweepStatus:
    """How far all jobs of a sweep's folder are; raises `OmbError` when it cannot be read."""
    scheduler, folder, points = job.scheduler, Folder(job.root), job.plan.points
    known = read_record(scheduler, job.root)
    shown = {one.script: one for one in known}
    asked = [one for one in known if one.may_be_active or one is shown[one.script]]
    said, trouble = dict[str, Said](), ""
    try:
        said = said_of(scheduler, [one.number for one in asked])
    except OmbError as error:
        trouble = str(error)
    under_way = [one for one in asked if scheduler.is_active(said.get(one.number))]
    shown |= {one.script: one for one in under_way}
    missing = {point.name: len(folder.missing(point)) for point in points}
    there = {point.name: folder.there(point) for point in points}

    def of_script(name: str) -> ScriptStatus:
        own = job.plan.on(node_count(job.sweep, name)).points
        one = shown.get(name)
        state, why = described(
            one, said.get(one.number) if one else None, one in under_way, bool(trouble)
        )
        return ScriptStatus(
            script=name,
            rows=sum(there[point.name] for point in own),
            planned=sum(point.rows for point in own),
            missing=sum(missing[point.name] for point in own),
            job=one.number if one else None,
            state=state,
            why=why,
        )

    names = dict.fromkeys([*sorted(path.stem for path in job.script.parent.glob("*.sh")), *shown])
    states = {point.name: folder.state(point) for point in points}
    failed = [
        point
        for point in points
        if missing[point.name] and states[point.name].outcome in (*FAILURES, MISSING)
    ]
    never = [point for point in points if states[point.name].given_up]
    left = [point for point in points if missing[point.name]]
    rows = sum(there.values())
    next_step, code = what_next(job, left, rows, under_way, list(shown), trouble)
    return SweepStatus(
        folder=str(job.root),
        rows=rows,
        planned=sum(point.rows for point in points),
        missing=sum(missing.values()),
        scripts=tuple(map(of_script, names)),
        failures=(
            *reasons.lines(folder, failed, "failed"),
            *reasons.lines(folder, never, "cannot be measured here"),
        ),
        next=next_step,
        exit_code=code,
    )


def described(
    one: JobRecord | None, said: Said | None, is_active: bool, no_answer: bool
) -> tuple[str, str]:
    """The scheduler's word for a job, and why: in the scheduler's words and as recorded."""
    if one is None:
        return "-", "not submitted"
    why = [said.why] if said and said.why else []
    if one.cancelled and not is_active:
        why.append("cancelled by omb-py")
    if one.exit_code is not None:
        signal = " after a signal" if one.signalled else ""
        why.append(f"its script ended with exit code {one.exit_code}{signal}")
    elif not is_active and not no_answer:
        why.append("its script was killed" if one.began else "its script did not begin")
    return said.word if said else "no answer" if no_answer else "not known", "; ".join(why)


def what_next(
    job: Job,
    left: Sequence[Point],
    rows: int,
    under_way: Sequence[JobRecord],
    submitted: Sequence[str],
    trouble: str,
) -> tuple[str, int]:
    """What to do about the points that are ``left``, in one sentence, and the exit code."""
    if not left and rows:
        return f"complete: {job.show_command}", COMPLETE
    if not left:
        return "nothing can be measured here: mend the reasons above", INCOMPLETE
    if under_way:
        noun = "job" if len(under_way) == 1 else "jobs"
        return f"wait for the end of {noun} {', '.join(one.number for one in under_way)}", UNDER_WAY
    if trouble:
        return f"ask again later: {trouble}", NO_ANSWER
    return f"no job waits or runs; to go on: {shlex.join(to_go_on(job, left, submitted))}", (
        INCOMPLETE
    )


def to_go_on(job: Job, points: Sequence[Point], submitted: Sequence[str]) -> list[str]:
    """The command that submits what measures these points.

    That is the scripts as they are, those ``submitted`` last first, where they measure all.
    """
    left, paths = {point.nodes for point in points}, list[Path]()
    for name in reversed(submitted):
        path, nodes = job.script.with_name(f"{name}.sh"), node_count(job.sweep, name)
        its = left if nodes is None else left & {nodes}
        if its and path.is_file():
            paths.append(path)
            left = left - its
    words = job.words if left else map(str, paths)
    return ["omb-py", "job", "submit", *words]


def show(found: SweepStatus, scheduler: str) -> None:
    """Print the scripts, the rows that are there, why points failed, and what to do next."""
    never = found.planned - found.rows - found.missing
    but = f", {never} cannot be measured here" if never else ""
    title = f"{found.rows} of {found.planned} rows there{but}, in {found.folder}"
    rows = [
        (one.script, f"{one.rows} of {one.planned}", one.job or "-", one.state, one.why)
        for one in found.scripts
    ]
    heads = ("script", "rows", "job", f"{scheduler} says", "why")
    on_console([Sheet(title, heads, tuple(rows), left=len(heads))], (), sys.stdout)
    for line in (*found.failures, found.next):
        print(line)
