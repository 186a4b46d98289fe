#!/bin/bash
#SBATCH --job-name=omb-py-gate
#SBATCH --ntasks-per-node=1
#SBATCH --time=5
#SBATCH --exclusive
# Judges all nodes of the job against each other, and keeps the results of each night: README.md.
#   OMB_PY_GATE_FOLDER     where nights are kept; omb-py-gate in the home
#   OMB_PY_GATE_OPTIONS    more options of omb-py gate, as --groups FILE --expected FILE
set -u
folder=${OMB_PY_GATE_FOLDER:-$HOME/omb-py-gate}
night=$folder/$(date -u +%Y-%m-%d)-$SLURM_JOB_ID
mkdir -p "$night" || exit
# the same sizes every night: else a night may choose others, and history has nothing to compare
# shellcheck disable=SC2086 # several words
srun omb-py gate --sizes 8,1M --results "$night/gate.csv" --drain "$night/drain" \
    ${OMB_PY_GATE_OPTIONS:-}
code=$?
[ ! -s "$night/drain" ] || sed "s/.*/scontrol update NodeName=& State=DRAIN Reason='omb-py gate'/" "$night/drain"
omb-py history "$folder" -o "$folder/history.csv" --force
exit $code
