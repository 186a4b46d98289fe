"""Chains of jobs: what a job asks its scheduler, how it goes on, and what it says when it ends."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.cli import command
from omb_py.core.errors import OmbError
from omb_py.sweeps import jobs, schedulers, sweep_job
from omb_py.sweeps.files import locked
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.jobs import append, jobs_of_chain, read_record
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.sweep_job import SweepJob
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
        self.lines: list[str] = []
        """What the last command printed, on stdout and then on stderr."""

    def prepare(self, scheduler: str, *words: str, settings: str = "") -> None:
        """Write the two configurations and the script of one job for all numbers of nodes."""
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

    def record(self, number: str, *before: str) -> None:
        """Add a job to the record."""
        jobs.append(FOLDER.parent, number, "mine", *before)

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
        for name in {*row.node_count_variables, row.host_file_variable or "NOTHING"}:
            monkeypatch.delenv(name, raising=False)
    sandbox.enter(monkeypatch)
    monkeypatch.setattr(schedulers, "RETRY_SECONDS", 0.1)
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
    assert jobs.read_record(FOLDER.parent) == {new: "7"}
    assert site.lines == [f"job {new} goes on"]


def test_a_refusal_is_the_last_that_a_job_says(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.prepare("pbs")
    refusal = "qsub: would exceed queue generic's per-user limit"
    site.sandbox.stand_in("qsub", f'echo "{refusal}" >&2; exit 38')
    assert site.go_on() == 75
    why, how = site.lines
    assert_names(why, f"chain ends PBS {SCRIPT}: {refusal}")
    assert how == f"omb-py: 0 of 8 rows are there; to go on: cd {Path.cwd()} && qsub {SCRIPT}"
    assert len(site.submissions("qsub")) == 1, "what is refused would be refused again"


@pytest.mark.slow
def test_a_server_that_is_away_for_a_moment_ends_no_chain(site: Site) -> None:
    site.prepare("pbs")
    answer = "if mkdir once 2> /dev/null; then echo 'qsub: cannot connect to server s (errno=111)'"
    site.sandbox.stand_in("qsub", f"{answer} >&2; exit 111; fi; echo 105")
    assert site.go_on("7", "resubmit", "--seconds", "60") == 0
    assert len(site.submissions("qsub")) == 2
    site.sandbox.stand_in("qsub", "echo 'Proxy.py :L#422:cn:queue-manager' >&2; exit 1")
    assert site.go_on("7", "resubmit", "--seconds", "1.0") == 75
    assert 4 < len(site.submissions("qsub")) < 14, "until the time of the job is over"


def test_job_that_slurm_starts_again_names_no_command(site: Site) -> None:
    site.prepare("slurm")
    site.sandbox.stand_in("scontrol", "echo '   Requeue=1 Restarts=1 BatchFlag=1'")
    assert site.go_on("7", "resubmit", "--signalled") == 75
    assert site.lines == [
        "omb-py: the chain of jobs ends here: Slurm starts this job again",
        "omb-py: 0 of 8 rows are there",
    ]


@pytest.mark.slow
def test_a_hanging_submission_is_not_repeated(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedulers, "IN_JOB_SECONDS", 1.0)
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
    site.record("1")
    for number, before in (("2", "1"), ("3", "2")):
        site.record(number, before)
    assert site.go_on("2") == 0
    assert site.go_on("3") == 75
    assert_names(site.lines[0], "ends 3 jobs (job.max_jobs = 3)")
    site.record("9")
    assert site.go_on("9") == 0


def described_job() -> SweepJob:
    """The job of the configurations in the current folder."""
    return sweep_job.find(WHERE[0], WHERE[2])


def test_what_a_signal_stopped_submits_no_other(site: Site) -> None:
    site.prepare("slurm")
    assert site.go_on("7", "resubmit", "--signalled") == 75
    assert_names(site.lines[0], "only if Slurm starts it again")
    assert site.submissions() == []


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


def test_rows_measured_before_the_lock_is_free_are_not_left(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.prepare("slurm")

    def finished(path: Path) -> AbstractContextManager[bool]:
        rows = FOLDER.parent / "points" / f"{path.stem}.csv"
        rows.parent.mkdir(exist_ok=True)
        rows.write_text("bytes\n8\n16\n")
        return locked(path)

    monkeypatch.setattr(jobs, "locked", finished)
    assert site.go_on() == 75
    assert_names(site.lines[0], "chain ends another job measured")
    assert_names(site.lines[1], "8 of 8 rows")


def test_limit_of_jobs_proposes_one_job(site: Site) -> None:
    site.prepare("slurm")
    once = "if mkdir once 2> /dev/null; then echo 41; else echo 'QOSMaxSubmit' >&2; exit 1; fi"
    site.sandbox.stand_in("sbatch", once)
    words = f"Slurm {FOLDER}/mine-2-nodes.sh: QOSMaxSubmit 41 {FOLDER}/mine-1-node.sh --one-job"
    with refuses(OmbError, words):
        site.job("submit", *WHERE)


def test_recorded_jobs_are_read_with_the_job_that_submitted_them(tmp_path: Path) -> None:
    append(tmp_path, "122.server", "mine")
    append(tmp_path, "123.server", "mine", "122.server")
    assert read_record(tmp_path) == {"122.server": None, "123.server": "122.server"}


def test_incomplete_line_is_ignored(tmp_path: Path) -> None:
    append(tmp_path, "1", "mine")
    with (tmp_path / "jobs/record").open("a") as file:
        file.write("\n2026-11-22T20:00:00Z\n2026-11-22T20:00:00Z 2 mine 1")
    assert read_record(tmp_path) == {"1": None}


def test_jobs_of_a_chain_are_counted_from_a_person_s_submission() -> None:
    known = {"1": None, "2": "1", "3": "2", "9": None}
    counts = {number: jobs_of_chain(known, number) for number in ("1", "3", "9", "10")}
    assert counts == {"1": 1, "3": 3, "9": 1, "10": 1}


def test_circle_of_jobs_is_counted_once() -> None:
    assert jobs_of_chain({"1": "2", "2": "1"}, "1") == 2


PIECES = st.sampled_from(
    [
        "2026-11-22T20:00:00Z",
        "1",
        "1.server",
        "mine",
        " ",
        "=",
        "\n",
        "\r",
        "\x00",
        "\u2028",
        "\udcff",
    ]
)


@given(st.text() | st.lists(PIECES).map(" ".join))
def test_any_text_gives_jobs_or_is_ignored(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "jobs", "record")
        path.parent.mkdir()
        path.write_bytes(text.encode(errors="surrogateescape" if "\udcff" in text else "replace"))
        found = read_record(Path(folder))
        assert all(jobs_of_chain(found, number) >= 1 for number in found)
