"""Batch schedulers: one row of a table each; the directives of each are a template."""

from __future__ import annotations

import re
from collections.abc import Mapping

from omb_py.core.registry import Rows
from omb_py.sweeps import answers
from omb_py.sweeps.answers import Blocks, PbsExit, Table, TimeSource, flux_code, wait_status
from omb_py.sweeps.scheduler import (
    CANCELLED,
    ENDED,
    FAILED,
    HELD,
    KILLED,
    RESTARTED,
    RUNNING,
    WAITING,
    WALLTIME,
    Scheduler,
)

PBS_NUMBER = re.compile(r"^(\d+(?:\[\d*\])?(?:\.[\w.-]+)?)\s*$", re.ASCII | re.MULTILINE)
PBS_JOB = re.compile(r"Job Id:\s*(\S+)", re.IGNORECASE)
PBS_KEYS = {
    "job_state": "state",
    "Exit_status": "exit",
    "Output_Path": "output",
    "comment": "reason",
    "stime": "start",
    "Resource_List.walltime": "limit",
    "resources_used.walltime": "used",
    "substate": "substate",
}
"""Attributes of `qstat -f` (PBS reference guide, "Job Attributes")."""

TORQUE_KEYS = {**PBS_KEYS, "exit_status": "exit", "start_time": "start"}
"""Those of Torque (administrator guide, "Job exit status", and `pbs_job_attributes`)."""

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
    "TIMEOUT": WALLTIME,
    "CANCELLED": CANCELLED,
    "NODE_FAIL": KILLED,
    "OUT_OF_MEMORY": KILLED,
    "PREEMPTED": KILLED,
    "DEADLINE": KILLED,
    "BOOT_FAIL": KILLED,
    "REVOKED": KILLED,
}
"""`squeue`, "JOB STATE CODES"."""

SLURM_SIGNS = {
    r"JOB \d+ ON \S+ CANCELLED AT \S+ DUE TO TIME LIMIT": WALLTIME,
    r"JOB \d+ ON \S+ CANCELLED AT \S+ DUE TO JOB REQUEUE": RESTARTED,
    r"JOB \d+ ON \S+ CANCELLED AT \S+ DUE TO": KILLED,
    r"JOB \d+ ON \S+ CANCELLED AT": CANCELLED,
}
"""What its daemon adds to a job's output, the first that fits."""

SLURM_COLUMNS = ("JobID", "State", "exit_code", "TimeLeft", "Reason", "Name", "STDOUT")
SLURM_FORMAT = ",".join(f"{name}:|" for name in SLURM_COLUMNS)
"""Bars after values, which are then of any width (`squeue`, "--Format")."""

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

LSF_FORMAT = "jobid stat exit_code exit_reason output_file delimiter='|'"

FLUX_STATES = {
    "DEPEND": HELD,
    "PRIORITY": WAITING,
    "SCHED": WAITING,
    "PENDING": WAITING,
    "RUN": RUNNING,
    "RUNNING": RUNNING,
    "CLEANUP": RUNNING,
    "COMPLETED": ENDED,
    "FAILED": FAILED,
    "CANCELED": CANCELLED,
    "TIMEOUT": WALLTIME,
}
"""`flux-jobs`, "JOB STATUS"."""

QSTAT = TimeSource(answers.qstat, command=("qstat", "-f"))
AFTER_ANY = ("-W", "depend=afterany:{}")
"""PBS (`qsub`, "depend=dependency_list") and Torque."""

FLUX_FORMAT = "{id.f58}|{status}|{returncode}|{t_remaining}|{exception.type}"

