"""The scripts in `jobs/`, submitted by one command each, end well whatever happens to them."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from omb_py.sweeps.jobs import read_record
from tests import ROOT
from tests.schedulers.batch import (
    ENDS,
    Process,
    Slurm,
    end_at_walltime,
    output,
    processes_of,
    state,
    submit,
    wait_for_all_from,
    wait_for_end,
    wait_until,
)
from tests.schedulers.small_sweeps import SmallSweep, lines_in, rows_in

TORQUE = ("qsub", str(ROOT / "jobs/generic-torque.sh"))
SLURM = ("sbatch", str(ROOT / "jobs/generic-slurm.sh"))
RESULTS = {TORQUE: "sweeps/scaling-generic-torque", SLURM: "sweeps/scaling-generic-slurm"}

SCALING = SmallSweep(ranks=(4,), sizes=(8, 64, 512))
# Each row takes the same time everywhere, so that there is something to kill.
KILLED = SmallSweep(ranks=(2,), sizes=(8, 16, 32, 64), options="max-time = 0.2")


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("command", RESULTS, ids=lambda command: command[0])
def test_script_measures_both_nodes(slurm: Slurm, tmp_path: Path, command: tuple[str, str]) -> None:
    variables = SCALING.install(tmp_path)
    folder = tmp_path / RESULTS[command]

    job = submit(slurm, tmp_path, *command, **variables)
    assert wait_for_end(slurm, job, 300) == "COMPLETED", output(tmp_path, job)
    slurm.run("omb-py", "report", str(folder), cwd=tmp_path, **variables)

    assert rows_in(folder) == SCALING.planned
    assert "allreduce" in (folder / "report.html").read_text()


@pytest.mark.usefixtures("long_time")
def test_job_at_its_walltime_submits_its_successor(slurm: Slurm, tmp_path: Path) -> None:
    # Points enough that some are left when the sweep is stopped in its first ones.
    sweep = SmallSweep(ranks=(2, 4), sizes=(8, 64, 512))
    variables = sweep.install(tmp_path)
    folder = tmp_path / RESULTS[TORQUE]
    words = ["scaling", "--machine=generic-torque", "--one-job", "--walltime=80s"]
    slurm.run("omb-py", "job", "render", *words, "--output=job.sh", cwd=tmp_path, **variables)

    job = submit(slurm, tmp_path, "qsub", "job.sh", **variables)
    wait_until(lambda: bool(rows_in(folder)), 60, lambda: output(tmp_path, job))
    before = rows_in(folder)
    # The sweep would end in order after 20 of its 80 s; it cannot while it is stopped.
    for process in omb_py_sweep(processes_of(slurm, job)):
        os.kill(process.number, signal.SIGSTOP)
    end_at_walltime(slurm, job, seconds=22)

    assert wait_for_end(slurm, job, 90) == "TIMEOUT"
    wait_for_all_from(slurm, tmp_path, 300)
    assert before != rows_in(folder) == sweep.planned, output(tmp_path, job)
    following = read_record(folder)
    assert next(iter(following.values())) == job
    assert state(slurm, list(following)[-1]) == "COMPLETED"


def omb_py_sweep(processes: list[Process]) -> list[Process]:
    """What runs one point after the other."""
    return [process for process in processes if process.name == "omb-py"]


def launcher(processes: list[Process]) -> list[Process]:
    """What starts the ranks of a point: mpiexec and its helpers, srun among them, on both nodes."""
    return [process for process in of_a_point(processes) if not process.name.startswith("python")]


def rank(processes: list[Process]) -> list[Process]:
    """The ranks of a point, on both nodes."""
    return [process for process in of_a_point(processes) if process.name.startswith("python")]


def everything(processes: list[Process]) -> list[Process]:
    """All of a job, as when a node breaks."""
    return processes


def of_a_point(processes: list[Process]) -> list[Process]:
    """What a sweep has started."""
    return [process for process in processes if "OMB_PY_SWEEP_POINT" in process.environment]


KILLS = int(os.environ.get("OMB_TEST_KILLS", "10"))
"""Two of each; more where there is time for them."""

Victim = Callable[[list[Process]], list[Process]]
VICTIMS: dict[str, tuple[Victim, ...]] = {
    "sweep": (omb_py_sweep,),
    "launcher": (launcher,),
    "rank": (rank,),
    "rank and sweep": (rank, omb_py_sweep),
    "everything": (everything,),
}


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("killed", VICTIMS)
@pytest.mark.parametrize("seed", range(KILLS // len(VICTIMS)))
def test_killed_job_loses_no_row(slurm: Slurm, tmp_path: Path, killed: str, seed: int) -> None:
    chance = random.Random(f"{killed} {seed}")
    victims = VICTIMS[killed]
    # a sweep that was at its end before anything of it was killed does not count
    places = (tmp_path / str(attempt) for attempt in range(10))
    place = next(place for place in places if killed_sweep(slurm, place, victims, chance))
    before = lines_in(place / RESULTS[TORQUE])

    job = submit(slurm, place, *TORQUE, **KILLED.install(place))

    assert wait_for_end(slurm, job, 300) == "COMPLETED", output(place, job)
    assert rows_in(place / RESULTS[TORQUE]) == KILLED.planned
    after = lines_in(place / RESULTS[TORQUE])
    assert {name: after[name][: len(lines)] for name, lines in before.items()} == before
    assert of_a_point(processes_of(slurm, job)) == []


def killed_sweep(
    slurm: Slurm, folder: Path, victims: tuple[Victim, ...], chance: random.Random
) -> bool:
    """Begin a sweep and kill the victims some rows and a while later; whether it met each."""
    folder.mkdir()
    rows, wait = chance.randrange(KILLED.planned.total()), chance.uniform(0, 0.5)
    job = submit(slurm, folder, *TORQUE, **KILLED.install(folder))

    def is_time() -> bool:
        there = rows_in(folder / RESULTS[TORQUE]).total()
        return there >= rows or state(slurm, job) in ENDS

    wait_until(is_time, 300, lambda: output(folder, job))
    time.sleep(wait)
    killed = [kill(slurm, job, victim, chance) for victim in victims]
    print(f"{rows} rows and {wait:.2f} s after the start of job {job}: killed {killed}")
    wait_for_all_from(slurm, folder, 300)
    # what the job leaves for a moment would still measure, and the next job leave it the point
    wait_until(lambda: not processes_of(slurm, job), 60, lambda: output(folder, job))
    return all(killed)


def kill(slurm: Slurm, job: str, victim: Victim, chance: random.Random) -> list[str]:
    """Kill one of the victims as soon as there is one, or all of everything; whom it met.

    That is nobody when the job is at its end before.
    """
    while state(slurm, job) not in ENDS:
        if found := victim(processes_of(slurm, job)):
            chosen = found if victim is everything else [chance.choice(found)]
            names = [process.name for process in chosen]
            while chosen:
                for process in chosen:
                    with suppress(ProcessLookupError):
                        os.kill(process.number, signal.SIGKILL)
                # a child that was not in the list yet ran on without its parent
                chosen = processes_of(slurm, job) if victim is everything else []
            return names
        time.sleep(0.02)
    return []
