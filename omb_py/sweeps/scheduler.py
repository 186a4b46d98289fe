"""What there is to know of a batch scheduler."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from omb_py.errors import UsageError
from omb_py.sweeps.walltime import TimeSource

WAITING, HELD, RUNNING, ENDED, FAILED = "waiting", "held", "running", "ended", "failed"
"""What a job is doing. A scheduler that does not tell how a job ended says that it ended."""


@dataclass(frozen=True)
class Scheduler:
    """How to submit, submit again and ask, and what a job finds in its environment.

    ``sentinel`` begins a directive, ``disabled`` one that is there to be filled in. ``submit`` and
    ``status`` are the words before a script and a job's number; ``again`` submits from inside a
    job, ``kept`` are its options from variables that say what the job itself was submitted with.
    ``number`` finds a job's number in what ``submit`` says, ``state`` the word for what a job is
    doing in what ``status`` says, and ``states`` tells what that word means. ``settings`` are the
    resources of `JobSettings` that it knows, ``permitted`` the options that a configuration may
    add to its scripts, ``programs`` the resources that are scripts to run. Where no host file says
    how many nodes a job has, ``node_count_variables`` or ``node_count_command`` do. ``warnings``
    are the signals it sends before a job's end, ``unknown`` what it says of a job that it does not
    know. ``time_left`` are asked in turn for how long a job may still run. ``dependency`` are the
    options by which a job waits for the end of another, whose number is put in for ``{}``.
    """

    title: str
    sentinel: str
    submit: tuple[str, ...]
    status: tuple[str, ...]
    number: re.Pattern[str]
    state: re.Pattern[str]
    states: Mapping[str, str]
    permitted: frozenset[str]
    settings: frozenset[str] = frozenset()
    disabled: str = ""
    from_standard_input: bool = False
    again: tuple[str, ...] = ()
    kept: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    job_id_variables: tuple[str, ...] = ()
    job_id_command: str = ""
    folder_variables: tuple[str, ...] = ()
    host_file_variable: str | None = None
    node_count_variables: tuple[str, ...] = ()
    node_count_command: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ("TERM",)
    programs: tuple[str, ...] = ()
    time_left: tuple[TimeSource, ...] = ()
    dependency: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ("unknown job",)

    @property
    def submit_again(self) -> tuple[str, ...]:
        """The words that submit from inside a job."""
        return self.again or self.submit

    @property
    def unread(self) -> str:
        """What begins a directive that the scheduler shall not read."""
        return self.disabled or f"#{self.sentinel}"

    def check(self, directive: str) -> str:
        """A line that a configuration adds to the directives, if all its options are permitted.

        Those ask for resources. Options that name programs to be run or files to be written
        belong into the script, where whoever submits it sees them. Raises `UsageError`.
        """
        try:
            words = shlex.split(directive, comments=False)
        except ValueError as error:
            raise UsageError(f"directive {directive!r}: {error}") from error
        options = [word for word in words if word.startswith("-")]
        values = [word for word in words if not word.startswith("-")]
        if not options or words[0] != options[0] or len(values) > len(options):
            raise UsageError(f"directive {directive!r} must be options of {self.title}")
        for name in (word.split("=", 1)[0] for word in options):
            if name not in self.permitted:
                raise UsageError(
                    f"directive {directive!r}: a configuration may not set {name} (it may set "
                    f"{', '.join(sorted(self.permitted))}): write it into the script"
                )
        for word in words:
            self.check_resource(word)
        return directive

    def check_resource(self, resource: str) -> str:
        """A resource that a configuration asks for, if it runs nothing; raises `UsageError`."""
        for name in self.programs:
            if f"{name}=" in resource:
                raise UsageError(
                    f"resource {resource!r}: a configuration may not set {name}, which is a "
                    "program to be run: write it into the script"
                )
        return resource
