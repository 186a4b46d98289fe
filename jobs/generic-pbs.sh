#!/bin/bash
#PBS -N scaling
#PBS -l select=2:ncpus=8:mpiprocs=8
#PBS -l place=scatter:excl
#PBS -l walltime=00:30:00
#PBS -j oe
##PBS -q QUEUE
##PBS -A PROJECT
#
# Sweep scaling on generic-pbs, 1 and 2 nodes in one job: collectives over the number of ranks and nodes
# Made by: omb-py job render scaling --machine generic-pbs --one-job
# Submit it from the folder in which sweeps/scaling-generic-pbs is to be: qsub SCRIPT
# Of options on that command line it keeps queue and account for its next job: others go above.

cd "${PBS_O_WORKDIR:-.}" || exit
# Schedulers run a copy that is gone with its job: keep one beside the results, to go on from.
jobs=sweeps/scaling-generic-pbs/jobs
script=$jobs/scaling.sh
mkdir -p "$jobs" || exit
if [ -f "$0" ] && ! [ "$0" -ef "$script" ]; then
    install -m 755 -- "$0" "$script"
fi

# What becomes of this job, for `omb-py job status`.
job=${PBS_JOBID:--}
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
omb-py sweep scaling --machine generic-pbs --stop-after "${seconds}s" &
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
    qsub ${PBS_O_QUEUE:+-q "$PBS_O_QUEUE"} ${PBS_ACCOUNT:+-A "$PBS_ACCOUNT"} "$script"
    exit
fi
exit "$code"
