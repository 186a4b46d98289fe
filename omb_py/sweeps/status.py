"""How far a sweep's jobs are: rows, the scheduler's own word, reasons, what to do next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

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
    missing = {point: len(folder.missing(point)) for point in points}
    there = {point: folder.there(point) for point in points}

    def of_script(name: str) -> ScriptStatus:
        own, one = job.plan.on(node_count(job.sweep, name)), shown.get(name)
        return ScriptStatus(
            name,
            sum(there[point] for point in own.points),
            own.rows,
            sum(missing[point] for point in own.points),
            one.number if one else None,
            *described(one, said.get(one.number) if one else None, one in under_way, trouble),
        )

    left = [point for point in points if missing[point]]
    failed = [one for one in left if folder.state(one).outcome in (*FAILURES, MISSING)]
    never = [point for point in points if folder.state(point).given_up]
    rows = sum(there.values())
    command = shlex.join(to_go_on(job, left, list(shown)))
    following = f"no job waits or runs; to go on: {command}", INCOMPLETE
    if not left and rows:
        following = f"complete: {job.show_command}", COMPLETE
    elif not left:
        following = "nothing can be measured here: mend the reasons above", INCOMPLETE
    elif under_way:
        noun = "job" if len(under_way) == 1 else "jobs"
        numbers = ", ".join(one.number for one in under_way)
        following = f"wait for the end of {noun} {numbers}", UNDER_WAY
    elif trouble:
        following = f"ask again later: {trouble}", NO_ANSWER
    names = dict.fromkeys([*sorted(path.stem for path in job.script.parent.glob("*.sh")), *shown])
    return SweepStatus(
        str(job.root),
        rows,
        job.plan.rows,
        sum(missing.values()),
        tuple(map(of_script, names)),
        (
            *reasons.lines(folder, failed, "failed"),
            *reasons.lines(folder, never, "cannot be measured here"),
        ),
        *following,
    )


def described(
    one: JobRecord | None, said: Said | None, is_active: bool, trouble: str
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
    elif not is_active and not trouble:
        why.append("its script was killed" if one.began else "its script did not begin")
    return said.word if said else "no answer" if trouble else "not known", "; ".join(why)


def to_go_on(job: Job, points: Sequence[Point], submitted: Sequence[str]) -> list[str]:
    """The command that submits what measures these points.

    That is the scripts as they are, those ``submitted`` last first, where they measure all.
    """
    left, paths = {point.nodes for point in points}, list[str]()
    for name in reversed(submitted):
        path, nodes = job.script.with_name(f"{name}.sh"), node_count(job.sweep, name)
        its = left if nodes is None else left & {nodes}
        if its and path.is_file():
            paths.append(str(path))
            left = left - its
    return ["omb-py", "job", "submit", *(job.words if left else paths)]


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
    print(*found.failures, found.next, sep="\n")
