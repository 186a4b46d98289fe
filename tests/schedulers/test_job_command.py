"""`omb-py job` and its scripts on a real Slurm, through `sbatch` and through Torque's `qsub`."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from omb_py.sweeps.records import read_jobs
from omb_py.sweeps.schedulers import SCHEDULERS
from tests.conftest import rows_of
from tests.schedulers.batch import Slurm, output, state, submit, wait_for_end, wait_until

SWEEP = """\
name = "mine"
[[experiments]]
benchmarks = ["bcast", "allreduce", "reduce", "allgather"]
bindings = "buffer"
ranks = 2
nodes = [1, 2]
sizes = "8,64"
options = {{ iterations = {iterations} }}
"""
ROWS = 16
SLOW = 30_000
MACHINE = """\
name = "here"
scheduler = "{scheduler}"
launcher = "mpich"
nodes = 2
cores_per_node = 4
oversubscribe = true

[job]
walltime = "10m"
reserve = "60s"
"""
SECONDS = 240.0
MINE = ("mine.toml", "--machine", "here.toml")


def omb_py(slurm: Slurm, folder: Path, *words: str) -> list[str]:
    """The lines that a command of the suite prints."""
    return slurm.run(sys.executable, "-m", "omb_py", *words, cwd=folder).splitlines()


def prepare(folder: Path, scheduler: str, iterations: int = 10) -> None:
    """Put the two configurations into a folder."""
    (folder / "mine.toml").write_text(SWEEP.format(iterations=iterations))
    (folder / "here.toml").write_text(MACHINE.format(scheduler=scheduler))


def state_in_status(slurm: Slurm, folder: Path, number: str) -> tuple[str, int | None]:
    """The state of a job and its exit status, as `omb-py job status` has them."""
    words = [sys.executable, "-m", "omb_py", "job", "status", *MINE, "--json"]
    # its own exit code tells whether all rows are there
    found = json.loads(slurm.run("sh", "-c", f"{shlex.join(words)} || true", cwd=folder))
    (job,) = (job for job in found["jobs"] if job["number"] == number)
    return job["state"], job["exit_status"]


def record_began(folder: Path, number: str, scheduler: str) -> None:
    """Let a job that is not ours be in the record of the sweep, with its start and no end."""
    prepare(folder, scheduler)
    path = folder / "sweeps/mine-here/jobs/mine.record"
    path.parent.mkdir(parents=True)
    path.write_text(f"2026-11-22T20:00:00Z {number} began host=n1\n")


def numbers(folder: Path) -> list[str]:
    """The jobs of the sweep so far."""
    return [job.number for job in read_jobs(SCHEDULERS["slurm"], folder / "sweeps/mine-here")]


def measured(folder: Path) -> int:
    """How many rows the sweep has."""
    return sum(len(rows_of(path)) for path in folder.glob("sweeps/*/points/*.csv"))


@pytest.mark.parametrize("scheduler", ["slurm", "torque"])
def test_a_sweep_is_complete_after_one_command(
    slurm: Slurm, tmp_path: Path, scheduler: str
) -> None:
    prepare(tmp_path, scheduler)
    submitted = omb_py(slurm, tmp_path, "job", "submit", *MINE)
    assert [line.split()[1] for line in submitted] == [
        "sweeps/mine-here/jobs/mine-1-node.sh",
        "sweeps/mine-here/jobs/mine-2-nodes.sh",
    ]
    for line in submitted:
        number = line.split()[0]
        assert wait_for_end(slurm, number, SECONDS) == "COMPLETED", output(tmp_path, number)
    assert measured(tmp_path) == ROWS
    *lines, there = omb_py(slurm, tmp_path, "job", "status", *MINE)
    for line, script, told in zip(
        lines[1:], ("mine-1-node", "mine-2-nodes"), submitted, strict=True
    ):
        *words, file = line.split()
        assert words == [told.split()[0], script, "finished", "8", "of", "8"]
        assert (tmp_path / file).is_file()
    assert there == f"{ROWS} of {ROWS} rows there, in sweeps/mine-here"


@pytest.mark.parametrize(("scheduler", "program"), [("slurm", "sbatch"), ("torque", "qsub")])
def test_a_job_whose_time_is_over_goes_on_in_another_until_all_is_measured(
    slurm: Slurm, tmp_path: Path, scheduler: str, program: str
) -> None:
    """All of a job's processes get SIGTERM at its walltime, here sooner."""
    prepare(tmp_path, scheduler, iterations=SLOW)
    omb_py(slurm, tmp_path, "job", "render", *MINE, "--one-job", "-o", "mine.sh")
    script = tmp_path / "mine.sh"
    script.write_text(script.read_text().replace('-ge "$seconds"', "-ge 0"))
    first = submit(slurm, tmp_path, program, "mine.sh")
    script.unlink()  # what goes on is the copy beside the results
    wait_until(lambda: measured(tmp_path) > 2, SECONDS, lambda: slurm.run("squeue"))
    slurm.run("scancel", "--full", "--signal=TERM", first)
    wait_until(lambda: measured(tmp_path) == ROWS, SECONDS, lambda: slurm.run("squeue"))
    found = numbers(tmp_path)
    assert len(found) == 2, output(tmp_path, first)
    for number in found:
        assert wait_for_end(slurm, number, SECONDS) == "COMPLETED", output(tmp_path, number)
    assert state_in_status(slurm, tmp_path, first) == ("stopped", 0)
    assert state_in_status(slurm, tmp_path, found[1]) == ("finished", 0)
    states = [json.loads(path.read_text()) for path in tmp_path.glob("sweeps/*/state/*.state")]
    assert sum(attempt["rows"] for one in states for attempt in one["attempts"]) == ROWS


