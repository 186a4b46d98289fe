"""Nothing that a configuration, a file's name or the command line holds is run or leads outside.

Each hostile value is tried twice: through the models, which refuse most of them, and past the
models, where the scripts have to stand alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from omb_py.core.errors import UsageError
from omb_py.sweeps import render
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.machine import JobSettings, Machine, Queue
from omb_py.sweeps.quoting import check, comment, file_name, plain, shell
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.sweep_job import SweepJob
from tests.helpers.refusals import refuses
from tests.sweeps.job_scripts import UNFINISHED, Sandbox, own_job

HOSTILE = {
    "command substitution": "$(touch PWNED)",
    "backticks": "`touch PWNED`",
    "double quote": '"; touch PWNED; "',
    "single quote": "'; touch PWNED; '",
    "separator": "a; touch PWNED",
    "pipe": "a | touch PWNED",
    "redirection": "a > PWNED",
    "variable": "${IFS}touch${IFS}PWNED",
    "line": "a\ntouch PWNED\n",
    "carriage return": "a\rtouch PWNED",
    "line separator": "a\u2028touch PWNED",
    "next line": "a\x85touch PWNED",
    "end of text": "a\x00touch PWNED",
    "brackets": "{{ 7 * 7 }}{% raw %}",
    "parent folder": "../../PWNED",
    "root": "/PWNED",
    "option": "-rf",
    "long option": "--help",
    "process": "<(touch PWNED)",
    "history": "!touch",
    "tilde": "~root/$(touch PWNED)",
    "tilde and quote": "~/'$(touch PWNED)",
    "backslash": "\\\ntouch PWNED",
    "glob": "*",
    "empty": "",
}
PLAIN_ENOUGH = {"../../PWNED", "/PWNED", "-rf", "--help"}
"""Hostile as names of files only."""

hostile = pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
any_scheduler = pytest.mark.parametrize("scheduler", SCHEDULERS)

Field = Callable[[str], Any]


def itself(value: str) -> str:
    return value


def listed(value: str) -> tuple[str, ...]:
    return ("first", value)


MACHINE_FIELDS: dict[str, Field] = {
    **dict.fromkeys(("name", "description", "virtual_environment", "host_file"), itself),
    "preload": itself,
    **dict.fromkeys(("module_paths", "modules", "launcher_options"), listed),
    **dict.fromkeys(("environment", "device_environment"), lambda value: {"NAME": value}),
    "scheduler_commands": lambda value: dict.fromkeys(("qsub", "bsub", "flux"), value),
}
JOB_FIELDS: dict[str, Field] = {
    **dict.fromkeys(("queue", "account"), itself),
    **dict.fromkeys(("filesystems", "select", "attributes"), listed),
    "directives": lambda value: (value,),
}
SWEEP_FIELDS: dict[str, Field] = dict.fromkeys(("name", "description"), itself)
WORDS: dict[str, Field] = dict.fromkeys(("sweep_word", "machine_word"), itself)


def changed(job: SweepJob, where: str, values: dict[str, Any]) -> SweepJob:
    """A job with values in its machine, its sweep or itself that no model has checked."""
    if where == "words":
        return replace(job, **values)
    if where == "job":
        settings = job.machine.job.model_copy(update=values)
        return replace(job, machine=job.machine.model_copy(update={"job": settings}))
    return replace(job, **{where: getattr(job, where).model_copy(update=values)})


def written(job: SweepJob) -> str | None:
    """The script, or None where it is refused in one sentence."""
    try:
        return render.script(job)
    except UsageError as error:
        assert len(str(error).splitlines()) == 1
        return None


def with_all_that_is_accepted(
    job: SweepJob, value: str, without: Iterable[str] = ()
) -> tuple[SweepJob, list[str]]:
    """A job with a value in every field that takes it, and which fields those are."""
    accepted = []
    for where, fields in FIELDS.items():
        for name, field in fields.items():
            if name in without:
                continue
            tried = changed(job, where, {name: field(value)})
            if written(tried) is not None:
                job = tried
                accepted.append(name)
    return job, accepted


FIELDS = {"machine": MACHINE_FIELDS, "job": JOB_FIELDS, "sweep": SWEEP_FIELDS, "words": WORDS}


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["torque", "lsf"])
@hostile
def test_script_obeys_no_value(scheduler: str, value: str, tmp_path: Path) -> None:
    """The models are passed by: the templates stand alone."""
    job, accepted = with_all_that_is_accepted(own_job(scheduler), value, MUST_BE_THERE)
    assert not {"queue", "account"} & set(accepted) or value in PLAIN_ENOUGH | {""}
    sandbox = Sandbox(tmp_path, sweep_ends=f"exit {UNFINISHED}")
    ran = sandbox.run(render.script(job))
    assert not list(tmp_path.rglob("*PWNED*"))
    outside = {name for name in sandbox.files() if not name.startswith("here/sweeps/mine-")}
    assert outside == {"spool/12.script"}
    measured, goes_on = ran.of("omb-py")
    if "sweep_word" in accepted and not value.startswith("~/"):
        assert measured[:4] == ["sweep", value, "--machine", value]
        assert goes_on[3:6] == [value, "--machine", value]
    assert goes_on[:2] == ["job", "continue"], ran.said
    assert len(ran.of("module")) == 2 * ("modules" in accepted)


MUST_BE_THERE = ("module_paths", "virtual_environment")
"""A job without one of these ends before it measures."""


@pytest.mark.parametrize("name", MUST_BE_THERE)
@hostile
def test_a_path_that_must_be_there_is_a_path_only(name: str, value: str, tmp_path: Path) -> None:
    job = changed(own_job("torque"), "machine", {name: MACHINE_FIELDS[name](value)})
    text = written(job)
    if text is not None:
        ran = Sandbox(tmp_path).run(text)
        assert not list(tmp_path.rglob("*PWNED*"))
        assert " fails on " in ran.said or value == ""


USUAL = {"directives": "-x"}
"""Values that fit where x does not."""


@cache
def usual_lines(scheduler: str) -> dict[tuple[str, str], int]:
    """Lines of the script with a usual value in each field."""
    lines = {}
    job = own_job(scheduler)
    for where, fields in FIELDS.items():
        for name, field in fields.items():
            text = written(changed(job, where, {name: field(USUAL.get(name, "x"))}))
            lines[where, name] = len((text or "").splitlines())
    return lines


@pytest.mark.product(strength=1)
@any_scheduler
@hostile
def test_no_value_makes_a_line_of_its_own(scheduler: str, value: str) -> None:
    job = own_job(scheduler)
    for (where, name), most in usual_lines(scheduler).items():
        text = written(changed(job, where, {name: FIELDS[where][name](value)}))
        assert text is None or len(text.splitlines()) <= most, name


@hostile
def test_folder_unsafe_for_a_scheduler_refused(value: str) -> None:
    """Slurm's own `qsub` hands the script's path to a shell without quotes."""
    if value not in PLAIN_ENOUGH and value:
        assert written(replace(own_job(), folder=Path(value))) is None


@hostile
def test_models_refuse_what_is_not_plain(value: str) -> None:
    for field in ("queue", "account"):
        assert accepts(JobSettings, {field: value}) == (value in PLAIN_ENOUGH)
    for model in (Machine, Sweep):
        assert not accepts(model, {"name": value, "experiments": []})
    assert not accepts(Machine, {"name": "here", "environment": {value: "1"}})
    assert accepts(Machine, {"name": "here", "description": value}) or not value.isprintable()


@any_scheduler
def test_a_directive_that_is_no_option_is_refused(scheduler: str) -> None:
    with refuses(UsageError, "write options of the scheduler"):
        render.script(own_job(scheduler, {"directives": ["touch PWNED"]}))


@given(st.text())
def test_a_quoted_word_is_that_word_to_a_shell(text: str) -> None:
    try:
        quoted = shell(text)
    except UsageError:
        assert not text.isprintable()
        return
    if not text.startswith("~/"):
        assert shlex.split(quoted) == [text]


@given(st.text())
def test_a_plain_word_needs_no_quotes(text: str) -> None:
    try:
        assert shlex.quote(plain(text)) in (text, f"'{text}'")
        assert not set(text) & set(" \t\n'\"\\$`;&|<>()*?[]#!{}")
    except UsageError:
        pass


@pytest.mark.product(strength=1)
@any_scheduler
@hostile
def test_directives_of_a_queue_are_checked_as_those_of_the_job(scheduler: str, value: str) -> None:
    limits = Queue.model_construct(directives=(value,))
    in_queue = changed(own_job(scheduler), "job", {"queue": "long", "queues": {"long": limits}})
    of_job = changed(own_job(scheduler), "job", {"directives": (value,)})
    if value:
        texts = (written(one) or "" for one in (in_queue, of_job))
        left_out = re.compile(r".*QUEUE\n|# Made by: .*\n")  # the queue has a name, not to fill in
        assert len({left_out.sub("", text) for text in texts}) == 1


@given(st.text())
def test_a_comment_stays_on_its_line(text: str) -> None:
    try:
        assert len(comment(text).splitlines()) <= 1
    except UsageError:
        assert not text.isprintable()


@pytest.mark.parametrize("name", ["..", ".", "a/b", "/a", "../a", ".hidden", "-a", ""])
def test_names_of_files_stay_in_their_folder(name: str) -> None:
    with pytest.raises(UsageError):
        file_name(name)


def test_template_without_a_filter_refused() -> None:
    template = render.environment().from_string("{{ value }}")
    for make in (lambda: check("text"), lambda: template.render(value="text")):
        with pytest.raises(TypeError, match="without a filter"):
            make()


def accepts(model: type[BaseModel], values: dict[str, Any]) -> bool:
    """Whether a model takes these values."""
    try:
        model.model_validate(values)
    except ValidationError:
        return False
    return True


def test_hostile_values_are_tried_in_every_field() -> None:
    counted = {
        "nodes",
        "cores_per_node",
        "gpus_per_node",
        "nics_per_node",
        "accelerator",
        "devices",
        "binding",
        "oversubscribe",
    }
    chosen = {"scheduler", "launcher", "job", "library"}  # a job's script has none of its words
    assert set(Machine.model_fields) == set(MACHINE_FIELDS) | counted | chosen
    chosen = {"walltime", "reserve", "chain", "max_jobs", "queues"}
    chosen |= {"account_required"}
    assert set(JobSettings.model_fields) == set(JOB_FIELDS) | chosen
    measured = {"time_limit", "retries", "launches", "order", "seed", "experiments"}
    assert set(Queue.model_fields) == {
        *("min_nodes", "max_nodes", "min_walltime", "max_walltime", "directives"),
        *("max_queued", "cores_per_node", "gpus_per_node"),
    }
    assert set(Sweep.model_fields) == set(SWEEP_FIELDS) | measured
