"""Submitting batch scripts: once each, several jobs of one where they wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import jobs, record, render
from omb_py.sweeps.quoting import PLAIN
from omb_py.sweeps.scheduler import Scheduler

DEPENDS = "--chain depend"
"""What a script has whose jobs wait for each other."""

ALIASES = {"--partition": ("-p", "--qos", "-q"), "--account": ("-A",)}
"""Other options of a script that say what an option of `Scheduler.kept` says."""


@dataclass(frozen=True)
class Submission:
    """A script to submit ``jobs`` times, and the record of its jobs if it keeps one.

    ``text`` is what to write into the script first; None for one that is there, which is submitted
    with the queue and account of its last job. ``missing`` is how many points have rows to be
    measured, None where that is not known.
    """

    scheduler: Scheduler
    script: Path
    record: Path | None
    jobs: int = 1
    text: str | None = None
    missing: int | None = None

    @cached_property
    def options(self) -> list[str]:
        """What its last job was submitted with and the script does not say.

        Raises `OmbError` when it or its record cannot be read.
        """
        if self.record is None or self.text is not None:
            return []
        kept = [job.kept for job in record.jobs_in(self.record, self.scheduler) if job.kept]
        said = unsaid(self.scheduler, jobs.text_of(self.script), kept[-1] if kept else {})
        return as_options(self.scheduler, said)

    def write(self) -> None:
        """Write the script; raises `OmbError` when that cannot be done."""
        if self.text is not None:
            jobs.write(self.script, self.text)

    def commands(self) -> list[str]:
        """What would be typed, with JOB for the number of the job before."""
        waits = ([], *[after(self.scheduler, "JOB")] * (self.jobs - 1))
        options = ([*self.options, *words] for words in waits)
        return [render.by_hand(self.scheduler, words) + f" {self.script}" for words in options]


def after(scheduler: Scheduler, number: str) -> list[str]:
    """The options by which a job begins when another has ended, in whatever way."""
    return [word.replace("{}", number) for word in scheduler.dependency]


def unsaid(scheduler: Scheduler, script: str, given: Mapping[str, str]) -> dict[str, str]:
    """What a job was ``given``, by the names of `Scheduler.kept`, and no directive says."""
    lines = (line.split() for line in script.splitlines())
    words = [
        word for first, *rest in filter(None, lines) if first == scheduler.sentinel for word in rest
    ]
    found = {}
    for name, (option, _) in scheduler.kept.items():
        names = (option, *ALIASES.get(option, ()))
        said = any(says(word, one) for word in words for one in names)
        if not said and PLAIN.fullmatch(given.get(name, "")):
            found[name] = given[name]
    return found


def as_options(scheduler: Scheduler, kept: Mapping[str, str]) -> list[str]:
    """Options of a command line that say it again."""
    return [word for name, value in kept.items() for word in (scheduler.kept[name][0], value)]


def says(word: str, option: str) -> bool:
    """Whether a word of a directive is an option, with its value or without."""
    return word == option or word.startswith(f"{option}=" if option.startswith("--") else option)


def worthwhile(
    submissions: Sequence[Submission], force: bool, note: Callable[[str], None]
) -> list[Submission]:
    """Those of which rows are missing; all by ``force``. ``note`` is told of the others."""
    for one in submissions:
        if one.missing == 0 and not force:
            note(f"no row of {one.script} is missing: it is not submitted")
    return [one for one in submissions if one.missing != 0 or force]


def check_edited(submissions: Sequence[Submission]) -> None:
    """Raise `UsageError` for a script that somebody has edited and that would be overwritten."""
    for one in submissions:
        if one.text is None or not one.script.exists():
            continue
        there = jobs.text_of(one.script)
        if there != one.text and render.is_edited(there):
            raise UsageError(
                f"{one.script} was edited: submit it as it is by omb-py job submit {one.script}, "
                "or overwrite it by --force"
            )


def check(submissions: Sequence[Submission], force: bool, note: Callable[[str], None]) -> None:
    """Raise `UsageError` for what should not be submitted, before anything is.

    That is several jobs of a script that submits itself, and unless by ``force`` a script of which
    a job is queued or running, and one that was edited. ``note`` is told where the scheduler does
    not say.
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
    if not force:
        check_edited(submissions)


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
                waits = [] if before is None else after(one.scheduler, before)
                number = jobs.submit(one.scheduler, one.script, [*one.options, *waits])
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