def test_a_cancelled_job_does_not_come_back(slurm: Slurm, tmp_path: Path) -> None:
    prepare(tmp_path, "slurm", iterations=SLOW)
    (line,) = omb_py(slurm, tmp_path, "job", "submit", *MINE, "--one-job")
    number = line.split()[0]
    wait_until(lambda: measured(tmp_path) > 0, SECONDS, lambda: slurm.run("squeue"))
    with pytest.raises(AssertionError, match="ends with 75"):  # it is under way
        omb_py(slurm, tmp_path, "job", "status", *MINE)
    assert omb_py(slurm, tmp_path, "job", "cancel", *MINE) == [
        f"{number} mine: cancelled (running before)"
    ]
    assert state(slurm, number) == "CANCELLED"
    assert numbers(tmp_path) == [number]
    assert state_in_status(slurm, tmp_path, number) == ("cancelled", 75)


def test_what_slurm_refuses_is_told_in_its_words(slurm: Slurm, tmp_path: Path) -> None:
    prepare(tmp_path, "slurm")
    with pytest.raises(AssertionError, match=r"Slurm does not take .*: sbatch: error: .*partition"):
        omb_py(slurm, tmp_path, "job", "submit", *MINE, "--one-job", "--queue", "nosuch")


def test_slurm_itself_accepts_every_directive_of_its_scripts(slurm: Slurm, tmp_path: Path) -> None:
    jobs = Path(__file__).parents[2] / "jobs"
    for path in (jobs / "generic-slurm.sh", jobs / "generic-torque.sh"):
        shutil.copy(path, tmp_path)
        slurm.run("sbatch", "--test-only", path.name, cwd=tmp_path)


def test_a_machine_file_is_written_from_what_slurm_tells(slurm: Slurm, tmp_path: Path) -> None:
    assert omb_py(slurm, tmp_path, "machine", "new", "--launcher", "mpich") == ["mycluster.toml"]
    text = (tmp_path / "mycluster.toml").read_text()
    for line in ('scheduler = "slurm"', "nodes = 2  # detected by sinfo", 'queue = "debug"'):
        assert f"\n{line}\n" in text
    words = ("quick", "--machine", "./mycluster.toml", "--one-job", "-o", "job.sh")
    omb_py(slurm, tmp_path, "job", "render", *words)
    slurm.run("sbatch", "--test-only", "job.sh", cwd=tmp_path)
    assert "\n#SBATCH --nodes=2\n" in (tmp_path / "job.sh").read_text()


def test_slurm_forgets_jobs_that_it_never_had(slurm: Slurm, tmp_path: Path) -> None:
    prepare(tmp_path, "slurm")
    path = tmp_path / "sweeps/mine-here/jobs/mine.record"
    path.parent.mkdir(parents=True)
    path.write_text("2026-11-22T20:00:00Z 999999 submitted\n")
    assert state_in_status(slurm, tmp_path, "999999") == ("forgotten", None)
