"""`omb-py job status` and `omb-py job cancel`, with stand-ins for Slurm's commands."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from omb_py.cli import command
from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import cancelling
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.folder import FAILED, Attempt, Folder, State
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import Point, plan
from omb_py.sweeps.record import read_jobs
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.toml import read
from tests.cli.test_job import MACHINE, MINE
from tests.sweeps.job_scripts import SWEEP, Sandbox

FOLDER = Path("sweeps/mine-here")
JOBS = FOLDER / "jobs"
SQUEUE = 'for file in states/*; do [ ! -e "$file" ] || echo "$(< "$file")"; done'
SCANCEL = 'echo "$1|CANCELLED|15|0:00|None|mine|$PWD/slurm-$1.out|" > states/$1'


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
    monkeypatch.setattr(cancelling, "FIRST_PAUSE", 0.01)
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


def slurm_has(number: str, state: str, exit_status: str = "0", left: str = "0:00") -> None:
    """Let Slurm know of a job."""
    output = f"{Path.cwd()}/slurm-{number}.out"
    Path("states", number).write_text(
        f"{number}|{state}|{exit_status}|{left}|None|mine|{output}|\n"
    )


def recorded(script: str, *events: str) -> None:
    """Add events to the record of a script, one a second."""
    path = JOBS / f"{script}.record"
    before = len(path.read_text().splitlines()) if path.exists() else 0
    with path.open("a") as file:
        for second, event in enumerate(events, before):
            file.write(f"2026-11-22T20:00:{second:02d}Z {event}\n")


def points() -> tuple[Point, ...]:
    """The points of the sweep."""
    return plan(read(Path("mine.toml"), Sweep), read(Path("here.toml"), Machine)).points


def measured(point: Point) -> None:
    """Let all rows of a point be there."""
    path = Folder(FOLDER).csv(point)
    path.parent.mkdir(exist_ok=True)
    path.write_text("bytes\n" + "".join(f"{size}\n" for size in point.sizes))


def failed(point: Point, said: str) -> None:
    """Let the last attempt of a point have failed with a message."""
    attempt = Attempt(
        started="2026-11-22T20:30:00Z", seconds=1.0, exit_code=1, outcome=FAILED, rows=0, said=said
    )
    folder = Folder(FOLDER)
    (FOLDER / "state").mkdir(exist_ok=True)
    folder.note(point, State(attempts=(attempt,)))


def test_each_job_has_a_row_with_its_state_rows_and_output(job: Run) -> None:
    recorded("mine-1-node", "1 submitted", "1 began", "1 ended exit=0")
    recorded("mine-2-nodes", "2 submitted", "2 began")
    recorded("mine-2-nodes", "3 submitted after=2")
    slurm_has("1", "COMPLETED")
    slurm_has("2", "RUNNING", left="30:00")
    slurm_has("3", "PENDING")
    Path("slurm-1.out").touch()
    for point in points():
        if point.nodes == 1:
            measured(point)
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() + 1800))
    found = job("status", *MINE)
    assert [line.split() for line in found.lines] == [
        ["job", "script", "state", "rows", "output"],
        ["1", "mine-1-node", "finished", "4", "of", "4", "slurm-1.out"],
        [
            *("2", "mine-2-nodes", "running", "until", *until.split(), "0", "of", "4"),
            *("slurm-2.out", "(not", "there", "yet)"),
        ],
        [*("3", "mine-2-nodes", "waiting", "0", "of", "4"), "slurm-3.out", "(not", "there", "yet)"],
        f"4 of 8 rows there, in {FOLDER}".split(),
    ]
    assert found.code == 75


def test_points_that_failed_are_gathered_by_their_messages(job: Run) -> None:
    recorded("mine", "1 began", "1 ended exit=1")
    first, *others = points()
    failed(first, "There are not enough slots")
    failed(others[0], "There are not enough slots")
    failed(others[1], "killed by signal 9")
    found = job("status", *MINE)
    assert "failed (exit status 1)" in found.lines[1]
    assert found.lines[-4:] == [
        "3 points failed:",
        f"  {first.describe()} and 1 more: There are not enough slots ({FOLDER}/logs/{first.name}"
        ".output)",
        f"  {others[1].describe()}: killed by signal 9 ({FOLDER}/logs/{others[1].name}.output)",
        "no job waits or runs; to go on: omb-py job submit mine.toml --machine here.toml",
    ]
    assert found.code == 1


def test_scripts_with_missing_rows_are_proposed(job: Run, sandbox: Sandbox) -> None:
    job("submit", *MINE, "--nodes", "1", "--account", "ours")
    slurm_has("1234", "COMPLETED")
    one, two = "omb-py job submit mine.toml --machine here.toml", f"{JOBS}/mine-1-node.sh"
    assert job("status", *MINE).lines[-1].endswith(f": omb-py job submit {two} && {one} --nodes 2")
    for point in points():
        if point.nodes == 1:
            measured(point)
    assert job("status", *MINE).lines[-1].endswith(f"; to go on: {one}")
    sandbox.stand_in("sbatch", "echo 1235")
    job("submit", *MINE, "--one-job")
    slurm_has("1235", "COMPLETED")
    proposed = json.loads("\n".join(job("status", *MINE, "--json").lines))["to_go_on"]
    assert proposed == f"omb-py job submit {JOBS}/mine.sh"


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
        with pytest.raises(UsageError, match=r"mine-1-node\.sh was edited: submit it as it is by"):
            job(*words, *more)
    assert job("submit", str(script)).lines == [f"1234 {script}"]
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
    for words in ((*MINE, "--dry-run"), (str(JOBS / "mine.sh"),)):
        found = job("submit", *words)
        assert not found.code
        assert not found.lines
        assert "is missing: it is not submitted" in found.err
    assert [words[0] for words in sandbox.commands()[submitted:]] == []
    job("submit", str(JOBS / "mine.sh"), "--force")
    assert sandbox.commands()[-1][0] == "sbatch"


def test_json_has_all_of_it(job: Run) -> None:
    recorded("mine-1-node", "1 submitted", "1 began until=1795379100", "1 ended exit=75")
    failed(points()[0], "why")
    found = json.loads("\n".join(job("status", *MINE, "--json").lines))
    assert found["rows"] == 0
    assert found["planned"] == found["missing"] == 8
    (one,) = found["jobs"]
    assert (one["state"], one["exit_status"], one["words"]) == (
        *("stopped", 75, "stopped with more to do"),
    )
    assert (one["nodes"], one["planned"], one["until"]) == (1, 4, 1795379100.0)
    assert (one["output"], one["output_is_there"]) == ("mine-1n.o1", False)
    assert found["failures"][0]["message"] == "why"


def test_a_job_stopped_by_a_signal_is_not_cancelled_until_slurm_says_so(job: Run) -> None:
    recorded("mine", "7 began start=5.1", "7 ended exit=75 signalled=yes start=5.1")
    assert "stopped by a signal" in job("status", *MINE).lines[1]
    slurm_has("7", "PENDING", left="30:00")
    found = job("status", *MINE)
    assert "waiting (to start again)" in found.lines[1]
    assert (found.code, "to go on" in found.lines[-1]) == (75, False)
    slurm_has("7", "CANCELLED", "15")
    assert "cancelled" in job("status", *MINE).lines[1]


def test_a_job_is_finished_or_another_goes_on(job: Run) -> None:
    """Each began with so many rows; the third was submitted in time, and was not needed."""
    recorded("mine", "1 submitted", "1 began", "1 rows=0", "2 submitted after=1")
    recorded("mine", "1 ended exit=0", "2 began", "2 rows=6", "3 submitted after=2")
    recorded("mine", "2 ended exit=0", "3 began", "3 rows=8", "3 ended exit=0")
    for point in points():
        measured(point)
    found = json.loads("\n".join(job("status", *MINE, "--json").lines))
    assert [one["words"] for one in found["jobs"]] == [
        "stopped with more to do (2 goes on)",
        "finished",
        "finished",
    ]


def test_all_rows_there_is_exit_code_0(job: Run) -> None:
    for point in points():
        measured(point)
    found = job("status", *MINE)
    assert (found.code, found.lines[-1]) == (0, f"8 of 8 rows there, in {FOLDER}")


def test_a_scheduler_that_does_not_answer_leaves_the_record(job: Run, sandbox: Sandbox) -> None:
    recorded("mine", "1 began", "1 ended exit=75")
    recorded("mine", "2 began")
    sandbox.stand_in(
        "squeue", "echo 'squeue: error: Unable to contact slurm controller' >&2; exit 1"
    )
    found = job("status", *MINE)
    assert [line.split()[2] for line in found.lines[1:3]] == ["stopped", "unknown"]
    assert found.err.startswith(
        "omb-py: Slurm does not tell about jobs 1, 2: squeue: error: Unable"
    )
    assert found.code == 69
    (sandbox.programs / "squeue").unlink()
    assert "there is no squeue on" in job("status", *MINE).err


def test_cobalt_forgets_jobs_and_their_files_tell_how_they_ended(
    job: Run, sandbox: Sandbox
) -> None:
    Path("here.toml").write_text(MACHINE.replace("slurm", "cobalt"))
    sandbox.stand_in("qstat", "exit 1")  # as it does when it knows none of the jobs
    recorded("mine", "1 began", "2 began", "3 began", "4 began", "4 ended exit=75")
    log = "Sun Nov 22 20:00:00 2026 +0000 (UTC) Info:"
    Path("1.cobaltlog").write_text(f"{log} maximum execution time exceeded; initiating job\n")
    Path("2.cobaltlog").write_text(f"{log} task completed normally with an exit code of 1; in\n")
    Path("1.output").touch()
    lines = [line.split(maxsplit=2)[2] for line in job("status", *MINE).lines[1:5]]
    assert [" ".join(line.split()) for line in lines] == [
        "killed at its walltime 0 of 8 1.output",
        "failed (exit status 1) 0 of 8 2.output (not there)",
        "killed 0 of 8 3.output (not there)",
        "stopped with more to do 0 of 8 4.output (not there)",
    ]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_each_scheduler_s_own_command_cancels(name: str, sandbox: Sandbox) -> None:
    row = SCHEDULERS[name]
    sandbox.stand_in(row.cancel[0])
    recorded("mine", "1 submitted")
    (one,) = read_jobs(row, FOLDER)
    assert cancelling.cancel_one(row, FOLDER, one) == ""
    assert sandbox.commands() == [[*row.cancel, "1"]]
    assert read_jobs(row, FOLDER)[0].cancelled


def test_jobs_are_cancelled_the_last_first_and_told(job: Run, sandbox: Sandbox) -> None:
    recorded("mine-1-node", "1 submitted")
    recorded("mine-2-nodes", "2 submitted", "3 submitted", "4 submitted")
    slurm_has("1", "RUNNING")
    slurm_has("2", "COMPLETED")
    slurm_has("3", "RUNNING")
    slurm_has("4", "PENDING")
    slurm_has("99", "RUNNING")
    found = job("cancel", *MINE)
    assert found.lines == [
        "4 mine-2-nodes: cancelled (waiting before)",
        "3 mine-2-nodes: cancelled (running before)",
        "1 mine-1-node: cancelled (running before)",
    ]
    assert found.code == 0
    cancelled = [words for words in sandbox.commands() if words[0] == "scancel"]
    assert cancelled == [["scancel", "4"], ["scancel", "3"], ["scancel", "1"]]
    states = [line.split()[2] for line in job("status", *MINE).lines[1:5]]
    assert states == ["cancelled", "finished", "cancelled", "cancelled"]
    again = job("cancel", *MINE)
    assert again.lines == [f"nothing to cancel: none of 4 jobs in {FOLDER} waits or runs"]
    assert again.code == 0


@pytest.mark.parametrize(
    ("words", "left"), [(("--nodes", "1"), {"2", "3"}), (("2",), {"1", "3"}), (("3", "1"), {"2"})]
)
def test_some_of_the_jobs_can_be_chosen(job: Run, words: tuple[str, ...], left: set[str]) -> None:
    recorded("mine-1-node", "1 submitted")
    recorded("mine-2-nodes", "2 submitted", "3 submitted")
    for number in "123":
        slurm_has(number, "RUNNING")
    assert job("cancel", *MINE, *words).code == 0
    running = {path.name for path in Path("states").iterdir() if "RUNNING" in path.read_text()}
    assert running == left


def test_a_job_that_is_submitted_in_that_moment_is_cancelled_too(
    job: Run, sandbox: Sandbox
) -> None:
    recorded("mine", "1 submitted")
    slurm_has("1", "RUNNING")
    follow = (
        'if [ "$1" = 1 ]; then echo "2|PENDING|0|0:00|None|mine|x|" > states/2; '
        f"echo 2026-11-22T20:00:00Z 2 submitted after=1 >> {JOBS}/mine.record; fi"
    )
    sandbox.stand_in("scancel", f"{SCANCEL}\n{follow}")
    found = job("cancel", *MINE, "1")
    assert found.lines == [
        "1 mine: cancelled (running before)",
        "2 mine: cancelled (waiting before)",
    ]
    assert found.code == 0


def test_what_the_scheduler_refuses_is_told_in_its_words(job: Run, sandbox: Sandbox) -> None:
    recorded("mine", "1 submitted", "2 submitted")
    slurm_has("1", "RUNNING")
    slurm_has("2", "PENDING")
    sandbox.stand_in(
        "scancel", f'[ "$1" = 1 ] && echo "scancel: Access denied" >&2 && exit 1\n{SCANCEL}'
    )
    found = job("cancel", *MINE)
    assert found.lines == [
        "2 mine: cancelled (waiting before)",
        "1 mine: Slurm does not cancel it: scancel: Access denied",
    ]
    assert found.code == 1


def test_a_job_that_ends_before_it_is_cancelled_is_no_refusal(job: Run, sandbox: Sandbox) -> None:
    """Slurm's `qdel` fails without a word for a job that has ended."""
    recorded("mine", "1 submitted")
    slurm_has("1", "RUNNING")
    sandbox.stand_in("scancel", 'echo "1|COMPLETED|0|0:00|None|mine|x|" > states/1; exit 1')
    assert job("cancel", *MINE).code == 0


def test_a_job_that_does_not_end_is_told(
    job: Run, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancelling, "PATIENCE", 0.1)
    recorded("mine", "1 submitted")
    slurm_has("1", "RUNNING")
    sandbox.stand_in("scancel")
    found = job("cancel", *MINE)
    assert found.lines[-1] == "1 mine: Slurm has not ended it in 0.1 seconds"
    assert found.code == 1


def test_only_jobs_of_the_sweep_s_record_are_cancelled(job: Run, sandbox: Sandbox) -> None:
    recorded("mine", "1 submitted")
    slurm_has("1", "RUNNING")
    slurm_has("99", "RUNNING")
    with pytest.raises(
        UsageError, match=rf"99 is not a job of {FOLDER}: 'omb-py job status' lists"
    ):
        job("cancel", *MINE, "1", "99")
    assert [words for words in sandbox.commands() if words[0] == "scancel"] == []


def test_without_a_word_of_the_scheduler_nothing_is_cancelled(job: Run, sandbox: Sandbox) -> None:
    recorded("mine", "1 submitted")
    sandbox.stand_in("squeue", "echo 'no contact' >&2; exit 1")
    with pytest.raises(OmbError, match="Slurm does not tell about job 1: no contact"):
        job("cancel", *MINE)
