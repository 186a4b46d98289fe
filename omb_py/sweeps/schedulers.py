"""Batch schedulers: one row of a table each; the directives of each are a template."""

from __future__ import annotations

import re
from collections.abc import Mapping

from omb_py.sweeps import directives, walltime
from omb_py.sweeps.scheduler import ENDED, FAILED, HELD, RUNNING, WAITING, Scheduler
from omb_py.sweeps.walltime import TimeSource

PBS_NUMBER = re.compile(r"^(\d+(?:\[\d*\])?(?:\.[\w.-]+)?)\s*$", re.ASCII | re.MULTILINE)
PBS_STATE = re.compile(r"^\s*job_state = (\S+)", re.MULTILINE)
PBS_STATES = {
    "Q": WAITING,
    "W": WAITING,
    "T": WAITING,
    "M": WAITING,
    "H": HELD,
    "S": HELD,
    "U": HELD,
    "R": RUNNING,
    "B": RUNNING,
    "E": RUNNING,
    "F": ENDED,
    "C": ENDED,
    "X": ENDED,
}
"""Letters of `qstat`, for PBS (reference guide, "Job States") and Torque."""

SLURM_STATES = {
    "PENDING": WAITING,
    "CONFIGURING": WAITING,
    "REQUEUED": WAITING,
    "REQUEUE_HOLD": HELD,
    "SUSPENDED": HELD,
    "STOPPED": HELD,
    "RUNNING": RUNNING,
    "COMPLETING": RUNNING,
    "COMPLETED": ENDED,
    "FAILED": FAILED,
    "TIMEOUT": FAILED,
    "CANCELLED": FAILED,
    "NODE_FAIL": FAILED,
    "OUT_OF_MEMORY": FAILED,
    "PREEMPTED": FAILED,
    "DEADLINE": FAILED,
    "BOOT_FAIL": FAILED,
}
"""`squeue`, "JOB STATE CODES"."""

COBALT_STATES = {
    "queued": WAITING,
    "starting": WAITING,
    "running": RUNNING,
    "exiting": RUNNING,
    "killing": RUNNING,
    "user_hold": HELD,
    "admin_hold": HELD,
    "dep_hold": HELD,
    "dep_fail": HELD,
    "maxrun_hold": HELD,
}
"""ALCF's user guide of ThetaGPU; a job that ended is no longer listed."""

LSF_STATES = {
    "PEND": WAITING,
    "PROV": WAITING,
    "WAIT": WAITING,
    "PSUSP": HELD,
    "USUSP": HELD,
    "SSUSP": HELD,
    "RUN": RUNNING,
    "UNKWN": RUNNING,
    "ZOMBI": RUNNING,
    "DONE": ENDED,
    "EXIT": FAILED,
}
"""`bjobs`, "STAT"."""

FLUX_STATES = {
    "DEPEND": HELD,
    "PRIORITY": WAITING,
    "SCHED": WAITING,
    "RUN": RUNNING,
    "CLEANUP": RUNNING,
    "COMPLETED": ENDED,
    "FAILED": FAILED,
    "CANCELED": FAILED,
    "TIMEOUT": FAILED,
}
"""`flux-jobs`, "JOB STATUS"."""

QSTAT = TimeSource(walltime.qstat, command=("qstat", "-f"))
AFTER_ANY = ("-W", "depend=afterany:{}")
"""PBS (`qsub`, "depend=dependency_list") and Torque."""

LAST_WORD = re.compile(r"(\S+)\s*$")

