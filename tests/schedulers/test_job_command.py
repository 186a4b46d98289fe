"""`omb-py job` and its scripts on a real Slurm, through `sbatch` and through Torque's `qsub`."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omb_py.sweeps.jobs import read_record
from tests import ROOT
from tests.conftest import rows_of
from tests.helpers.refusals import assert_names, missing
from tests.schedulers.batch import Slurm, output, state, submit, wait_for_end, wait_until

SWEEP = """\
name = "mine"
[[experiments]]
benchmarks = "allreduce"
bindings = "buffer"
ranks = 2
nodes = [1, 2]
sizes = "8:64"
options = {{ {options} }}
"""
HANGING = SWEEP.replace('"buffer"', '"hanging"').replace('"8:64"', '"4,8"')
HANGING += 'environment = {{ OMB_TEST_RANK = "0" }}\n'
"""Its first row is there soon, and its second one never."""

ROWS = 8
QUICK, SLOW = "iterations = 10", "iterations = 1000000, max-time = {}"
MACHINE = """\
name = "here"
scheduler = "{scheduler}"
launcher = "mpich"
nodes = 2
cores_per_node = 4
oversubscribe = true

[job]
walltime = "10m"
reserve = "42s"
"""
SECONDS = 240.0
MINE = ("mine.toml", "--machine", "here.toml")


def omb_py(slurm: Slurm, folder: Path, *words: str) -> list[str]:
    """The lines that a command of the suite prints."""
    return slurm.run(sys.executable, "-m", "omb_py", *words, cwd=folder).splitlines()


def prepare(
    folder: Path, scheduler: str, row_seconds: float | None = None, sweep: str = SWEEP
) -> None:
    """Put the two configurations into a folder; each row takes so long, or next to nothing."""
    options = QUICK if row_seconds is None else SLOW.format(row_seconds)
    (folder / "mine.toml").write_text(sweep.format(options=options))
    (folder / "here.toml").write_text(MACHINE.format(scheduler=scheduler))


def numbers(folder: Path) -> list[str]:
    """The jobs of the sweep so far."""
    return list(read_record(folder / "sweeps/mine-here"))


def measured(folder: Path) -> int:
    """How many rows the sweep has."""
    return sum(len(rows_of(path)) for path in folder.glob("sweeps/*/points/*.csv"))


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("scheduler", ["slurm", "torque"])
def test_one_command_completes_a_sweep(slurm: Slurm, tmp_path: Path, scheduler: str) -> None:
    prepare(tmp_path, scheduler)
    submitted = omb_py(slurm, tmp_path, "job", "submit", *MINE)
    names = ("mine-1-node", "mine-2-nodes")
    assert [line.split()[1] for line in submitted] == [
        f"sweeps/mine-here/jobs/{name}.sh" for name in names
    ]
    ended = [line.split()[0] for line in submitted]
    for number in ended:
        assert wait_for_end(slurm, number, SECONDS) == "COMPLETED", output(tmp_path, number)
    assert measured(tmp_path) == ROWS
    assert numbers(tmp_path) == ended


def render_with_time_over(slurm: Slurm, folder: Path) -> None:
    """Write a script to which its time is over at any SIGTERM, as at the walltime."""
    omb_py(slurm, folder, "job", "render", *MINE, "--one-job", "--output", "mine.sh")
    script = folder / "mine.sh"
    text = script.read_text()
    assert text.count('"$SECONDS" -ge "$left"') == 1
    script.write_text(text.replace('"$SECONDS" -ge "$left"', '"$SECONDS" -ge 0'))


def end_time(slurm: Slurm, folder: Path, job: str) -> None:
    """Send SIGTERM to all of a job's processes when there are rows, as if its time was over."""
    wait_until(lambda: measured(folder) > 0, SECONDS, lambda: slurm.run("squeue"))
    slurm.run("scancel", "--full", "--signal=TERM", job)


@pytest.mark.usefixtures("long_time")
def test_shorter_walltime_keeps_the_chain(slurm: Slurm, tmp_path: Path) -> None:
    prepare(tmp_path, "slurm", row_seconds=2.2)
    omb_py(slurm, tmp_path, "job", "render", *MINE, "--one-job", "--output", "mine.sh")
    first = submit(slurm, tmp_path, "sbatch", "--time=1", "mine.sh")
    (tmp_path / "mine.sh").unlink()  # what goes on is the copy beside the results
    assert_a_second_job_ends_it(slurm, tmp_path, first)


@pytest.mark.long
def test_a_job_whose_time_is_over_submits_another(slurm: Slurm, tmp_path: Path) -> None:
    prepare(tmp_path, "slurm", row_seconds=0.3)
    render_with_time_over(slurm, tmp_path)
    first = submit(slurm, tmp_path, "sbatch", "mine.sh")
    end_time(slurm, tmp_path, first)
    assert_a_second_job_ends_it(slurm, tmp_path, first)


def assert_a_second_job_ends_it(slurm: Slurm, tmp_path: Path, first: str) -> None:
    """The first job of a chain leaves the rest to one that it submits."""
    assert wait_for_end(slurm, first, SECONDS) == "COMPLETED", output(tmp_path, first)
    wait_until(lambda: measured(tmp_path) == ROWS, SECONDS, lambda: slurm.run("squeue"))
    found = read_record(tmp_path / "sweeps/mine-here")
    assert list(found.values()) == [first], output(tmp_path, first)
    for number in found:
        assert wait_for_end(slurm, number, SECONDS) == "COMPLETED", output(tmp_path, number)
    states = [json.loads(path.read_text()) for path in tmp_path.glob("sweeps/*/state/*.state")]
    assert sum(attempt["rows"] for one in states for attempt in one["attempts"]) == ROWS


