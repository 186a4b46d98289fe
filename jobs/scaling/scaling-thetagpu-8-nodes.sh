#!/bin/bash
#COBALT --jobname scaling-8n
#COBALT -n 8
#COBALT -t 30
#COBALT --attrs filesystems=home,eagle
#COBALT -q full-node
##COBALT -A PROJECT
#
# Sweep scaling on thetagpu, 8 nodes: collectives over the number of ranks and nodes
# Made by: omb-py job render scaling --machine thetagpu --nodes 8
# Submit it from the folder in which sweeps/scaling-thetagpu is to be: qsub SCRIPT
# Options on that command line hold for the first job only: for all, put them above.

# Schedulers run a copy that is gone with its job: keep one beside the results, to go on from.
jobs=sweeps/scaling-thetagpu/jobs
script=$jobs/scaling-8-nodes.sh
mkdir -p "$jobs" || exit
if [ -f "$0" ] && ! [ "$0" -ef "$script" ]; then
    install -m 755 -- "$0" "$script"
fi

# What becomes of this job, for `omb-py job status`.
job=${COBALT_JOBID:--}
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
omb-py sweep scaling --machine thetagpu --nodes 8 --stop-after "${seconds}s" &
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
    qsub "$script"
    exit
fi
exit "$code"
