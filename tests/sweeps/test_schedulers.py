"""What the table of schedulers says, and how scripts are handed to their commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import jobs, render, schedulers
from omb_py.sweeps.schedulers import SCHEDULERS
from tests.helpers.refusals import refuses
from tests.sweeps.configs import machine
from tests.sweeps.job_scripts import Sandbox, own_job

# What each `submit` prints, by its documentation, and the number in it.
SUBMITTED = {
    "pbs": ("1234567.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov", "1234567.polaris-pbs-01.hsn"),
    "torque": ("42.server", "42.server"),
    "cobalt": ("104927", "104927"),
    "slurm": ("42;cluster", "42"),
    "lsf": ("Job <42> is submitted to default queue <batch>.", "42"),
    "flux": ("\u0192M7Zq9AKHno", "\u0192M7Zq9AKHno"),
}

each = pytest.mark.parametrize("name", SCHEDULERS)


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A folder with stand-ins for the schedulers' commands, to work in."""
    made = Sandbox(tmp_path)
    made.enter(monkeypatch)
    return made


def script(name: str) -> Path:
    """A script for a scheduler in the current folder."""
    path = Path("mine.sh")
    jobs.write(path, render.script(own_job(name)))
    return path


def test_each_scheduler_has_a_template() -> None:
    templates = Path(render.__file__).parent / "templates"
    names = {path.name.removesuffix(".sh.j2") for path in templates.glob("*.sh.j2")}
    assert names == set(SCHEDULERS) | {"job"}


@each
def test_a_job_s_number_is_read_from_what_the_scheduler_says(name: str, sandbox: Sandbox) -> None:
    row = SCHEDULERS[name]
    said, number = SUBMITTED[name]
    sandbox.stand_in(row.submit[0], f"echo '{said}'")
    assert schedulers.hand_over(row, script(name)).startswith(number)
    program, *words = row.submit
    given = [] if row.from_standard_input else ["mine.sh"]
    assert sandbox.commands() == [[program, *words, *given]]


@each
def test_error_of_a_scheduler_is_its_own_text(name: str, sandbox: Sandbox) -> None:
    row = SCHEDULERS[name]
    sandbox.stand_in(row.submit[0], "echo 'no such queue'; echo 'go away' >&2; exit 1")
    with refuses(OmbError, "mine.sh: go away no such queue"):
        schedulers.hand_over(row, script(name))
    (sandbox.programs / row.submit[0]).unlink()
    with refuses(OmbError, f"no {row.submit[0]} on command of"):
        schedulers.hand_over(row, script(name))


@each
def test_commands_with_other_names_are_asked(name: str, sandbox: Sandbox) -> None:
    row = SCHEDULERS[name]
    names = {command: f"our-{command}" for command in row.commands}
    job = own_job(name, scheduler_commands=names)
    jobs.write(Path("mine.sh"), render.script(job))
    assert f": our-{row.submit[0]} " in Path("mine.sh").read_text()
    found = job.scheduler
    said, number = SUBMITTED[name]
    sandbox.stand_in(names[row.submit[0]], f"echo '{said}'")
    assert schedulers.hand_over(found, Path("mine.sh")).startswith(number)
    assert {program for program, *_ in sandbox.commands()} <= set(names.values())


@pytest.mark.parametrize(
    ("scheduler", "name", "words"),
    [("cobalt", "qsubb", r"'qsubb'.*'qsub'"), ("none", "qsub", "unknown 'qsub'")],
)
def test_name_of_another_scheduler_s_command_refused(scheduler: str, name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        machine(scheduler=scheduler, scheduler_commands={name: "qsub-gpu"})


def test_a_path_that_a_shell_might_run_is_not_handed_on(sandbox: Sandbox) -> None:
    """Slurm's own `qsub` gives it to a shell without quotes."""
    path = Path("a; touch PWNED .sh")
    jobs.write(path, render.script(own_job("torque")))
    with refuses(UsageError, "a; scheduler: ';'"):
        schedulers.hand_over(SCHEDULERS["torque"], path)
    assert sandbox.commands() == []
