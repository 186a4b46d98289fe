"""`omb-py job status` and `omb-py job cancel`, with stand-ins for Slurm's commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from omb_py.cli import command
from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import jobs
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.folder import FAILED, Attempt, Folder, PointState
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import SweepPoint, plan
from omb_py.sweeps.scheduler import Said
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.toml import read
from tests.cli.test_job import MACHINE, MINE
from tests.helpers.refusals import assert_names, missing, refuses
from tests.sweeps.job_scripts import SWEEP, Sandbox

FOLDER = Path("sweeps/mine-here")
JOBS = FOLDER / "jobs"
SQUEUE = 'for file in states/*; do [ ! -e "$file" ] || echo "$(< "$file")"; done'
SCANCEL = 'echo "$1|CANCELLED|None" > states/$1'


@dataclass(frozen=True)
class Ended:
    """What a command came to."""

    code: int
    lines: list[str]
    err: str


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A folder with two configurations, and a Slurm whose jobs are files in ``states``."""
    made = Sandbox(tmp_path)
    made.enter(monkeypatch)
    Path("mine.toml").write_text(SWEEP)
    Path("here.toml").write_text(MACHINE)
    JOBS.mkdir(parents=True)
    Path("states").mkdir()
    made.stand_in("squeue", SQUEUE)
    made.stand_in("scancel", SCANCEL)
    return made


Run = Callable[..., Ended]


