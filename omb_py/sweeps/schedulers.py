"""Batch schedulers: one row of a table each, and their commands that submit scripts.

The directives of each are a template.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from omb_py.core.errors import OmbError
from omb_py.sweeps.quoting import plain

PATIENCE, IN_JOB_SECONDS = 120.0, 20.0
"""Seconds that a scheduler's command may take before it is taken for hanging, and in a job."""

RETRY_SECONDS = 10.0
"""Seconds before a job submits again if the scheduler could not be reached: until its walltime."""

UNREACHABLE = re.compile("(?i)cannot connect|connect failure|n refused|unable to contact|proxy.py")
"""Messages of schedulers whose server is unreachable, the last of them Cobalt's: a retry helps."""


@dataclass(frozen=True, eq=False)
class Scheduler:
    """A scheduler's commands to submit and to submit again, and the environment of its jobs.

    ``sentinel`` begins a directive, ``disabled`` one that is there to be filled in. ``submit`` are
    the words before a script; ``again`` submits from inside a job. ``number`` finds a job's number
    in the output of ``submit``.

    ``settings`` are the resources of `JobSettings` that it knows, ``queue_and_account`` the words
    before these names. Without a host file,
    ``node_count_variables`` or ``node_count_command`` give the number of a job's nodes.
    ``time_left`` is a command of bash that prints how many seconds the job ``$job`` may still run,
    if its script began ``$SECONDS`` ago; ``asked`` is the scheduler's command in it.

    ``names`` are other names of its commands, as on a host of two clusters, and ``patience`` the
    seconds that they may take.
    """

    title: str
    sentinel: str
    submit: tuple[str, ...]
    number: re.Pattern[str]
    settings: frozenset[str] = frozenset()
    queue_and_account: tuple[str, str] = ("-q ", "-A ")
    disabled: str = ""
    from_standard_input: bool = False
    again: tuple[str, ...] = ()
    job_id_variables: tuple[str, ...] = ()
    job_id_command: tuple[str, ...] = ()
    folder_variables: tuple[str, ...] = ()
    host_file_variable: str | None = None
    node_count_variables: tuple[str, ...] = ()
    node_count_command: tuple[str, ...] = ()
    time_left: str = ":"
    asked: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    patience: float = PATIENCE

    @property
    def commands(self) -> frozenset[str]:
        """The default names of its commands."""
        rows = (self.submit, self.again, self.node_count_command, self.job_id_command)
        return frozenset(words[0] for words in (*rows, (self.asked,)) if words) - {""}

    def named(self, words: Sequence[str]) -> list[str]:
        """Return the words of a command with the name that it has here."""
        return [self.names.get(word, word) for word in words[:1]] + list(words[1:])

    @property
    def by_hand(self) -> str:
        """The command by which a person submits a script, whose name follows."""
        words = [word for word in self.named(self.submit) if not word.startswith("--")]
        return shlex.join(words) + (" <" if self.from_standard_input else "")

    @property
    def in_job(self) -> Scheduler:
        """The same where a job asks, whose walltime may be about to be over."""
        return replace(self, submit=self.again or self.submit, patience=IN_JOB_SECONDS)

    @property
    def unread(self) -> str:
        """The beginning of a directive that the scheduler shall not read."""
        return self.disabled or f"#{self.sentinel}"