SCHEDULERS: Mapping[str, Scheduler] = {
    "pbs": Scheduler(  # PBS Pro and OpenPBS
        title="PBS",
        sentinel="#PBS",
        submit=("qsub",),
        status=("qstat", "-x", "-f"),
        number=PBS_NUMBER,
        state=PBS_STATE,
        states=PBS_STATES,
        permitted=directives.PBS,
        settings=frozenset({"select", "attributes", "filesystems"}),
        kept={"queue": ("-q", "PBS_O_QUEUE"), "account": ("-A", "PBS_ACCOUNT")},
        job_id_variables=("PBS_JOBID",),
        folder_variables=("PBS_O_WORKDIR",),
        time_left=(QSTAT,),
        dependency=AFTER_ANY,
        host_file_variable="PBS_NODEFILE",
    ),
    "torque": Scheduler(
        title="Torque",
        sentinel="#PBS",
        submit=("qsub",),
        status=("qstat", "-f"),
        number=PBS_NUMBER,
        state=PBS_STATE,
        states=PBS_STATES,
        permitted=directives.TORQUE,
        programs=("prologue", "epilogue"),
        settings=frozenset({"select", "attributes"}),
        kept={"queue": ("-q", "PBS_O_QUEUE")},
        # Slurm's Torque commands set its own variables only.
        job_id_variables=("PBS_JOBID", "SLURM_JOB_ID"),
        folder_variables=("PBS_O_WORKDIR", "SLURM_SUBMIT_DIR"),
        time_left=(QSTAT, TimeSource(walltime.limit, variable="PBS_WALLTIME")),
        dependency=AFTER_ANY,
        host_file_variable="PBS_NODEFILE",
        node_count_variables=("SLURM_JOB_NUM_NODES",),
    ),
    "cobalt": Scheduler(
        title="Cobalt",
        sentinel="#COBALT",
        submit=("qsub",),
        status=("qstat", "-l", "--header=Jobid:State"),
        number=re.compile(r"^(\d+)\s*$", re.ASCII | re.MULTILINE),
        state=re.compile(r"^\s*State\s*:\s*(\S+)", re.MULTILINE),
        states=COBALT_STATES,
        permitted=directives.COBALT,
        settings=frozenset({"attributes", "filesystems"}),
        job_id_variables=("COBALT_JOBID",),
        time_left=(TimeSource(walltime.end_time, variable="COBALT_ENDTIME"),),
        dependency=("--dependencies", "{}"),
        host_file_variable="COBALT_NODEFILE",
    ),
    "slurm": Scheduler(
        title="Slurm",
        sentinel="#SBATCH",
        submit=("sbatch", "--parsable"),
        status=("squeue", "--noheader", "--states=all", "--format=%T", "--jobs"),
        number=re.compile(r"^(\d+)(?:;\S+)?\s*$", re.ASCII | re.MULTILINE),
        state=LAST_WORD,
        states=SLURM_STATES,
        unknown=("invalid job id",),
        permitted=directives.SLURM,
        settings=frozenset({"attributes", "filesystems"}),
        kept={
            "queue": ("--partition", "SLURM_JOB_PARTITION"),
            "account": ("--account", "SLURM_JOB_ACCOUNT"),
        },
        job_id_variables=("SLURM_JOB_ID",),
        folder_variables=("SLURM_SUBMIT_DIR",),
        time_left=(
            TimeSource(walltime.end_time, variable="SLURM_JOB_END_TIME"),
            TimeSource(walltime.squeue, command=("squeue", "--noheader", "--format=%L", "--jobs")),
        ),
        dependency=("--dependency=afterany:{}",),
        node_count_variables=("SLURM_JOB_NUM_NODES", "SLURM_NNODES"),
    ),
    "lsf": Scheduler(
        title="LSF",
        sentinel="#BSUB",
        submit=("bsub",),
        from_standard_input=True,
        status=("bjobs", "-a", "-noheader", "-o", "stat"),
        number=re.compile(r"^(?:Job <)?(\d+)(?:>.*)?\s*$", re.ASCII | re.MULTILINE),
        state=LAST_WORD,
        states=LSF_STATES,
        unknown=("is not found",),
        permitted=directives.LSF,
        settings=frozenset({"attributes"}),
        kept={"queue": ("-q", "LSB_QUEUE"), "account": ("-P", "LSB_PROJECT_NAME")},
        job_id_variables=("LSB_JOBID",),
        time_left=(TimeSource(walltime.bjobs, command=("bjobs", "-noheader", "-o", "time_left")),),
        dependency=("-w", "ended({})"),
        folder_variables=("LS_SUBCWD",),
        host_file_variable="LSB_DJOB_HOSTFILE",
        warnings=("TERM", "USR2"),
    ),
    "flux": Scheduler(
        title="Flux",
        sentinel="#flux:",
        disabled="#flux: #",
        submit=("flux", "batch"),
        again=("flux", "--parent", "batch"),
        status=("flux", "jobs", "-a", "--no-header", "--format={status}"),
        number=re.compile(r"^([\w\u0192]+)\s*$", re.MULTILINE),
        state=LAST_WORD,
        states=FLUX_STATES,
        unknown=("unknown", "no such"),
        permitted=directives.FLUX,
        settings=frozenset({"attributes"}),
        job_id_command="flux getattr jobid",
        # Without a number: the job that this instance of Flux runs in.
        time_left=(TimeSource(walltime.flux, command=("flux", "job", "timeleft"), numbered=False),),
        dependency=("--dependency=afterany:{}",),
        # A job is an instance of Flux with one broker a node (flux-broker-attributes, "size").
        node_count_command=("flux", "getattr", "size"),
    ),
}
"""Schedulers by the names that a machine's configuration calls them by."""
