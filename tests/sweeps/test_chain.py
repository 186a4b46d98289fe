"""Chains of jobs: what a job asks its scheduler, how it goes on, and what it says when it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from omb_py.cli import command
from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import chain, jobs, record
from omb_py.sweeps.batch import Job
from omb_py.sweeps.files import locked
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.submission import unsaid
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
        self.job("render", *WHERE, "--one-job", *words, "--dir", str(SCRIPT))

    def job(self, *words: str) -> int:
        """Run `omb-py job`; its exit code."""
        self.capsys.readouterr()
        code = command.main(["job", *words], prog_name="omb-py", standalone_mode=False)
        said = self.capsys.readouterr()
        self.lines = [*said.out.splitlines(), *said.err.splitlines()]
        return code or 0

    def begin(self, number: str = "7", at_most: int = 1740, elapsed: int = 0) -> int:
        """`omb-py job begin` as the script has it."""
        limits = ("--at-most", str(at_most), "--elapsed", str(elapsed))
        return self.job("begin", str(SCRIPT), number, *WHERE, *limits)

    def go_on(self, number: str = "7", kind: str = "resubmit", *words: str) -> int:
        """`omb-py job continue` as the script has it."""
        return self.job("continue", str(SCRIPT), number, *WHERE, "--chain", kind, *words)

    def record(self, number: str, *words: str) -> None:
        """Add an event to the record."""
        record.append(record.path_of(SCRIPT), number, words)

    @property
    def events(self) -> list[tuple[str, str, dict[str, str]]]:
        """Job, event and values of each line of the record."""
        found = record.events(record.path_of(SCRIPT), SCHEDULERS[self.scheduler])
        return [(event.job, event.name, dict(event.values)) for event in found]

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
        names = {source.variable for source in row.time_left if source.variable}
        names |= {variable for _, variable in row.kept.values()}
        for name in names | {*row.node_count_variables, row.host_file_variable or "NOTHING"}:
            monkeypatch.delenv(name, raising=False)
    sandbox.enter(monkeypatch)
    monkeypatch.setattr(jobs, "RETRY_AFTER", (0.0, 0.0))
    return Site(sandbox, capsys)


QSTAT = """\
Job Id: 7.server
    Job_Name = scaling
    resources_used.walltime = 00:00:10
    job_state = R
    Resource_List.walltime = {}
    Variable_List = PBS_O_HOME=/home/me,PBS_O_LANG=C,
