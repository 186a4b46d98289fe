"""Chains of jobs: what a job asks its scheduler, how it goes on, and what it says when it ends."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from omb_py.cli import command
from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import batch, jobs, scheduler
from omb_py.sweeps.batch import BatchJob
from omb_py.sweeps.files import locked
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.jobs import JobRecord
from omb_py.sweeps.schedulers import SCHEDULERS
from tests.helpers.refusals import assert_names, refuses
from tests.sweeps.job_scripts import SWEEP, Sandbox

MACHINE = """\
name = "here"
scheduler = "{scheduler}"
launcher = "mpich"
nodes = 2
cores_per_node = 8
[job]
walltime = "30m"
{settings}
"""
FOLDER = Path("sweeps/mine-here/jobs")
SCRIPT = FOLDER / "mine.sh"
WHERE = ("mine.toml", "--machine", "here.toml")
SUBMITTED = {"cobalt": "105", "lsf": "Job <105> is submitted to queue <q>.", "flux": "f105"}


class Site:
    """A folder, stand-ins for a scheduler's commands, and `omb-py job` in this process."""

    def __init__(self, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
        self.sandbox = sandbox
        self.capsys = capsys
        self.scheduler = ""
        self.lines: list[str] = []
        """What the last command printed, on stdout and then on stderr."""

    def prepare(self, scheduler: str, *words: str, settings: str = "") -> None:
        """Write the two configurations and the script of one job for all numbers of nodes."""
        self.scheduler = scheduler
        Path("mine.toml").write_text(SWEEP)
        Path("here.toml").write_text(MACHINE.format(scheduler=scheduler, settings=settings))
        SCRIPT.parent.mkdir(parents=True, exist_ok=True)
        self.job("render", *WHERE, "--one-job", *words, "--output", str(SCRIPT))

    def job(self, *words: str) -> int:
        """Run `omb-py job`; its exit code."""
        self.capsys.readouterr()
        code = command.main(["job", *words], prog_name="omb-py", standalone_mode=False)
        said = self.capsys.readouterr()
        self.lines = [*said.out.splitlines(), *said.err.splitlines()]
        return code or 0

    def go_on(self, number: str = "7", kind: str = "resubmit", *words: str) -> int:
        """`omb-py job continue` as the script has it."""
        return self.job("continue", number, *WHERE, "--chain", kind, *words)

    def record(self, number: str, *words: str) -> None:
        """Add an event to the record."""
        jobs.append(FOLDER.parent, number, "mine", *words)

    @property
    def jobs(self) -> list[JobRecord]:
        """The jobs that are recorded."""
        return jobs.read_record(SCHEDULERS[self.scheduler], FOLDER.parent)

    def submissions(self, program: str = "sbatch") -> list[list[str]]:
        """The words of each submission."""
        return [words for name, *words in self.sandbox.commands() if name == program]


@pytest.fixture
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Site:
    """A folder to work in, with nothing of a scheduler in the environment."""
    sandbox = Sandbox(tmp_path)
    for row in SCHEDULERS.values():
        names = {one.variable for one in row.kept}
        for name in names | {*row.node_count_variables, row.host_file_variable or "NOTHING"}:
            monkeypatch.delenv(name, raising=False)
    sandbox.enter(monkeypatch)
    monkeypatch.setattr(scheduler, "RETRY_AFTER", (0.0, 0.0))
    return Site(sandbox, capsys)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_job_submits_the_next(scheduler: str, site: Site) -> None:
    site.prepare(scheduler)
    row = SCHEDULERS[scheduler]
    number = SUBMITTED.get(scheduler, "105")
    answer = "cat > standard-input; " if row.from_standard_input else ""
    site.sandbox.stand_in(row.submit[0], f"{answer}echo '{number}'")
    assert site.go_on() == 0
    program, *words = row.again or row.submit
    if row.from_standard_input:
        assert site.submissions(program) == [words]
        assert Path("standard-input").read_text() == SCRIPT.read_text()
    else:
        assert site.submissions(program)[-1] == [*words, str(SCRIPT)]
    new = "f105" if scheduler == "flux" else "105"
    assert site.jobs == [JobRecord(new, "mine", after="7")]
    assert site.lines == [f"job {new} goes on"]


def test_the_next_job_gets_what_this_one_was_submitted_with(site: Site) -> None:
    site.prepare("pbs")
    assert site.go_on("7", "resubmit", "--", "-A", "ours") == 0
    assert site.submissions("qsub") == [["-A", "ours", str(SCRIPT)]]
    assert site.go_on("8", "resubmit", "--", "-A", "$(touch PWNED)") == 75
    assert_names(site.lines[0], "scheduler: '$'")
    assert len(site.submissions("qsub")) == 1


def test_a_refusal_is_the_last_that_a_job_says(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.prepare("pbs")
    refusal = "qsub: would exceed queue generic's per-user limit"
    site.sandbox.stand_in("qsub", f'echo "{refusal}" >&2; exit 38')
    assert site.go_on() == 75
    why, how = site.lines
    assert_names(why, f"chain ends PBS {SCRIPT}: {refusal}")
    assert how == f"omb-py: 0 of 8 rows are there; to go on: cd {Path.cwd()} && qsub {SCRIPT}"
    assert len(site.submissions("qsub")) == 1, "what is refused would be refused again"


def test_a_server_that_is_away_for_a_moment_ends_no_chain(site: Site) -> None:
    site.prepare("pbs")
    answer = "if mkdir once 2> /dev/null; then echo 'qsub: cannot connect to server s (errno=111)'"
    site.sandbox.stand_in("qsub", f"{answer} >&2; exit 111; fi; echo 105")
    assert site.go_on() == 0
    assert len(site.submissions("qsub")) == 2
    site.sandbox.stand_in("qsub", "echo 'qsub: cannot connect to server s' >&2; exit 111")
    assert site.go_on() == 75


@pytest.mark.slow
def test_a_hanging_submission_is_not_repeated(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "IN_JOB_SECONDS", 1.0)
    site.prepare("pbs")
    site.sandbox.stand_in("qsub", "sleep 30")
    assert site.go_on() == 75
    assert_names(site.lines[0], "qsub 1 second")
    assert len(site.submissions("qsub")) == 1


def test_a_node_without_the_command_submits_nothing(site: Site) -> None:
    site.prepare("pbs")
    (site.sandbox.programs / "qsub").unlink()
    assert site.go_on() == 75
    assert "there is no qsub on " in site.lines[0]
    assert site.lines[1].endswith(f"qsub {SCRIPT}")


def test_a_chain_has_a_limit_of_jobs_that_a_person_lifts(site: Site) -> None:
    site.prepare("slurm", settings="max_jobs = 3")
    site.record("1", "submitted")
    for number, before in (("2", "1"), ("3", "2")):
        site.record(number, "submitted", f"after={before}")
    assert site.go_on("2") == 0
    assert site.go_on("3") == 75
    assert_names(site.lines[0], "ends 3 jobs (job.max_jobs = 3)")
    site.record("9", "submitted")
    assert site.go_on("9") == 0


def described_job() -> BatchJob:
    """The job of the configurations in the current folder."""
    return batch.find(WHERE[0], WHERE[2])


def test_what_a_signal_stopped_submits_no_other(site: Site) -> None:
    site.prepare("slurm")
    assert site.go_on("7", "resubmit", "--signalled") == 75
    assert_names(site.lines[0], "only if Slurm starts it again")
    site.record("8", "cancelled")
    assert site.go_on("8") == 75
    assert site.submissions() == []


def test_job_cancelled_while_submitting_cancels_the_next(site: Site) -> None:
    site.prepare("slurm")
    cancelled = f"echo 2026-11-22T20:00:00Z 7 mine cancelled >> {FOLDER}/record"
    site.sandbox.stand_in("sbatch", f"{cancelled}; echo 105")
    site.sandbox.stand_in("scancel")
    assert site.go_on() == 75
    assert site.submissions("scancel") == [["105"]]
    assert "ends here: it was cancelled while" in site.lines[0]


def test_a_job_of_the_script_that_waits_or_runs_goes_on(site: Site) -> None:
    site.prepare("slurm")
    for number in "678":
        site.record(number, "began")
    site.record("9", "submitted")
    site.sandbox.stand_in("squeue", "echo '6|TIMEOUT|x'; echo '8|COMPLETED|x'; echo '9|PENDING|x'")
    assert site.go_on("7") == 0
    assert site.lines == ["job 9 goes on"]
    assert site.submissions() == []
    site.sandbox.stand_in("squeue", "exit 1")
    assert site.go_on("7") == 0
    assert site.lines == ["job 1234 goes on"]


def test_what_waits_to_start_again_is_not_submitted(site: Site) -> None:
    site.prepare("slurm")
    site.record("7", "began")
    site.record("7", "ended", "exit=75", "signalled=yes")
    site.sandbox.stand_in("squeue", "echo '7|PENDING|BeginTime'")
    with refuses(UsageError, "job 7 PENDING (BeginTime)"):
        site.job("submit", *WHERE, "--one-job")


def test_jobs_that_do_not_chain_name_the_command(site: Site) -> None:
    site.prepare("slurm", "--chain", "none")
    assert site.go_on("7", "none") == 75
    assert site.submissions() == []
    assert_names(site.lines[0], "chain = none")
    assert site.lines[1].endswith(f"sbatch {SCRIPT}")


def test_too_few_nodes_end_the_chain(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.prepare("slurm")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "1")
    assert site.go_on() == 0, "points on one node are left"
    for point in described_job().points:
        if point.nodes == 1:
            path = Path("sweeps/mine-here/points", f"{point.name}.csv")
            path.parent.mkdir(exist_ok=True)
            path.write_text("bytes\n8\n16\n")
    assert site.go_on() == 75
    assert_names(site.lines[0], "2 nodes 1 node: job submit mine.toml --machine --nodes 2")
    assert_names(site.lines[1], "4 of 8 rows")


@pytest.mark.slow
def test_a_second_job_leaves_the_first_one_its_rows(site: Site) -> None:
    site.prepare("slurm")
    site.sandbox.stand_in("mpiexec", "echo HYDRA build details")
    job = described_job()
    with ExitStack() as first:
        for point in job.points:
            assert first.enter_context(locked(Folder(job.root).lock(point.name)))
        words = [sys.executable, "-m", "omb_py", "sweep", *WHERE]
        second = subprocess.run(words, capture_output=True, text=True, check=False)
        assert second.returncode == 75, second.stderr
        assert "another omb-py sweep in this folder" in second.stdout
        assert site.go_on() == 75
    ends, rows = site.lines
    assert_names(ends, "chain ends another job")
    assert_names(rows, "0 of 8 rows")
    assert site.submissions() == []
    assert site.go_on() == 0


def test_queued_or_running_sweep_is_not_resubmitted(site: Site) -> None:
    site.prepare("slurm")
    words = ("submit", *WHERE, "--nodes", "1")
    site.job(*words)
    site.sandbox.stand_in("squeue", "echo '1234|PENDING|None'")
    one = FOLDER / "mine-1-node.sh"
    with one.open("a") as script:
        script.write("# edited, for the next job\n")
    edited = one.read_text()
    with refuses(UsageError, "job 1234 PENDING"):
        site.job(*words)
    assert one.read_text() == edited
    assert len(site.submissions()) == 1
    site.job("submit", *WHERE, "--nodes", "2")
    site.job(*words, "--force")
    assert len(site.submissions()) == 3
    site.sandbox.stand_in("squeue", "echo '1234|COMPLETED|None'")
    site.job(*words)
    jobs.append(FOLDER.parent, "1234", "mine-1-node", "ended", "exit=0")
    (site.sandbox.programs / "squeue").unlink()
    site.job(*words)
    assert len(site.submissions()) == 5


def test_second_submission_without_status_is_noted(site: Site) -> None:
    site.prepare("slurm")
    words = ("submit", *WHERE, "--one-job")
    site.job(*words)
    site.job(*words)
    number, note = site.lines
    assert number == f"1234 {SCRIPT}"
    assert_names(note, f"note: job of {SCRIPT} not known")


def test_limit_of_jobs_proposes_one_job(site: Site) -> None:
    site.prepare("slurm")
    once = "if mkdir once 2> /dev/null; then echo 41; else echo 'QOSMaxSubmit' >&2; exit 1; fi"
    site.sandbox.stand_in("sbatch", once)
    words = f"Slurm {FOLDER}/mine-2-nodes.sh: QOSMaxSubmit 41 {FOLDER}/mine-1-node.sh --one-job"
    with refuses(OmbError, words):
        site.job("submit", *WHERE)
