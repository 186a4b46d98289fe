"""Submitting batch scripts: once each, several jobs of one where they wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import jobs, record, render
from omb_py.sweeps.scheduler import Scheduler

DEPENDS = "--chain depend"
"""What a script has whose jobs wait for each other."""


@dataclass(frozen=True)
class Submission:
    """A script to submit ``jobs`` times, and the record of its jobs if it keeps one.

    ``text`` is what to write into the script first; None for one that is there.
    """

    scheduler: Scheduler
    script: Path
    record: Path | None
    jobs: int = 1
    text: str | None = None

    def write(self) -> None:
        """Write the script; raises `OmbError` when that cannot be done."""
        if self.text is not None:
            jobs.write(self.script, self.text)

    def commands(self) -> list[str]:
        """What would be typed, with JOB for the number of the job before."""
        options = ([], *[after(self.scheduler, "JOB")] * (self.jobs - 1))
        return [render.by_hand(self.scheduler, words) + f" {self.script}" for words in options]


def after(scheduler: Scheduler, number: str) -> list[str]:
    """The options by which a job begins when another has ended, in whatever way."""
    return [word.replace("{}", number) for word in scheduler.dependency]


def check(submissions: Sequence[Submission], force: bool, note: Callable[[str], None]) -> None:
    """Raise `UsageError` for what should not be submitted, before anything is.

    That is several jobs of a script that submits itself, and a script of which a job is queued or
    running, unless by ``force``. ``note`` is told where the scheduler does not say.
    """
    for one in submissions:
        text = jobs.text_of(one.script) if one.text is None else one.text
        if one.jobs > 1 and DEPENDS not in text:
            raise UsageError(
                f"{one.script} submits its next job itself: --jobs is for scripts that were made "
                f"with {DEPENDS}"
            )
        if force or one.record is None:
            continue
        try:
            active = jobs.active(one.scheduler, one.record)
        except OmbError as error:
            note(f"whether a job of {one.script} is queued or running is not known: {error}")
            continue
        if active is not None:
            raise UsageError(
                f"job {active.number} of {one.script} is {active.state} and goes on by itself: "
                "wait for its end, or submit another by --force"
            )


def submit(submissions: Sequence[Submission], tell: Callable[[str], None]) -> None:
    """Write and submit them in order, record them, and tell each job's number and script.

    Raises `OmbError` when the scheduler refuses one, with those that it has taken.
    """
    for one in submissions:
        one.write()
    taken: list[str] = []
    for one in submissions:
        before: str | None = None
        for _ in range(one.jobs):
            try:
                options = [] if before is None else after(one.scheduler, before)
                number = jobs.submit(one.scheduler, one.script, options)
            except OmbError as error:
                raise OmbError(refused(error, taken, one, len(submissions))) from error
            if one.record is not None:
                words = [record.SUBMITTED, *([] if before is None else [f"after={before}"])]
                record.append(one.record, number, words)
            taken.append(f"{number} {one.script}")
            tell(taken[-1])
            before = number


def refused(error: OmbError, taken: Sequence[str], one: Submission, scripts: int) -> str:
    """What to say of a refusal, and how to go on."""
    if not taken:
        return str(error)
    advice = f"submit the rest later by omb-py job submit {one.script}"
    if scripts > 1:
        advice += ", or cancel these and take one job for all numbers of nodes by --one-job"
    return f"{error}; submitted so far: {', '.join(taken)}; {advice}"