\tPBS_O_WORKDIR=/home/me
"""
# By scheduler, how it says that 10 minutes are left of a job whose script began 20 s ago.
TEN_MINUTES = {
    "pbs": ("qstat", QSTAT.format("00:10:20")),
    "torque": ("qstat", QSTAT.format("01:00:00") + "    Walltime.Remaining = 600\n"),
    "cobalt": ("COBALT_ENDTIME", ""),
    "slurm": ("squeue", "10:00"),
    "lsf": ("bjobs", "0:10 L"),
    "flux": ("flux", "600"),
}


@pytest.fixture(params=SCHEDULERS)
def with_ten_minutes(
    request: pytest.FixtureRequest, site: Site, monkeypatch: pytest.MonkeyPatch
) -> Site:
    """A job whose script began 20 s ago and of which 10 minutes are left."""
    site.prepare(request.param)
    source, text = TEN_MINUTES[request.param]
    if text:
        site.sandbox.stand_in(source, f"cat <<'END'\n{text}\nEND")
    else:
        monkeypatch.setenv(source, str(round(time.time()) + 600))
    return site


def test_a_sweep_ends_before_the_scheduler_s_walltime(with_ten_minutes: Site) -> None:
    site, began = with_ten_minutes, time.time()
    assert site.begin(elapsed=20) == 0
    slack = time.time() - began + 10  # on a busy machine it takes long to ask
    (seconds,) = site.lines
    assert 540 - slack <= int(seconds) <= 540, "less job.reserve = 60 s"
    ((number, event, values),) = site.events
    assert (number, event, values["rows"]) == ("7", "", "0")
    assert abs(int(values["until"]) - began - 600) < slack


def test_the_script_s_own_walltime_holds_where_it_is_shorter(with_ten_minutes: Site) -> None:
    assert with_ten_minutes.begin(at_most=120, elapsed=20) == 0
    assert with_ten_minutes.lines == ["100"]


def test_slurm_s_variable_is_read_before_it_is_asked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.prepare("slurm")
    began = time.time()
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(round(began) + 360))
    assert site.begin() == 0
    assert 290 - (time.time() - began) <= int(site.lines[0]) <= 300
    assert site.sandbox.commands() == []


def test_torque_tells_a_node_without_its_commands(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.prepare("torque")
    monkeypatch.setenv("PBS_WALLTIME", "600")
    assert site.begin(elapsed=20) == 0
    assert site.lines == ["520"]


@pytest.mark.parametrize("answer", ["sleep 30", "echo 'cannot connect' >&2; exit 2", "echo odd"])
def test_without_an_answer_the_script_s_walltime_holds_and_it_says_so(
    answer: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "TIME_LEFT_SECONDS", 0.2)
    site.prepare("pbs")
    site.sandbox.stand_in("qstat", answer)
    assert site.begin(elapsed=3) == 0
    seconds, note = site.lines
    assert seconds == "1737"
    assert note.startswith("omb-py: note: PBS does not say how much time is left, so the script's")


def test_a_node_without_the_scheduler_s_command_is_the_same(site: Site) -> None:
    site.prepare("pbs")
    assert site.begin() == 0
    assert site.lines[0] == "1740"
    assert "there is no qstat on" in site.lines[1]


def test_too_little_time_ends_the_job_in_order(site: Site) -> None:
    site.prepare("slurm")
    site.sandbox.stand_in("squeue", "echo 1:05")
    assert site.begin() == 75
    why, how = site.lines
    assert why.startswith("omb-py: the chain of jobs ends here: only 5 s of the walltime are left")
    assert how.endswith(f"to go on: cd {Path.cwd()} && omb-py job submit {SCRIPT}")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_job_submits_the_next(scheduler: str, site: Site) -> None:
    site.prepare(scheduler)
    row = SCHEDULERS[scheduler]
    number = SUBMITTED.get(scheduler, "105")
    answer = "cat > standard-input; " if row.from_standard_input else ""
    site.sandbox.stand_in(row.submit[0], f"{answer}echo '{number}'")
    assert site.go_on() == 0
    program, *words = row.submit_again
    if row.from_standard_input:
        assert site.submissions(program) == [words]
        assert Path("standard-input").read_text() == SCRIPT.read_text()
    else:
        assert site.submissions(program)[-1] == [*words, str(SCRIPT)]
    new = "f105" if scheduler == "flux" else "105"
    assert site.events == [(new, "submitted", {"after": "7"})]
    assert site.lines == [f"job {new} goes on"]


def test_the_next_job_gets_what_this_one_was_submitted_with(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.prepare("pbs", "--queue", "debug")
    monkeypatch.setenv("PBS_ACCOUNT", "ours")
    monkeypatch.setenv("PBS_O_QUEUE", "other")
    site.go_on()
    assert site.submissions("qsub") == [["-A", "ours", str(SCRIPT)]]


@pytest.mark.parametrize(
    ("line", "option", "variable"),
    [
        ("#SBATCH --partition=fast", "--partition", "SLURM_JOB_PARTITION"),
        ("#SBATCH -p fast", "--partition", "SLURM_JOB_PARTITION"),
        ("#SBATCH --qos regular", "--partition", "SLURM_JOB_PARTITION"),
        ("#SBATCH -A ours", "--account", "SLURM_JOB_ACCOUNT"),
    ],
)
def test_what_somebody_wrote_into_the_script_holds(line: str, option: str, variable: str) -> None:
    row = SCHEDULERS["slurm"]
    (name,) = (name for name, kept in row.kept.items() if kept == (option, variable))
    assert unsaid(row, "#!/bin/bash\n", {name: "x"}) == {name: "x"}
    assert unsaid(row, f"#!/bin/bash\n{line}\n", {name: "x"}) == {}
    assert unsaid(row, f"#!/bin/bash\n#{line}\n", {name: "x"}) == {name: "x"}
    assert unsaid(row, "", {name: "$(touch PWNED)"}) == {}


def test_a_refusal_is_the_last_that_a_job_says(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.prepare("pbs")
    refusal = "qsub: would exceed queue generic's per-user limit"
    site.sandbox.stand_in("qsub", f'echo "{refusal}" >&2; exit 38')
    assert site.go_on() == 75
    why, how = site.lines
    assert why == f"omb-py: the chain of jobs ends here: PBS does not take {SCRIPT}: {refusal}"
    assert how == (
        f"omb-py: 0 of 8 rows are there; to go on: cd {Path.cwd()} && omb-py job submit {SCRIPT}"
    )
    assert len(site.submissions("qsub")) == 1, "what is refused would be refused again"


def test_a_script_that_is_submitted_again_keeps_its_account(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.prepare("pbs", "--queue", "debug")
    monkeypatch.setenv("PBS_ACCOUNT", "ours")
    monkeypatch.setenv("PBS_O_QUEUE", "other")
    site.begin()
    assert site.events[-1][2]["account"] == "ours"
    site.sandbox.stand_in("qstat", "echo 'Unknown Job Id 7' >&2; exit 153")
    site.job("submit", str(SCRIPT))
    assert site.submissions("qsub") == [["-A", "ours", str(SCRIPT)]]


def test_a_server_that_is_away_for_a_moment_ends_no_chain(site: Site) -> None:
    site.prepare("pbs")
    answer = "if mkdir once 2> /dev/null; then echo 'qsub: cannot connect to server s (errno=111)'"
    site.sandbox.stand_in("qsub", f"{answer} >&2; exit 111; fi; echo 105")
    assert site.go_on() == 0
    assert len(site.submissions("qsub")) == 2
    site.sandbox.stand_in("qsub", "echo 'qsub: cannot connect to server s' >&2; exit 111")
    assert site.go_on() == 75


def test_a_hanging_submission_is_not_repeated(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "SUBMIT_IN_JOB_SECONDS", 1.0)
    site.prepare("pbs")
    site.sandbox.stand_in("qsub", "sleep 30")
    assert site.go_on() == 75
    assert "qsub has not answered in 1 second" in site.lines[0]
    assert len(site.submissions("qsub")) == 1


def test_a_node_without_the_command_proposes_jobs_that_wait(site: Site) -> None:
    site.prepare("pbs")
    (site.sandbox.programs / "qsub").unlink()
    assert site.go_on() == 75
    assert "there is no qsub on " in site.lines[0]
    assert site.lines[0].endswith("with --chain depend several are submitted at once")


def test_a_chain_has_a_limit_of_jobs_that_a_person_lifts(site: Site) -> None:
    site.prepare("slurm", settings="max_jobs = 3")
    site.record("1", "submitted")
    for number, before in (("2", "1"), ("3", "2")):
        site.record(number, "submitted", f"after={before}")
    assert site.go_on("2") == 0
    assert site.go_on("3") == 75
    assert "ends here: it has had 3 jobs (job.max_jobs = 3)" in site.lines[0]
    site.record("9", "submitted")
    assert site.go_on("9") == 0


def ran(site: Site, number: str, rows: int, *after: str, ended: str = "exit=75") -> None:
    """Record a job that began when there were so many rows, and ended."""
    site.record(number, "submitted", *after)
    site.record(number, "began", "host=n1")
    site.record(number, f"rows={rows}")
    site.record(number, "ended", ended)


def test_jobs_that_add_no_rows_end_the_chain(site: Site) -> None:
    site.prepare("slurm", "--chain", "depend")
    ran(site, "1", 0)
    site.record("2", "submitted", "after=1")
    site.record("3", "submitted", "after=2")
    site.record("4", "submitted", "after=3")
    assert site.begin("2") == 0
    assert site.begin("3") == 0, "job 2 was deleted before it began"
    site.record("3", "began", "host=n1")
    assert site.begin("4") == 75
    assert "the last 2 jobs of this chain added no row (job.max_idle_jobs = 2)" in site.lines[0]


def test_jobs_that_came_further_end_no_chain(site: Site) -> None:
    site.prepare("slurm", "--chain", "depend", settings="max_idle_jobs = 1")
    ran(site, "1", 0)
    csv = Path("sweeps/mine-here/points")
    assert site.job("begin", str(SCRIPT), "1", *WHERE, "--at-most=99", "--elapsed=0") == 0
    csv.mkdir(parents=True)
    first = chain.Link(described_job(), SCRIPT, "1", None).points[0]
    (csv / f"{first.name}.csv").write_text("bytes\n8\n")
    site.record("2", "submitted", "after=1")
    assert site.begin("2") == 0
    assert site.events[-1][2]["rows"] == "1"


def described_job() -> Job:
    """The job of the configurations in the current folder."""
    from omb_py.cli.job import described

    return described(WHERE[0], WHERE[2], None)


def test_a_cancelled_chain_stays_away(site: Site) -> None:
    site.prepare("slurm")
    site.sandbox.stand_in("squeue", "echo '7|CANCELLED|15|28:10|None|mine|x|'")
    assert site.go_on("7", "resubmit", "--signalled") == 75
    assert site.submissions() == []
    assert "ends here: this job was cancelled" in site.lines[0]
    site.sandbox.stand_in("squeue", "echo '1|CANCELLED|15|28:10|None|mine|x|'")
    ran(site, "1", 0, ended="signalled=yes")
    site.record("2", "submitted", "after=1")
    site.record("3", "submitted", "after=2")
    for number in ("2", "3"):
        assert site.begin(number) == 75
        assert "ends here: job 1 of this chain was cancelled" in site.lines[0]


COMPLETING = "echo '7|COMPLETING|0|28:10|None|mine|/x|'"
SLURMD = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-22T20:00:00 {}***"


@pytest.mark.parametrize(
    ("answer", "log", "code", "words"),
    [
        ("echo '7|PENDING|0|30:00|BeginTime|mine|x|'", "", 0, "job 7 goes on"),
        (COMPLETING, SLURMD.format("DUE TO JOB REQUEUE "), 0, "job 7 goes on"),
        (COMPLETING, SLURMD.format(""), 75, "ends here: this job was cancelled"),
        (COMPLETING, SLURMD.format("DUE TO PREEMPTION "), 75, "only if Slurm starts it again"),
        ("exit 1", "", 75, "a signal stopped this job before its time was over"),
    ],
)
def test_what_a_signal_stopped_may_start_again(
    site: Site, answer: str, log: str, code: int, words: str
) -> None:
    site.prepare("slurm")
    Path("slurm-7.out").write_text(f"rows\n{log}\n")
    site.sandbox.stand_in("squeue", answer.replace("/x", str(Path("slurm-7.out").absolute())))
    assert site.go_on("7", "resubmit", "--signalled") == code
    assert words in site.lines[0]
    assert site.submissions() == []


def test_jobs_after_one_that_started_again_go_on(site: Site) -> None:
    site.prepare("slurm")
    site.record("1", "submitted")
    site.record("1", "began", "start=5.1")
    site.record("2", "submitted", "after=1")
    site.record("1", "ended", "exit=75", "signalled=yes", "start=5.1")
    assert site.begin("2") == 0, "nobody says that job 1 was cancelled"
    site.record("1", "began", "start=7.1")
    site.record("1", "ended", "exit=75", "start=7.1")
    site.sandbox.stand_in("squeue", "echo '1|CANCELLED|15|28:10|None|mine|x|'")
    assert site.begin("2") == 0


def test_what_waits_to_start_again_is_not_submitted(site: Site) -> None:
    site.prepare("slurm")
    site.record("7", "began", "start=5.1")
    site.record("7", "ended", "exit=75", "signalled=yes", "start=5.1")
    site.sandbox.stand_in("squeue", "echo '7|PENDING|0|30:00|BeginTime|mine|x|'")
    with pytest.raises(UsageError, match=r"job 7 of .* is waiting and goes on by itself"):
        site.job("submit", str(SCRIPT))


def test_where_jobs_do_not_chain_the_last_lines_say_how_to_go_on(site: Site) -> None:
    site.prepare("slurm", "--chain", "none")
    assert site.go_on("7", "none") == 75
    assert site.submissions() == []
    assert "its jobs do not submit others (chain = none)" in site.lines[0]
    assert site.lines[1].endswith(f"omb-py job submit {SCRIPT}")


def test_a_job_that_another_waits_for_submits_none(site: Site) -> None:
    site.prepare("slurm", "--chain", "depend")
    site.record("7", "submitted")
    site.record("8", "submitted", "after=7")
    site.sandbox.stand_in("squeue", "echo '8|PENDING|0|30:00|None|mine|x|'")
    assert site.go_on("7", "depend") == 0
    assert site.lines == ["job 8 goes on"]
    site.sandbox.stand_in("squeue", "echo '8|CANCELLED|15|0:00|None|mine|x|'")
    assert site.go_on("7", "depend") == 75
    assert "no other job waits for the end of this one" in site.lines[0]
    assert site.lines[1].endswith(f"omb-py job submit --jobs 1 {SCRIPT}")
    assert site.submissions() == []


def test_points_that_need_more_nodes_than_there_are_do_not_go_round_in_circles(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.prepare("slurm", "--account", "ours")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "1")
    assert site.go_on() == 0, "points on one node are left"
    for point in chain.Link(described_job(), SCRIPT, "1", None).points:
        if point.nodes == 1:
            path = Path("sweeps/mine-here/points", f"{point.name}.csv")
            path.parent.mkdir(exist_ok=True)
            path.write_text("bytes\n8\n16\n")
    assert site.go_on() == 75
    assert "all that is left needs 2 nodes, and this job has 1" in site.lines[0]
    again = "omb-py job submit mine.toml --machine here.toml --account ours --nodes 2"
    assert site.lines[1] == (f"omb-py: 4 of 8 rows are there; to go on: cd {Path.cwd()} && {again}")


def test_a_second_job_leaves_the_first_one_its_rows(site: Site) -> None:
    site.prepare("slurm")
    site.sandbox.stand_in("mpiexec", "echo HYDRA build details")
    link = chain.Link(described_job(), SCRIPT, "7", None)
    with ExitStack() as first:
        for point in link.points:
            assert first.enter_context(locked(link.folder.lock(point.name)))
        words = [sys.executable, "-m", "omb_py", "sweep", *WHERE]
        second = subprocess.run(words, capture_output=True, text=True, check=False)
        assert second.returncode == 75, second.stderr
        assert "another omb-py sweep in this folder measures them" in second.stdout
        assert site.go_on() == 75
    assert site.lines == [
        "omb-py: the chain of jobs ends here: another job measures what is left",
        "omb-py: 0 of 8 rows are there",
    ]
    assert site.submissions() == []
    assert site.go_on() == 0


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_jobs_that_depend_are_submitted_at_once(scheduler: str, site: Site) -> None:
    site.prepare(scheduler)
    row = SCHEDULERS[scheduler]
    answer = {"lsf": 'echo "Job <$(cat n)> is submitted."', "flux": 'echo "f$(cat n)"'}
    count = "echo $(( $(cat n 2> /dev/null || echo 0) + 1 )) > m; cat m > n; "
    if row.from_standard_input:
        count = "cat > standard-input; " + count
    site.sandbox.stand_in(row.submit[0], count + answer.get(scheduler, "cat n"))
    assert site.job("submit", *WHERE, "--one-job", "--chain", "depend", "--jobs", "3") == 0
    numbers = [line.split()[0] for line in site.lines]
    assert numbers == (["f1", "f2", "f3"] if scheduler == "flux" else ["1", "2", "3"])
    waits = {
        "pbs": ["-W", f"depend=afterany:{numbers[1]}"],
        "torque": ["-W", f"depend=afterany:{numbers[1]}"],
        "cobalt": ["--dependencies", numbers[1]],
        "slurm": [f"--dependency=afterany:{numbers[1]}"],
        "lsf": ["-w", f"ended({numbers[1]})"],
        "flux": [f"--dependency=afterany:{numbers[1]}"],
    }
    given = [] if row.from_standard_input else [str(SCRIPT)]
    program, *words = row.submit
    assert site.submissions(program)[-1] == [*words, *waits[scheduler], *given]
    assert site.events == [
        (numbers[0], "submitted", {}),
        (numbers[1], "submitted", {"after": numbers[0]}),
        (numbers[2], "submitted", {"after": numbers[1]}),
    ]


def test_as_many_jobs_depend_as_the_sweep_may_take(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "remaining", lambda points, folder, machine: (4000.0, False))
    site.prepare("slurm")
    words = ("submit", *WHERE, "--one-job", "--chain", "depend")
    assert site.job(*words, "--dry-run") == 0
    assert site.lines == [
        f"sbatch {SCRIPT}",
        *[f"sbatch --dependency=afterany:JOB {SCRIPT}"] * 2,
    ], "1740 s each"
    site.prepare("slurm", settings="max_jobs = 2\nchain = 'depend'")
    assert site.job(*words, "--dry-run") == 0
    assert len(site.lines) == 2
    with pytest.raises(UsageError, match=r"mine\.sh submits its next job itself: --jobs is for"):
        site.job("submit", *WHERE, "--one-job", "--chain", "resubmit", "--jobs", "2")


def test_a_sweep_that_is_queued_or_running_is_not_submitted_twice(site: Site) -> None:
    site.prepare("slurm")
    words = ("submit", *WHERE, "--nodes", "1")
    site.job(*words)
    site.sandbox.stand_in("squeue", "echo '1234|PENDING|0|30:00|None|mine|x|'")
    one = FOLDER / "mine-1-node.sh"
    with one.open("a") as script:
        script.write("# edited, for the next job\n")
    edited = one.read_text()
    for again in (words, ("submit", str(one))):
        with pytest.raises(UsageError, match=r"job 1234 of \S+ is waiting and goes on by itself"):
            site.job(*again)
    assert one.read_text() == edited
    assert len(site.submissions()) == 1
    site.job("submit", *WHERE, "--nodes", "2")
    site.job(*words, "--force")
    assert len(site.submissions()) == 3
    site.sandbox.stand_in("squeue", "echo '1234|COMPLETED|0|0:00|None|mine|x|'")
    site.job(*words)
    record.append(record.path_of(one), "1234", ["ended", "exit=0"])
    (site.sandbox.programs / "squeue").unlink()
    site.job(*words)
    assert len(site.submissions()) == 5


def test_where_the_scheduler_does_not_say_a_second_submission_is_noted(site: Site) -> None:
    site.prepare("slurm")
    words = ("submit", *WHERE, "--one-job")
    site.job(*words)
    site.job(*words)
    number, note = site.lines
    assert number == f"1234 {SCRIPT}"
    assert note.startswith(f"omb-py: note: whether a job of {SCRIPT} is queued or running is not ")


def test_a_limit_of_jobs_names_what_was_taken_and_proposes_one_job(site: Site) -> None:
    site.prepare("slurm")
    refuses = "if mkdir once 2> /dev/null; then echo 41; else echo 'QOSMaxSubmit' >&2; exit 1; fi"
    site.sandbox.stand_in("sbatch", refuses)
    with pytest.raises(OmbError) as caught:
        site.job("submit", *WHERE)
    assert f"Slurm does not take {FOLDER}/mine-2-nodes.sh: QOSMaxSubmit" in str(caught.value)
    assert f"submitted so far: 41 {FOLDER}/mine-1-node.sh" in str(caught.value)
    assert "one job for all numbers of nodes by --one-job" in str(caught.value)
