"""What there is to know of a batch scheduler."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omb_py.sweeps.answers import Ending, Layout, TimeSource, exit_code

WAITING, HELD, RUNNING = "waiting", "held", "running"
ENDED, FAILED, CANCELLED, KILLED = "ended", "failed", "cancelled", "killed"
"""What a job is doing. A scheduler that does not tell how a job ended says that it ended."""

WALLTIME = "walltime"
"""Why a job was killed: its time was over."""

RESTARTED = "restarted"
"""What a job's files may say: that the scheduler has ended it, to start it again."""

ACTIVE: tuple[str, ...] = (WAITING, HELD, RUNNING)
"""The states of jobs that are still to come to their end."""


@dataclass(frozen=True, eq=False)
class Scheduler:
    """How to submit, submit again and ask, and what a job finds in its environment.

    ``sentinel`` begins a directive, ``disabled`` one that is there to be filled in. ``submit`` and
    ``status`` are the words before a script and a job's number; ``again`` submits from inside a
    job, ``kept`` are its options from variables that say what the job itself was submitted with.
    ``number`` finds a job's number in what ``submit`` says.

    ``status`` takes several numbers, with ``joined`` between them where they are one word;
    ``layout`` reads its answer, ``states`` tells what the words for a state mean, ``ending`` what
    those for the end mean. ``history`` and ``history_layout`` are for jobs that ``status`` no
    longer knows; it may be that a site has no such records. ``cancel`` takes one number.

    ``outputs`` are names of a job's output in the folder from which it was submitted, with
    ``{title}`` and ``{number}`` (without the server's name), ``logs`` those of other files about
    its end. ``signs`` are patterns of phrases in these files or in the reason and substate
    that ``status`` gives, and what they mean (`WALLTIME`, `CANCELLED`, `KILLED`, `RESTARTED`);
    ``logged_exit`` finds the exit status in these files.

    ``settings`` are the resources of `JobSettings` that it knows. Where no host file says how many
    nodes a job has, ``node_count_variables`` or ``node_count_command`` do. ``warnings``
    are the signals it sends before a job's end, ``unknown`` what it says of a job that it does not
    know. ``time_left`` are asked in turn for how long a job may still run. ``dependency`` are the
    options by which a job waits for the end of another, whose number is put in for ``{}``.

    ``template`` is the Jinja2 text of a script for a scheduler that is not in ``templates/``, where
    those of omb-py's own are; like those it extends ``job.sh.j2``.
    """

    title: str
    sentinel: str
    submit: tuple[str, ...]
    status: tuple[str, ...]
    number: re.Pattern[str]
    layout: Layout
    states: Mapping[str, str]
    cancel: tuple[str, ...]
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
    time_left: tuple[TimeSource, ...] = ()
    dependency: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ("unknown job",)
    joined: str = ""
    ending: Callable[[str], Ending] = exit_code
    template: str = ""
    history: tuple[str, ...] = ()
    history_layout: Layout | None = None
    outputs: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    signs: Mapping[str, str] = field(default_factory=dict)
    logged_exit: re.Pattern[str] | None = None

    @property
    def submit_again(self) -> tuple[str, ...]:
        """The words that submit from inside a job."""
        return self.again or self.submit

    @property
    def _commands(self) -> dict[str, tuple[str, ...]]:
        """The words of its commands, by the names of the fields that have them."""
        fields = ("submit", "again", "status", "history", "cancel", "node_count_command")
        return {name: words for name in fields if (words := getattr(self, name))}

    @property
    def commands(self) -> frozenset[str]:
        """The names of its commands, as in `scheduler_commands` of a machine."""
        words = (*self._commands.values(), *(source.command for source in self.time_left))
        return frozenset(command[0] for command in words if command)

    def renamed(self, names: Mapping[str, str]) -> Scheduler:
        """The scheduler where its commands have other names, as on a host of two clusters."""

        def named(words: Sequence[str]) -> tuple[str, ...]:
            return tuple(names.get(word, word) for word in words[:1]) + tuple(words[1:])

        changed: dict[str, Any] = {name: named(words) for name, words in self._commands.items()}
        changed["job_id_command"] = " ".join(named(self.job_id_command.split()))
        changed["time_left"] = tuple(
            replace(source, command=named(source.command)) for source in self.time_left
        )
        return replace(self, **changed)

    @property
    def unread(self) -> str:
        """What begins a directive that the scheduler shall not read."""
        return self.disabled or f"#{self.sentinel}"