BUILTIN: Mapping[str, Scheduler] = {
    "pbs": Scheduler(  # PBS Pro and OpenPBS
        title="PBS",
        sentinel="#PBS",
        submit=("qsub",),
        status=("qstat", "-x", "-f"),
        number=PBS_NUMBER,
        layout=Blocks(PBS_JOB, PBS_KEYS),
        states=PBS_STATES,
        ending=PbsExit(walltime=-29),  # JOB_EXEC_KILL_WALLTIME
        cancel=("qdel",),
        outputs=("{title}.o{number}",),
        signs={"job killed: walltime": WALLTIME, r"\bsubstate 91\b": CANCELLED},
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
        layout=Blocks(PBS_JOB, TORQUE_KEYS),
        states=PBS_STATES,
        ending=PbsExit(walltime=-11),  # JOB_EXEC_OVERLIMIT_WT
        cancel=("qdel",),
        outputs=("{title}.o{number}",),
        # The others are of Slurm with Torque's commands.
        signs={"job killed: walltime": WALLTIME, **SLURM_SIGNS},
        settings=frozenset({"select", "attributes"}),
        kept={"queue": ("-q", "PBS_O_QUEUE")},
        # Slurm's Torque commands set its own variables only.
        job_id_variables=("PBS_JOBID", "SLURM_JOB_ID"),
        folder_variables=("PBS_O_WORKDIR", "SLURM_SUBMIT_DIR"),
        time_left=(QSTAT, TimeSource(answers.limit, variable="PBS_WALLTIME")),
        dependency=AFTER_ANY,
        host_file_variable="PBS_NODEFILE",
        node_count_variables=("SLURM_JOB_NUM_NODES",),
    ),
    "cobalt": Scheduler(
        title="Cobalt",
        sentinel="#COBALT",
        submit=("qsub",),
        status=("qstat", "-l", "--header=JobID:State:TimeRemaining"),
        number=re.compile(r"^(\d+)\s*$", re.ASCII | re.MULTILINE),
        layout=Blocks(
            re.compile(r"\s*JobID\s*:\s*(\d+)", re.IGNORECASE),
            {"State": "state", "TimeRemaining": "left"},
        ),
        states=COBALT_STATES,
        cancel=("qdel",),
        outputs=("{number}.output",),
        logs=("{number}.cobaltlog", "{number}.error"),
        signs={
            "maximum execution time exceeded": WALLTIME,
            "user delete requested": CANCELLED,
        },
        logged_exit=re.compile(r"completed normally with an exit code of (\d{1,6})", re.ASCII),
        settings=frozenset({"attributes", "filesystems"}),
        job_id_variables=("COBALT_JOBID",),
        time_left=(TimeSource(answers.end_time, variable="COBALT_ENDTIME"),),
        dependency=("--dependencies", "{}"),
        host_file_variable="COBALT_NODEFILE",
    ),
    "slurm": Scheduler(
        title="Slurm",
        sentinel="#SBATCH",
        submit=("sbatch", "--parsable"),
        status=("squeue", "--noheader", "--states=all", f"--Format={SLURM_FORMAT}", "--jobs"),
        joined=",",
        number=re.compile(r"^(\d+)(?:;\S+)?\s*$", re.ASCII | re.MULTILINE),
        layout=Table(("state", "exit", "left", "reason", "name", "output")),
        states=SLURM_STATES,
        ending=wait_status,
        # Where the site keeps accounts; `squeue` forgets after MinJobAge, by default 300 s.
        history=("sacct", "-X", "-n", "-P", "--format=JobIDRaw,State,ExitCode", "--jobs"),
        history_layout=Table(("state", "exit")),
        cancel=("scancel",),
        outputs=("{title}.o{number}", "slurm-{number}.out"),
        signs=SLURM_SIGNS,
        unknown=("invalid job id",),
        settings=frozenset({"attributes", "filesystems"}),
        kept={
            "queue": ("--partition", "SLURM_JOB_PARTITION"),
            "account": ("--account", "SLURM_JOB_ACCOUNT"),
        },
        job_id_variables=("SLURM_JOB_ID",),
        folder_variables=("SLURM_SUBMIT_DIR",),
        time_left=(
            TimeSource(answers.end_time, variable="SLURM_JOB_END_TIME"),
            TimeSource(answers.squeue, command=("squeue", "--noheader", "--format=%L", "--jobs")),
        ),
        dependency=("--dependency=afterany:{}",),
        node_count_variables=("SLURM_JOB_NUM_NODES", "SLURM_NNODES"),
    ),
    "lsf": Scheduler(
        title="LSF",
        sentinel="#BSUB",
        submit=("bsub",),
        from_standard_input=True,
        status=("bjobs", "-a", "-noheader", "-o", LSF_FORMAT),
        number=re.compile(r"^(?:Job <)?(\d+)(?:>.*)?\s*$", re.ASCII | re.MULTILINE),
        layout=Table(("state", "exit", "reason", "output")),
        states=LSF_STATES,
        cancel=("bkill",),
        outputs=("{title}.o{number}",),
        signs={
            "TERM_RUNLIMIT": WALLTIME,
            "TERM_OWNER": CANCELLED,
            "TERM_FORCE_OWNER": CANCELLED,
            "TERM_ADMIN": CANCELLED,
            "TERM_FORCE_ADMIN": CANCELLED,
        },
        logged_exit=re.compile(r"Exited with exit code (\d{1,6})", re.ASCII),
        unknown=("is not found",),
        settings=frozenset({"attributes"}),
        kept={"queue": ("-q", "LSB_QUEUE"), "account": ("-P", "LSB_PROJECT_NAME")},
        job_id_variables=("LSB_JOBID",),
        time_left=(TimeSource(answers.bjobs, command=("bjobs", "-noheader", "-o", "time_left")),),
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
        status=("flux", "jobs", "-a", "--no-header", f"--format={FLUX_FORMAT}"),
        number=re.compile(r"^([\w\u0192]+)\s*$", re.MULTILINE),
        layout=Table(("state", "exit", "left", "reason")),
        states=FLUX_STATES,
        ending=flux_code,
        cancel=("flux", "cancel"),
        outputs=("flux-{number}.out",),
        signs={
            r"job\.exception type=timeout": WALLTIME,
            r"job\.exception type=cancel": CANCELLED,
        },
        unknown=("unknown", "no such"),
        settings=frozenset({"attributes"}),
        job_id_command="flux getattr jobid",
        # Without a number: the job that this instance of Flux runs in.
        time_left=(TimeSource(answers.flux, command=("flux", "job", "timeleft"), numbered=False),),
        dependency=("--dependency=afterany:{}",),
        # A job is an instance of Flux with one broker a node (flux-broker-attributes, "size").
        node_count_command=("flux", "getattr", "size"),
    ),
}

SCHEDULERS = Rows(BUILTIN, "omb_py.schedulers", Scheduler)
"""By the names that a machine's configuration uses, those of other distributions included."""
