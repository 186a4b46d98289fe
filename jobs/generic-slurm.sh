#!/bin/bash
#SBATCH --job-name=scaling
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --exclusive
#SBATCH --time=00:30:00
#SBATCH --output=%x.o%j
#SBATCH --open-mode=append
##SBATCH --partition=QUEUE
##SBATCH --account=PROJECT
#
# Sweep scaling on generic-slurm, 1 and 2 nodes in one job: collectives over the number of ranks and nodes
# Made by: omb-py job render scaling --machine generic-slurm --one-job  # fa3a0bb7
# Submit it from the folder in which sweeps/scaling-generic-slurm is to be: sbatch SCRIPT
# Options on that command line hold for the first job only: for all, put them above.

trap "" USR1 USR2 # a warning may come before omb-py sweep hears it: its --stop-after is enough then

fail() {
    echo "omb-py: $*" >&2
    exit 1
}

cd "${SLURM_SUBMIT_DIR:-.}" ||
    fail "the folder from which this job was submitted is not on $HOSTNAME:" \
        "submit it from one that compute nodes have"

# Schedulers run a copy that is gone with its job: keep one beside the results, to go on from.
jobs=sweeps/scaling-generic-slurm/jobs
script=$jobs/scaling.sh
mkdir -p "$jobs" ||
    fail "cannot make the folder $jobs in $PWD on $HOSTNAME: submit from one that jobs can write to"
if [ -f "$0" ] && ! [ "$0" -ef "$script" ]; then
    install -m 755 -- "$0" "$script"
fi

job=${SLURM_JOB_ID:--}

venv=.venv
if [ -f "$venv/bin/activate" ]; then
    # shellcheck source=/dev/null
    source "$venv/bin/activate" || fail "source $venv/bin/activate fails on $HOSTNAME"
fi
command -v omb-py > /dev/null ||
    fail "there is no omb-py on $HOSTNAME, neither $venv/bin/omb-py in $PWD nor one on the PATH:" \
        "install it there, or set venv= in $script"

# Measures what is missing, and stops in order before the walltime is over: the scheduler's where
# it is shorter, less job.reserve.
sweep=(scaling --machine generic-slurm)
seconds=1740
left=$((seconds - SECONDS))
time_left() {
    timeout 20 squeue --noheader --jobs "$job" \
        --Format=State:20,PreemptTime:30,EndTime:30,Reason:60 | {
        read -r state preempted end reason
        if [ "$reason" = TimeLimit ] || [ "$state $preempted" = "RUNNING N/A" ]; then
            end=$(date -d "$end" +%s) && echo "$((end - $(date +%s)))"
        fi
    }
}
granted=$(time_left)
if [[ "$granted" =~ ^-?[0-9]+$ ]]; then
    granted=$((granted - 60))
    [ "$granted" -ge "$left" ] || left=$granted
else
    echo "omb-py: note: Slurm does not say how much time is left:" \
        "the walltime of this script holds" >&2
fi
[ "$left" -ge 10 ] ||
    fail "only $left s of the walltime are left beside job.reserve = 60 s, too few to" \
        "measure anything: ask for more"
signalled=
omb-py sweep "${sweep[@]}" --stop-after "${left}s" &
pid=$!
left=$((left + SECONDS)) # now of the seconds of this script
# shellcheck disable=SC2317 # traps call it
stop() {
    trap "" TERM USR1 USR2 HUP
    kill -"$1" "$pid"
    if [ "$SECONDS" -ge "$left" ] || [[ "$1" == USR? ]]; then
        return # USR1 and USR2 are warnings that were asked for; others come at the walltime, too
    fi
    granted=$(time_left)
    if ! [[ "$granted" =~ ^-?[0-9]+$ ]] || [ "$granted" -gt 60 ]; then
        signalled=yes
    fi
}
trap 'stop TERM' TERM
trap 'stop USR1' USR1
trap 'stop USR2' USR2
trap 'stop HUP' HUP
wait "$pid"
code=$?
if [ "$code" -gt 128 ]; then # a signal ended the wait, not the sweep
    wait "$pid"
    code=$?
fi

# 75: there is more to do, and this job came further. Another one goes on, or it is said why not.
if [ "$code" -eq 75 ]; then
    trap "" TERM USR1 USR2 HUP
    omb-py job continue "$job" "${sweep[@]}" \
        --chain resubmit ${signalled:+--signalled} \
        --seconds "$((left + 60 - SECONDS - 10))"
    exit
fi
exit "$code"
