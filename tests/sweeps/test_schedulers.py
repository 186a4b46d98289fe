"""What the table of schedulers says, and how their commands' answers are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import jobs, render, scheduler
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

# What each `status` prints of a job, first two words for waiting, one for running, then ends.
TOLD = {
    "pbs": ("Job Id: 1.server\n    Job_Name = mine\n    job_state = {}\n    queue = debug", "QHRF"),
    "torque": ("Job Id: 1\n\tJob_Name = mine\n\tjob_state = {}\n", "QHRC"),
    "cobalt": (
        "    JobID          : 1\n    State          : {}\n    TimeRemaining  : N/A\n",
        ("queued", "user_hold", "running"),
    ),
    "slurm": (
        "1|{}|None\n",
        ("PENDING", "SUSPENDED", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"),
    ),
    "lsf": ("1|{}|-|-\n", ("PEND", "PSUSP", "RUN", "DONE", "EXIT")),
    "flux": ("1|{}||\n", ("SCHED", "DEPEND", "RUN", "COMPLETED", "FAILED", "CANCELED", "TIMEOUT")),
}
UNKNOWN = {
    "pbs": "echo 'qstat: Unknown Job Id 1' >&2; exit 153",
    "torque": "exit 153",
    "cobalt": "exit 1",
    "slurm": "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1",
    "lsf": "echo 'Job <1> is not found' >&2; exit 255",
    "flux": "echo 'flux-jobs: ERROR: JobID f1 unknown' >&2; exit 1",
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
    assert scheduler.hand_over(row, script(name)).startswith(number)
    program, *words = row.submit
    given = [] if row.from_standard_input else ["mine.sh"]
    assert sandbox.commands() == [[program, *words, *given]]


@each
def test_a_job_s_state_is_the_scheduler_s_own_word(name: str, sandbox: Sandbox) -> None:
    row = SCHEDULERS[name]
    text, words = TOLD[name]
    for number, word in enumerate([*words, "ODD"]):
        sandbox.stand_in(row.status[0], f"cat <<'END'\n{text.format(word)}\nEND")
        said = scheduler.said_of(row, ["1"])["1"]
        assert said.word == word
        assert row.is_active(said) == (number < 3)
    assert sandbox.commands()[-1] == [*row.status, "1"]


@each
def test_a_job_that_nobody_knows_is_left_out(name: str, sandbox: Sandbox) -> None:
    row = SCHEDULERS[name]
    sandbox.stand_in(row.status[0], UNKNOWN[name])
    assert scheduler.said_of(row, ["1"]) == {}


@each
def test_error_of_a_scheduler_is_its_own_text(name: str, sandbox: Sandbox) -> None:
    row = SCHEDULERS[name]
    sandbox.stand_in(row.status[0], "echo 'cannot connect to server' >&2; exit 111")
    with refuses(OmbError, "job 1: cannot connect to server"):
        scheduler.said_of(row, ["1"])
    sandbox.stand_in(row.submit[0], "echo 'no such queue'; echo 'go away' >&2; exit 1")
    with refuses(OmbError, "mine.sh: go away no such queue"):
        scheduler.hand_over(row, script(name))
    (sandbox.programs / row.submit[0]).unlink()
    with refuses(OmbError, f"no {row.submit[0]} on command of"):
        scheduler.hand_over(row, script(name))


@each
def test_what_a_script_and_a_submission_write_down_is_one_job(name: str, tmp_path: Path) -> None:
    row = SCHEDULERS[name]
    said, number = SUBMITTED[name]
    found = row.number.findall(said)[-1]
    jobs.append(tmp_path, found, "mine", "submitted")
    with (tmp_path / "jobs/record").open("a") as file:
        file.write(f"T {found} mine began host=n1\n\nT - mine began\nT {found} mine ended exit=7")
    assert found.startswith(number)
    assert jobs.read_record(row, tmp_path) == [jobs.JobRecord(found, "mine", began=True)]


@each
def test_commands_with_other_names_are_asked(name: str, sandbox: Sandbox) -> None:
    row = SCHEDULERS[name]
    names = {command: f"our-{command}" for command in row.commands}
    assert {row.submit[0], row.status[0], row.cancel[0]} <= row.commands
    job = own_job(name, scheduler_commands=names)
    jobs.write(Path("mine.sh"), render.script(job))
    assert f": our-{row.submit[0]} " in Path("mine.sh").read_text()
    found = job.scheduler
    said, number = SUBMITTED[name]
    sandbox.stand_in(names[row.submit[0]], f"echo '{said}'")
    assert scheduler.hand_over(found, Path("mine.sh")).startswith(number)
    told, words = TOLD[name]
    sandbox.stand_in(names[row.status[0]], f"cat <<'END'\n{told.format(words[0])}\nEND")
    assert found.is_active(scheduler.said_of(found, ["1"])["1"])
    assert {program for program, *_ in sandbox.commands()} <= set(names.values())


@pytest.mark.parametrize(
    ("scheduler", "name", "words"),
    [("cobalt", "qsubb", r"'qsubb'.*'qsub'.*qdel"), ("none", "qsub", "unknown 'qsub'")],
)
def test_name_of_another_scheduler_s_command_refused(scheduler: str, name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        machine(scheduler=scheduler, scheduler_commands={name: "qsub-gpu"})


def test_a_path_that_a_shell_might_run_is_not_handed_on(sandbox: Sandbox) -> None:
    """Slurm's own `qsub` gives it to a shell without quotes."""
    path = Path("a; touch PWNED .sh")
    jobs.write(path, render.script(own_job("torque")))
    with refuses(UsageError, "a; scheduler: ';'"):
        scheduler.hand_over(SCHEDULERS["torque"], path)
    assert sandbox.commands() == []
