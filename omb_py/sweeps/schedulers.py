"""Batch schedulers: one row of a table each; the directives of each are a template."""

from __future__ import annotations

import re
from collections.abc import Mapping

from omb_py.core.registry import Rows
from omb_py.sweeps.scheduler import Kept, Scheduler, in_blocks, in_columns

PBS_NUMBER = re.compile(r"^(\d+(?:\[\d*\])?(?:\.[\w.-]+)?)\s*$", re.ASCII | re.MULTILINE)
PBS_QUEUE = Kept("queue", "-q", "PBS_O_QUEUE", " -q")
ANSWER = "timeout 20"
"""A scheduler that hangs costs a job no more than these seconds."""

QSTAT = (
    f'{ANSWER} qstat -f "$job" | awk -F " = " -v used="$SECONDS" \'\n'
    """        /Resource_List.walltime/ { split($2, t, ":"); print """
    """3600 * t[1] + 60 * t[2] + t[3] - used }'"""
)

BUILTIN: Mapping[str, Scheduler] = {
    "pbs": Scheduler(  # PBS Pro and OpenPBS; reference guide, "Job States" and "Job Attributes"
        title="PBS",
        sentinel="#PBS",
        submit=("qsub",),
        status=("qstat", "-x", "-f"),
        cancel=("qdel",),
        number=PBS_NUMBER,
        read=in_blocks(r"Job Id:\s*(\S+)", "job_state", "Exit_status", "comment"),
        queued=frozenset("QWTMHSU"),
        running=frozenset("RBE"),
        settings=frozenset({"select", "attributes", "filesystems"}),
        kept=(PBS_QUEUE, Kept("account", "-A", "PBS_ACCOUNT", " -A")),
        job_id_variables=("PBS_JOBID",),
        folder_variables=("PBS_O_WORKDIR",),
        time_left=QSTAT,
        host_file_variable="PBS_NODEFILE",
    ),
    "torque": Scheduler(  # administrator guide, "Job states" and "Job exit status"
        title="Torque",
        sentinel="#PBS",
        submit=("qsub",),
        status=("qstat", "-f"),
        cancel=("qdel",),
        number=PBS_NUMBER,
        read=in_blocks(r"Job Id:\s*(\S+)", "job_state", "exit_status", "comment"),
        queued=frozenset("QWTH"),
        running=frozenset("RE"),
        settings=frozenset({"select", "attributes"}),
        kept=(PBS_QUEUE,),
        # Slurm's Torque commands set its own variables only.
        job_id_variables=("PBS_JOBID", "SLURM_JOB_ID"),
        folder_variables=("PBS_O_WORKDIR", "SLURM_SUBMIT_DIR"),
        time_left=QSTAT,
        host_file_variable="PBS_NODEFILE",
        node_count_variables=("SLURM_JOB_NUM_NODES",),
    ),
    "cobalt": Scheduler(  # ALCF's user guide of ThetaGPU; a job that ended is no longer listed
        title="Cobalt",
        sentinel="#COBALT",
        submit=("qsub",),
        status=("qstat", "-l", "--header=JobID:State"),
        cancel=("qdel",),
        number=re.compile(r"^(\d+)\s*$", re.ASCII | re.MULTILINE),
        read=in_blocks(r"JobID\s*:\s*(\d+)", "State"),
        queued=frozenset(
            {
                *("queued", "starting", "user_hold", "admin_hold", "dep_hold", "dep_fail"),
                "maxrun_hold",
            }
        ),
        running=frozenset({"running", "exiting", "killing"}),
        settings=frozenset({"attributes", "filesystems"}),
        job_id_variables=("COBALT_JOBID",),
        time_left='[ -z "$COBALT_ENDTIME" ] || echo "$((COBALT_ENDTIME - $(date +%s)))"',
        host_file_variable="COBALT_NODEFILE",
    ),
    "slurm": Scheduler(  # `squeue`, "JOB STATE CODES"
        title="Slurm",
        sentinel="#SBATCH",
        submit=("sbatch", "--parsable"),
        status=("squeue", "--noheader", "--states=all", "--format=%A|%T|%r", "--jobs"),
        joined=",",
        cancel=("scancel",),
        number=re.compile(r"^(\d+)(?:;\S+)?\s*$", re.ASCII | re.MULTILINE),
        read=in_columns(""),
        queued=frozenset(
            {
                *("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED"),
                *("RESV_DEL_HOLD", "SPECIAL_EXIT", "SUSPENDED", "STOPPED"),
            }
        ),
        running=frozenset({"RUNNING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT"}),
        unknown=("invalid job id",),
        settings=frozenset({"attributes", "filesystems"}),
        kept=(
            # where a quality of service is the queue, the partition is the site's business
            Kept("queue", "--partition", "SLURM_JOB_PARTITION", " (--partition|-p|--qos|-q)"),
            Kept("account", "--account", "SLURM_JOB_ACCOUNT", " (--account|-A)"),
        ),
        job_id_variables=("SLURM_JOB_ID",),
        folder_variables=("SLURM_SUBMIT_DIR",),
        time_left=(
            f'end=$({ANSWER} squeue --noheader --format=%e --jobs "$job") &&\n'
            '        echo "$(($(date -d "$end" +%s) - $(date +%s)))"'
        ),
        node_count_variables=("SLURM_JOB_NUM_NODES", "SLURM_NNODES"),
    ),
    "lsf": Scheduler(  # `bjobs`, "STAT"
        title="LSF",
        sentinel="#BSUB",
        submit=("bsub",),
        from_standard_input=True,
        status=("bjobs", "-a", "-noheader", "-o", "jobid stat exit_code exit_reason delimiter='|'"),
        cancel=("bkill",),
        number=re.compile(r"^(?:Job <)?(\d+)(?:>.*)?\s*$", re.ASCII | re.MULTILINE),
        read=in_columns("exit code", ""),
        queued=frozenset({"PEND", "PROV", "WAIT", "PSUSP", "USUSP", "SSUSP"}),
        running=frozenset({"RUN", "UNKWN", "ZOMBI"}),
        unknown=("is not found",),
        settings=frozenset({"attributes"}),
        kept=(
            Kept("queue", "-q", "LSB_QUEUE", " -q"),
            Kept("account", "-P", "LSB_PROJECT_NAME", " -P"),
        ),
        job_id_variables=("LSB_JOBID",),
        time_left=(  # hours and minutes; E marks an estimate that ends no job
            f'{ANSWER} bjobs -noheader -o time_left "$job" | '
            """awk -F '[: ]+' '$3 == "L" { print 60 * (60 * $1 + $2) }'"""
        ),
        folder_variables=("LS_SUBCWD",),
        host_file_variable="LSB_DJOB_HOSTFILE",
        warnings=("TERM", "USR2"),
    ),
    "flux": Scheduler(  # `flux-jobs`, "JOB STATUS"
        title="Flux",
        sentinel="#flux:",
        disabled="#flux: #",
        submit=("flux", "batch"),
        again=("flux", "--parent", "batch"),
        status=(
            *("flux", "jobs", "-a", "--no-header"),
            "--format={id.f58}|{status}|{returncode}|{exception.type}",
        ),
        cancel=("flux", "cancel"),
        number=re.compile(r"^([\w\u0192]+)\s*$", re.MULTILINE),
        read=in_columns("return code", ""),
        queued=frozenset({"DEPEND", "PRIORITY", "SCHED", "PENDING"}),
        running=frozenset({"RUN", "RUNNING", "CLEANUP"}),
        unknown=("unknown", "no such"),
        settings=frozenset({"attributes"}),
        job_id_command=("flux", "getattr", "jobid"),
        time_left=f"{ANSWER} flux job timeleft",  # of the job that this Flux runs in
        # A job is an instance of Flux with one broker a node (flux-broker-attributes, "size").
        node_count_command=("flux", "getattr", "size"),
    ),
}

SCHEDULERS = Rows(BUILTIN, "omb_py.schedulers", Scheduler)
"""By the names that a machine's configuration uses, those of other distributions included."""
