"""The progress of a sweep's jobs: rows, the scheduler's states, reasons, and the next command."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from omb_py.core.errors import OmbError
from omb_py.core.text.tables import Sheet, on_console
from omb_py.sweeps import reasons
from omb_py.sweeps.batch import BatchJob, node_count
from omb_py.sweeps.folder import FAILURES, MISSING, Folder
from omb_py.sweeps.jobs import JobRecord, read_record
from omb_py.sweeps.points import SweepPoint
from omb_py.sweeps.scheduler import Said, said_of

COMPLETE, INCOMPLETE, UNDER_WAY = 0, 1, 75
"""Exit codes of `omb-py job status`."""


def show(job: BatchJob) -> int:
    """Print the progress of the scripts of a sweep's folder, reasons of failures, and the next
    command.

    Each script is represented by its job that waits or runs, else by its last one. Returns the exit
    code; raises `OmbError` when the folder cannot be read.
    """
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
    there = {point: folder.there(point) for point in points}
    left = [point for point in points if folder.missing(point)]
    scripts = sorted(path.stem for path in job.script.parent.glob("*.sh"))
    rows = []
    for name in dict.fromkeys([*scripts, *shown]):
        part, one = job.plan.on(node_count(job.sweep, name)), shown.get(name)
        count = f"{sum(there[point] for point in part.points)} of {part.rows}"
        words = described(one, said.get(one.number) if one else None, one in under_way, trouble)
        rows.append((name, count, one.number if one else "-", *words))

    total = sum(there.values())
    never = job.plan.rows - total - sum(len(folder.missing(point)) for point in left)
    but = f", {never} cannot be measured here" if never else ""
    title = f"{total} of {job.plan.rows} rows there{but}, in {job.root}"
    heads = ("script", "rows", "job", f"{scheduler.title} says", "why")
    on_console([Sheet(title, heads, tuple(rows), left=len(heads))], (), sys.stdout)
    failed = [one for one in left if folder.state(one).outcome in (*FAILURES, MISSING)]
    given_up = [point for point in points if folder.state(point).given_up]
    for line in reasons.lines(folder, failed, "failed"):
        print(line)
    for line in reasons.lines(folder, given_up, "cannot be measured here"):
        print(line)
    if not left and total:
        following, code = f"complete: {job.show_command}", COMPLETE
    elif not left:
        following, code = "nothing can be measured here: mend the reasons above", INCOMPLETE
    elif under_way:
        noun = "job" if len(under_way) == 1 else "jobs"
        numbers = ", ".join(one.number for one in under_way)
        following, code = f"wait for the end of {noun} {numbers}", UNDER_WAY
    elif trouble:
        following, code = f"ask again later: {trouble}", UNDER_WAY
    else:
        following = f"no job waits or runs; to go on: {to_go_on(job, left, scripts)}"
        code = INCOMPLETE
    print(following)
    return code


def described(
    one: JobRecord | None, said: Said | None, is_active: bool, trouble: str
) -> tuple[str, str]:
    """Return the scheduler's word for a job, and why: in its words and as recorded."""
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


def to_go_on(job: BatchJob, left: Sequence[SweepPoint], scripts: Sequence[str]) -> str:
    """Return the command that submits these points: the script as it is, if one measures them."""
    nodes = {point.nodes for point in left}
    for name in scripts:
        if node_count(job.sweep, name) is None or nodes == {node_count(job.sweep, name)}:
            return f"{job.scheduler.by_hand} {job.script.with_name(name)}.sh"
    return shlex.join(["omb-py", "job", "submit", *job.words])
