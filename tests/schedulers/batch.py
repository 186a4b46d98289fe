"""What a person does with a batch system: submit a script, wait for its end, read what it wrote."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.pace import is_over

# What Slurm calls the end of a job, in any of its ways.
ENDS = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL"}


@dataclass(frozen=True)
class Slurm:
    """A running Slurm: the environment in which its commands, and the jobs, find all they need."""

    environment: dict[str, str]

    def run(self, *command: str, cwd: Path | None = None, **variables: str) -> str:
        """What a command prints; it fails the test with the command's words when it fails."""
        done = subprocess.run(
            command,
            env=self.environment | variables,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{command} ends with {done.returncode}: {done}"
        return done.stdout


@dataclass(frozen=True)
class Process:
    """A process by its number, what its program is called, and the environment it started with."""

    number: int
    name: str
    environment: dict[str, str]


def submit(slurm: Slurm, folder: Path, *command: str, **variables: str) -> str:
    """The number of the job that ``qsub ...`` or ``sbatch ...`` submits from a folder."""
    # sbatch says "Submitted batch job 12" and qsub "12"
    return slurm.run(*command, cwd=folder, **variables).split()[-1]


def state(slurm: Slurm, job: str) -> str:
    """What Slurm says of a job in one word, such as RUNNING or TIMEOUT."""
    return slurm.run("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").strip()


def wait_for_end(slurm: Slurm, job: str, seconds: float) -> str:
    """Wait for the end of a job and say which one it was."""
    wait_until(lambda: state(slurm, job) in ENDS, seconds, lambda: slurm.run("squeue"))
    return state(slurm, job)


def wait_until(done: Callable[[], bool], seconds: float, say: Callable[[], str]) -> None:
    """Wait for something; it fails the test with what ``say`` returns after too many seconds."""
    begun = time.monotonic()
    while not done():
        assert not is_over(begun, seconds), f"not within {seconds:g} s: {say()}"
        time.sleep(0.1)


def jobs_from(slurm: Slurm, folder: Path) -> list[str]:
    """The jobs not yet at their end that were submitted from a folder or one in it."""
    lines = slurm.run("squeue", "--noheader", "--format=%A %Z").splitlines()
    jobs = dict(line.split(" ", 1) for line in lines)
    return [job for job, started in jobs.items() if Path(started).is_relative_to(folder)]


def wait_for_all_from(slurm: Slurm, folder: Path, seconds: float) -> None:
    """Wait for the end of what was submitted from a folder, and of what that submits there."""
    wait_until(lambda: not jobs_from(slurm, folder), seconds, lambda: slurm.run("squeue"))


def cancel_all_from(slurm: Slurm, folder: Path) -> None:
    """End what was submitted from a folder; one that is being cancelled may submit another."""
    while left := jobs_from(slurm, folder):
        slurm.run("scancel", "--quiet", *left)
        time.sleep(0.2)


def processes_of(slurm: Slurm, job: str) -> list[Process]:
    """The processes of a job on both nodes, in the order of their start."""
    ours = {"SLURM_CONF": slurm.environment["SLURM_CONF"], "SLURM_JOB_ID": job}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # a process that ends cannot be read
        with suppress(OSError):
            name = (process / "comm").read_text().strip()
            entries = (process / "environ").read_bytes().decode(errors="replace").split("\0")
            environment = dict(entry.split("=", 1) for entry in entries if "=" in entry)
            if ours.items() <= environment.items():
                found.append(Process(int(process.name), name, environment))
    return sorted(found, key=lambda process: process.number)


def output(folder: Path, job: str) -> str:
    """What a job wrote on stdout and stderr, whichever command submitted it."""
    names = (f"slurm-{job}.out", f"*.o{job}", f"*.e{job}")
    files = [file for name in names for file in sorted(folder.glob(name))]
    return "".join(file.read_text() for file in files)


def end_at_walltime(slurm: Slurm, job: str, seconds: int) -> None:
    """Let a running job's time be over after so long; Slurm kills it when it next looks (30 s)."""
    slurm.run("scontrol", "update", f"JobId={job}", f"EndTime=now+{seconds}seconds")