@pytest.fixture
def job(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `omb-py job`."""

    def run(*words: str) -> Ended:
        capsys.readouterr()
        code = command.main(["job", *words], prog_name="omb-py", standalone_mode=False)
        printed = capsys.readouterr()
        return Ended(code, printed.out.splitlines(), printed.err)

    return run


def slurm_has(number: str, state: str, reason: str = "None") -> None:
    """Let Slurm know of a job."""
    Path("states", number).write_text(f"{number}|{state}|{reason}\n")


def recorded(*events: str) -> None:
    """Add events, each with job and script, to the sweep's record."""
    with (JOBS / "record").open("a") as file:
        file.writelines(f"2026-11-22T20:00:00Z {event}\n" for event in events)


def points() -> tuple[SweepPoint, ...]:
    """The points of the sweep."""
    return plan(read(Path("mine.toml"), Sweep), read(Path("here.toml"), Machine)).points


def measured(point: SweepPoint) -> None:
    """Let all rows of a point be there."""
    path = Folder(FOLDER).csv(point)
    path.parent.mkdir(exist_ok=True)
    path.write_text("bytes\n" + "".join(f"{size}\n" for size in point.sizes))


def failed(point: SweepPoint, said: str) -> None:
    """Let the last attempt of a point have failed with a message."""
    attempt = Attempt(
        started="2026-11-22T20:30:00Z", seconds=1.0, exit_code=1, outcome=FAILED, rows=0, said=said
    )
    folder = Folder(FOLDER)
    (FOLDER / "state").mkdir(exist_ok=True)
    folder.note(point, PointState(attempts=(attempt,)))


def test_status_has_a_row_for_each_script(job: Run) -> None:
    recorded("1 mine-1-node submitted", "1 mine-1-node began", "1 mine-1-node ended exit=0")
    recorded("2 mine-2-nodes submitted", "2 mine-2-nodes began", "3 mine-2-nodes submitted after=2")
    slurm_has("1", "COMPLETED")
    slurm_has("2", "RUNNING")
    slurm_has("3", "PENDING", "Dependency")
    for point in points():
        if point.nodes == 1:
            measured(point)
    found = job("status", *MINE)
    title, head, _, *rows, empty, following = found.lines
    assert title == f"4 of 8 rows there, in {FOLDER}"
    assert head.split() == ["script", "rows", "job", "Slurm", "says", "why"]
    assert [row.split() for row in rows] == [
        "mine-1-node 4 of 4 1 COMPLETED its script ended with exit code 0".split(),
        "mine-2-nodes 0 of 4 3 PENDING Dependency".split(),
    ]
    assert empty == ""
    assert not missing("wait jobs 2, 3", following)
    assert found.code == 75


def test_points_that_failed_are_gathered_by_their_messages(job: Run) -> None:
    recorded("1 mine began", "1 mine ended exit=1")
    slurm_has("1", "FAILED", "NonZeroExitCode")
    first, *others = points()
    failed(first, "There are not enough slots")
    failed(others[0], "There are not enough slots")
    failed(others[1], "killed by signal 9")
    found = job("status", *MINE)
    assert not missing("mine 0 of 8 1 FAILED NonZeroExitCode; exit code 1", found.lines[3])
    failures, twice, once, following = found.lines[-4:]
    assert failures == "3 points failed:"
    log = f"{FOLDER}/logs/{first.name}.output"
    assert twice == f"  {first.describe()} and 1 more: There are not enough slots ({log})"
    log = f"{FOLDER}/logs/{others[1].name}.output"
    assert once == f"  {others[1].describe()}: killed by signal 9 ({log})"
    assert following.endswith("omb-py job submit mine.toml --machine here.toml")
    assert found.code == 1


def test_the_script_with_all_missing_rows_is_proposed(job: Run) -> None:
    job("submit", *MINE, "--nodes", "1", "--account", "ours")
    slurm_has("1234", "COMPLETED")
    all_of_it = "omb-py job submit mine.toml --machine here.toml"
    assert job("status", *MINE).lines[-1].endswith(f"; to go on: {all_of_it}")
    for point in points():
        if point.nodes == 2:
            measured(point)
    found = job("status", *MINE).lines[-1]
    assert found.endswith(f"; to go on: sbatch {JOBS}/mine-1-node.sh")
    job("submit", *MINE, "--one-job", "--dry-run")
    assert job("status", *MINE).lines[-1].endswith(f"; to go on: sbatch {JOBS}/mine.sh")


def test_an_edited_script_is_overwritten_only_by_force(job: Run) -> None:
    script = JOBS / "mine-1-node.sh"
    words = ("submit", *MINE, "--nodes", "1")
    job(*words)
    slurm_has("1234", "COMPLETED")
    job(*words, "--account", "ours")
    assert "#SBATCH --account=ours\n" in script.read_text(), "nobody has edited it"
    edited = script.read_text().replace("--time=00:30:00", "--time=00:40:00")
    script.write_text(edited)
    for more in ((), ("--dry-run",), ("--account", "ours")):
        with refuses(UsageError, "mine-1-node.sh edited --force"):
            job(*words, *more)
    assert script.read_text() == edited
    job(*words, "--force")
    assert script.read_text() != edited


def test_what_is_complete_is_not_submitted(job: Run, sandbox: Sandbox) -> None:
    job("submit", *MINE, "--one-job", "--dry-run")
    for point in points():
        if point.nodes == 1:
            measured(point)
    found = job("submit", *MINE)
    assert found.lines == [f"1234 {JOBS}/mine-2-nodes.sh"]
    assert f"no row of {JOBS}/mine-1-node.sh is missing" in found.err
    for point in points():
        measured(point)
    submitted = len(sandbox.commands())
    found = job("submit", *MINE, "--dry-run")
    assert not found.code
    assert not found.lines
    assert "is missing: it is not submitted" in found.err
    assert [words[0] for words in sandbox.commands()[submitted:]] == []
    job("submit", *MINE, "--force")
    assert sandbox.commands()[-1][0] == "sbatch"


@pytest.mark.parametrize(
    ("events", "state", "shown"),
    [
        (("ended exit=75 signalled=yes",), "PENDING", "script ended exit code 75 signal"),
        (("began",), None, "not known script killed"),
        (("began",), "TIMEOUT", "TIMEOUT script killed"),
        (("submitted",), None, "not known script not begin"),
        (("submitted", "cancelled"), "CANCELLED", "cancelled omb-py script not begin"),
    ],
)
def test_status_without_the_scheduler_is_that_of_the_record(
    job: Run, events: tuple[str, ...], state: str | None, shown: str
) -> None:
    recorded(*(f"7 mine {event}" for event in events))
    if state is not None:
        slurm_has("7", state)
    assert_names(job("status", *MINE).lines[3], shown)


def test_all_rows_there_is_exit_code_0(job: Run) -> None:
    for point in points():
        measured(point)
    found = job("status", *MINE)
    assert found.lines[0] == f"8 of 8 rows there, in {FOLDER}"
    assert (found.code, found.lines[-1]) == (0, f"complete: omb-py report {FOLDER}")


def test_a_scheduler_that_does_not_answer_leaves_the_record(job: Run, sandbox: Sandbox) -> None:
    recorded("1 mine-1-node began", "1 mine-1-node ended exit=75", "2 mine-2-nodes began")
    sandbox.stand_in(
        "squeue", "echo 'squeue: error: Unable to contact slurm controller' >&2; exit 1"
    )
    found = job("status", *MINE)
    ended, began = found.lines[3:5]
    assert not missing("no answer exit code 75", ended)
    assert began.split()[5:] == ["no", "answer"]
    assert_names(found.lines[-1], "ask again Slurm jobs 1, 2: squeue: error: Unable")
    assert found.code == 75
    (sandbox.programs / "squeue").unlink()
    assert "there is no squeue on" in job("status", *MINE).lines[-1]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_own_command_cancels(name: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    row = SCHEDULERS[name]
    monkeypatch.setattr(jobs, "said_of", lambda row, numbers: {"1": Said("R")})
    sandbox.stand_in(row.cancel[0])
    recorded("1 mine submitted")
    told: list[str] = []
    running = replace(row, running=frozenset({"R"}))
    assert jobs.cancel(running, FOLDER, told.append) == 0
    assert sandbox.commands() == [[*row.cancel, "1"]]
    assert jobs.read_record(row, FOLDER)[0].cancelled
    assert told == ["1 mine: cancelled (R before)"]


def test_jobs_are_cancelled_the_last_first_and_told(job: Run, sandbox: Sandbox) -> None:
    recorded("1 mine-1-node submitted")
    recorded(*(f"{number} mine-2-nodes submitted" for number in "234"))
    slurm_has("1", "RUNNING")
    slurm_has("2", "COMPLETED")
    slurm_has("3", "RUNNING")
    slurm_has("4", "PENDING")
    slurm_has("99", "RUNNING")
    found = job("cancel", *MINE)
    assert found.lines == [
        "4 mine-2-nodes: cancelled (PENDING before)",
        "3 mine-2-nodes: cancelled (RUNNING before)",
        "1 mine-1-node: cancelled (RUNNING before)",
    ]
    assert found.code == 0
    cancelled = [words for words in sandbox.commands() if words[0] == "scancel"]
    assert cancelled == [["scancel", "4"], ["scancel", "3"], ["scancel", "1"]]
    states = [line.split()[5] for line in job("status", *MINE).lines[3:5]]
    assert states == ["CANCELLED", "CANCELLED"]
    again = job("cancel", *MINE)
    assert_names("\n".join(again.lines), f"nothing to cancel: {FOLDER}")
    assert again.code == 0


def test_what_the_scheduler_refuses_is_told_in_its_words(job: Run, sandbox: Sandbox) -> None:
    recorded("1 mine submitted", "2 mine submitted")
    slurm_has("1", "RUNNING")
    slurm_has("2", "PENDING")
    sandbox.stand_in(
        "scancel", f'[ "$1" = 1 ] && echo "scancel: Access denied" >&2 && exit 1\n{SCANCEL}'
    )
    found = job("cancel", *MINE)
    assert found.lines == [
        "2 mine: cancelled (PENDING before)",
        "1 mine: Slurm refuses: scancel: Access denied",
    ]
    assert found.code == 1


def test_a_job_that_ends_before_it_is_cancelled_is_no_refusal(job: Run, sandbox: Sandbox) -> None:
    """Slurm's `qdel` fails without a word for a job that has ended."""
    recorded("1 mine submitted")
    slurm_has("1", "RUNNING")
    sandbox.stand_in("scancel", 'echo "1|COMPLETED|None" > states/1; exit 1')
    assert job("cancel", *MINE).code == 0


def test_only_jobs_of_the_sweep_s_record_are_cancelled(job: Run, sandbox: Sandbox) -> None:
    recorded("1 mine submitted")
    slurm_has("1", "RUNNING")
    slurm_has("99", "RUNNING")
    assert job("cancel", *MINE).code == 0
    assert [words for words in sandbox.commands() if words[0] == "scancel"] == [["scancel", "1"]]


def test_cancel_without_an_answer_refused(job: Run, sandbox: Sandbox) -> None:
    recorded("1 mine submitted")
    sandbox.stand_in("squeue", "echo 'no contact' >&2; exit 1")
    with refuses(OmbError, "Slurm job 1: no contact"):
        job("cancel", *MINE)
