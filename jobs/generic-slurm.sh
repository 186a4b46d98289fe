#!/bin/bash
#SBATCH --job-name=scaling
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --exclusive
#SBATCH --time=00:30:00
#SBATCH --output=%x.o%j
##SBATCH --partition=QUEUE
##SBATCH --account=PROJECT
#
# Sweep scaling on generic-slurm, 1 and 2 nodes in one job: collectives over the number of ranks and nodes
# Made by: omb-py job render scaling --machine generic-slurm --one-job  # 604f998f
# Submit it from the folder in which sweeps/scaling-generic-slurm is to be: sbatch SCRIPT
# Options on that command line hold for the first job only: for all, put them above.

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
granted=$(
    end=$(timeout 20 squeue --noheader --format=%e --jobs "$job") &&
        echo "$(($(date -d "$end" +%s) - $(date +%s)))"
)
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
SECONDS=0
signalled=
omb-py sweep "${sweep[@]}" --stop-after "${left}s" &
pid=$!
trap '
    trap "" TERM
    [ "$SECONDS" -ge "$left" ] || signalled=yes # a signal before its time is over
    kill -TERM "$pid"
' TERM
wait "$pid"
code=$?
if [ "$code" -gt 128 ]; then # a signal ended the wait, not the sweep
    wait "$pid"
    code=$?
fi

# 75: there is more to do, and this job came further. Another one goes on, or it is said why not.
if [ "$code" -eq 75 ]; then
    trap "" TERM
    omb-py job continue "$job" "${sweep[@]}" \
        --chain resubmit ${signalled:+--signalled}
    exit
fi
exit "$code"