def ask(
    scheduler: Scheduler, words: Sequence[str], text: IO[bytes] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the scheduler; raises `OmbError` when it is not there or hangs."""
    name, *arguments = scheduler.named(words)
    program = shutil.which(name)
    if program is None:
        raise OmbError(
            f"there is no {name} on {platform.node()}, the command of {scheduler.title}: go to "
            "a host from which jobs are submitted, or use another --machine"
        )
    try:
        return subprocess.run(
            [program, *arguments],
            stdin=text or subprocess.DEVNULL,
            capture_output=True,
            timeout=scheduler.patience,
            check=False,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise OmbError(
            f"{name} has not answered in {scheduler.patience:g} seconds: try again later"
        ) from error


def hand_over(scheduler: Scheduler, script: Path) -> str:
    """Hand a script to the scheduler from the current folder; return the job's number.

    Raises `UsageError` when its name might mean something to a shell (the commands of some
    schedulers are scripts that pass it to one), `OmbError` when the scheduler is not there or
    refuses, in its own words.
    """
    plain(script)
    with script.open("rb") if scheduler.from_standard_input else nullcontext() as text:
        words = [*scheduler.submit, *([] if text else [str(script)])]
        answer = ask(scheduler, words, text)
    found = scheduler.number.findall(answer.stdout)
    if answer.returncode != 0 or not found:
        said = " ".join(f"{answer.stderr} {answer.stdout}".split())[:1000]
        said = said or f"exit code {answer.returncode} without a word"
        raise OmbError(f"{scheduler.title} does not take {script}: {said}")
    return str(found[-1])


def hand_over_in_job(scheduler: Scheduler, script: Path, seconds: float) -> str:
    """Submit a script from a job, for ``seconds`` again while the scheduler is unreachable.

    Other refusals would be repeated, and a command that hangs may have submitted the job. Raises as
    `hand_over` does.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return hand_over(scheduler.in_job, script)
        except OmbError as error:
            away = UNREACHABLE.search(str(error))
            if not away or time.monotonic() + RETRY_SECONDS > deadline:
                raise
        time.sleep(RETRY_SECONDS)


PBS_NUMBER = re.compile(r"^(\d+(?:\[\d*\])?(?:\.[\w.-]+)?)\s*$", re.ASCII | re.MULTILINE)
ANSWER = "timeout 20"
"""A scheduler that hangs costs a job no more than these seconds."""

QSTAT = (
    f'{ANSWER} qstat -f "$job" | awk -F " = " -v used="$SECONDS" \'\n'
    """        /Resource_List.walltime/ { split($2, t, ":"); print """
    """3600 * t[1] + 60 * t[2] + t[3] - used }'"""
)

# A job that was cancelled, requeued or preempted has no time that is over.
SQUEUE = f"""\
{ANSWER} squeue --noheader --jobs "$job" \\
        --Format=State:20,PreemptTime:30,EndTime:30,Reason:60 | {{
        read -r state preempted end reason
        if [ "$reason" = TimeLimit ] || [ "$state $preempted" = "RUNNING N/A" ]; then
            end=$(date -d "$end" +%s) && echo "$((end - $(date +%s)))"
        fi
    }}"""

SCHEDULERS: Mapping[str, Scheduler] = {
    "pbs": Scheduler(  # PBS Pro and OpenPBS; reference guide, "Job Attributes"
        title="PBS",
        sentinel="#PBS",
        submit=("qsub",),
        number=PBS_NUMBER,
        settings=frozenset({"select", "attributes", "filesystems"}),
        job_id_variables=("PBS_JOBID",),
        folder_variables=("PBS_O_WORKDIR",),
        time_left=QSTAT,
        asked="qstat",
        host_file_variable="PBS_NODEFILE",
    ),
    "torque": Scheduler(  # administrator guide, "qsub" and "qstat"
        title="Torque",
        sentinel="#PBS",
        submit=("qsub",),
        number=PBS_NUMBER,
        settings=frozenset({"select", "attributes"}),
        # Slurm's Torque commands set its own variables only.
        job_id_variables=("PBS_JOBID", "SLURM_JOB_ID"),
        folder_variables=("PBS_O_WORKDIR", "SLURM_SUBMIT_DIR"),
        time_left=QSTAT,
        asked="qstat",
        host_file_variable="PBS_NODEFILE",
        node_count_variables=("SLURM_JOB_NUM_NODES",),
    ),
    "cobalt": Scheduler(  # ALCF's user guide of ThetaGPU
        title="Cobalt",
        sentinel="#COBALT",
        submit=("qsub",),
        number=re.compile(r"^(\d+)\s*$", re.ASCII | re.MULTILINE),
        settings=frozenset({"attributes", "filesystems"}),
        job_id_variables=("COBALT_JOBID",),
        time_left='[ -z "$COBALT_ENDTIME" ] || echo "$((COBALT_ENDTIME - $(date +%s)))"',
        host_file_variable="COBALT_NODEFILE",
    ),
    "slurm": Scheduler(
        title="Slurm",
        sentinel="#SBATCH",
        queue_and_account=("--partition=", "--account="),
        submit=("sbatch", "--parsable"),
        number=re.compile(r"^(\d+)(?:;\S+)?\s*$", re.ASCII | re.MULTILINE),
        settings=frozenset({"attributes", "filesystems"}),
        job_id_variables=("SLURM_JOB_ID",),
        folder_variables=("SLURM_SUBMIT_DIR",),
        time_left=SQUEUE,
        asked="squeue",
        node_count_variables=("SLURM_JOB_NUM_NODES", "SLURM_NNODES"),
    ),
    "lsf": Scheduler(
        title="LSF",
        sentinel="#BSUB",
        queue_and_account=("-q ", "-P "),
        submit=("bsub",),
        from_standard_input=True,
        number=re.compile(r"^(?:Job <)?(\d+)(?:>.*)?\s*$", re.ASCII | re.MULTILINE),
        settings=frozenset({"attributes"}),
        job_id_variables=("LSB_JOBID",),
        time_left=(  # hours and minutes; E marks an estimate that ends no job
            f'{ANSWER} bjobs -noheader -o time_left "$job" | '
            """awk -F '[: ]+' '$3 == "L" { print 60 * (60 * $1 + $2) }'"""
        ),
        asked="bjobs",
        folder_variables=("LS_SUBCWD",),
        host_file_variable="LSB_DJOB_HOSTFILE",
    ),
    "flux": Scheduler(
        title="Flux",
        sentinel="#flux:",
        queue_and_account=("--queue=", "--bank="),
        disabled="#flux: #",
        submit=("flux", "batch"),
        again=("flux", "--parent", "batch"),
        number=re.compile(r"^([\w\u0192]+)\s*$", re.MULTILINE),
        settings=frozenset({"attributes"}),
        job_id_command=("flux", "getattr", "jobid"),
        time_left=f"{ANSWER} flux job timeleft",  # of the job that this Flux runs in
        # A job is an instance of Flux with one broker a node (flux-broker-attributes, "size").
        node_count_command=("flux", "getattr", "size"),
    ),
}
"""By the names that a machine's configuration uses."""
