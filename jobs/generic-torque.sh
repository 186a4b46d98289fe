#!/bin/bash
#PBS -N scaling
#PBS -l nodes=2:ppn=8
#PBS -l walltime=00:30:00
#PBS -j oe
##PBS -q QUEUE
##PBS -A PROJECT
#
# Sweep scaling on generic-torque, 1 and 2 nodes in one job: collectives over the number of ranks and nodes
# Made by: omb-py job render scaling --machine generic-torque --one-job
# Submit it from the folder in which sweeps/scaling-generic-torque is to be: qsub SCRIPT
# Of options on that command line it keeps queue for its next job: others go above.

cd "${PBS_O_WORKDIR:-${SLURM_SUBMIT_DIR:-.}}" || exit
# Schedulers run a copy that is gone with its job: keep one beside the results, to go on from.
jobs=sweeps/scaling-generic-torque/jobs
script=$jobs/scaling.sh
mkdir -p "$jobs" || exit
if [ -f "$0" ] && ! [ "$0" -ef "$script" ]; then
    install -m 755 -- "$0" "$script"
fi

# What becomes of this job, for `omb-py job status`.
job=${PBS_JOBID:-${SLURM_JOB_ID:--}}
record() {
    printf '%s %s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$job" "$*" >> "${script%.sh}.record"
}
trap 'record ended "exit=$?"' EXIT
trap 'exit 143' TERM
record began "host=$HOSTNAME"

venv=.venv
if [ -f "$venv/bin/activate" ]; then
    # shellcheck source=/dev/null
    source "$venv/bin/activate"
fi

# Measures what is missing, and stops in order before the walltime is over.
seconds=1740
omb-py sweep scaling --machine generic-torque --stop-after "${seconds}s" &
sweep=$!
cancelled=
trap '
    trap "" TERM
    [ "$SECONDS" -ge "$seconds" ] || cancelled=yes
    kill -TERM "$sweep"
' TERM
wait "$sweep"
code=$?
if [ "$code" -gt 128 ]; then # a signal ended the wait, not the sweep
    wait "$sweep"
    code=$?
fi

# 75: there is more to do, and this job came further. Another one goes on, unless this one was
# cancelled: a signal came before its time was over.
if [ "$code" -eq 75 ] && [ -z "$cancelled" ]; then
    qsub ${PBS_O_QUEUE:+-q "$PBS_O_QUEUE"} "$script"
    exit
fi
exit "$code"