@pytest.fixture
def no_new_jobs(slurm: Slurm) -> Iterator[Callable[[str], str]]:
    """Lets the cluster take jobs (``UP``) or refuse them while others run (``DRAIN``)."""

    def partition(state: str) -> str:
        return slurm.run("scontrol", "update", "PartitionName=debug", f"State={state}")

    yield partition
    partition("UP")


@pytest.mark.usefixtures("long_time")
def test_a_refused_job_is_the_last_word_and_its_command_goes_on(
    slurm: Slurm, tmp_path: Path, no_new_jobs: Callable[[str], str]
) -> None:
    prepare(tmp_path, "torque", row_seconds=0.3)
    render_with_time_over(slurm, tmp_path)
    first = submit(slurm, tmp_path, "qsub", "mine.sh")
    wait_until(lambda: state(slurm, first) == "RUNNING", SECONDS, lambda: slurm.run("squeue"))
    no_new_jobs("DRAIN")
    end_time(slurm, tmp_path, first)
    assert wait_for_end(slurm, first, SECONDS) == "FAILED", output(tmp_path, first)
    *_, why, how = (tmp_path / f"mine.sh.o{first}").read_text().splitlines()
    assert_names(why, "omb-py: chain ends Torque sweeps/")
    assert "partition" in why.lower()
    no_new_jobs("UP")
    rows, _, command = how.partition("; to go on: ")
    assert rows == f"omb-py: {measured(tmp_path)} of {ROWS} rows are there"
    slurm.run("bash", "-c", command, cwd=Path("/"))
    wait_until(lambda: measured(tmp_path) == ROWS, SECONDS, lambda: slurm.run("squeue"))


@pytest.mark.long
def test_a_cancelled_job_submits_no_other(slurm: Slurm, tmp_path: Path) -> None:
    prepare(tmp_path, "slurm", sweep=HANGING)
    (line,) = omb_py(slurm, tmp_path, "job", "submit", *MINE, "--one-job")
    number = line.split()[0]
    wait_until(lambda: measured(tmp_path) > 0, SECONDS, lambda: slurm.run("squeue"))
    slurm.run("scancel", number)
    assert wait_for_end(slurm, number, SECONDS) == "CANCELLED"
    assert numbers(tmp_path) == [number]
    assert not missing("chain of jobs ends a signal", output(tmp_path, number))


def requeue(slurm: Slurm, folder: Path, job: str) -> None:
    """Put a job back into the queue as soon as it has measured another row."""
    before = measured(folder)
    wait_until(lambda: measured(folder) > before, SECONDS, lambda: slurm.run("squeue"))
    slurm.run("scontrol", "requeue", job)
    wait_until(lambda: state(slurm, job) == "PENDING", SECONDS, lambda: output(folder, job))


@pytest.mark.usefixtures("long_time")
def test_a_job_that_slurm_starts_again_twice_loses_no_row(slurm: Slurm, tmp_path: Path) -> None:
    prepare(tmp_path, "slurm", row_seconds=0.5)
    with (tmp_path / "here.toml").open("a") as machine:
        machine.write('directives = ["--requeue"]\n')
    (line,) = omb_py(slurm, tmp_path, "job", "submit", *MINE, "--one-job")
    job = line.split()[0]
    for _ in range(2):
        requeue(slurm, tmp_path, job)
        assert not missing("Slurm starts this job again", output(tmp_path, job))
        slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")  # not in two minutes
    assert wait_for_end(slurm, job, SECONDS) == "COMPLETED", output(tmp_path, job)
    assert measured(tmp_path) == ROWS
    assert numbers(tmp_path) == [job]


def test_what_slurm_refuses_is_told_in_its_words(slurm: Slurm, tmp_path: Path) -> None:
    prepare(tmp_path, "slurm")
    with pytest.raises(AssertionError, match=r"Slurm does not take .*: sbatch: error: .*partition"):
        omb_py(slurm, tmp_path, "job", "submit", *MINE, "--one-job", "--queue", "nosuch")


def test_slurm_itself_accepts_every_directive_of_its_scripts(slurm: Slurm, tmp_path: Path) -> None:
    jobs = ROOT / "jobs"
    for path in (jobs / "generic-slurm.sh", jobs / "generic-torque.sh"):
        shutil.copy(path, tmp_path)
        slurm.run("sbatch", "--test-only", path.name, cwd=tmp_path)


@pytest.mark.long
def test_slurm_takes_the_job_of_a_copied_machine_file(slurm: Slurm, tmp_path: Path) -> None:
    shown = omb_py(slurm, tmp_path, "machine", "show", "generic-slurm")
    (tmp_path / "mine.toml").write_text("\n".join(shown))
    words = ("quick", "--machine", "./mine.toml", "--one-job", "--output", "job.sh")
    omb_py(slurm, tmp_path, "job", "render", *words)
    slurm.run("sbatch", "--test-only", "job.sh", cwd=tmp_path)
    assert "\n#SBATCH --nodes=2\n" in (tmp_path / "job.sh").read_text()
