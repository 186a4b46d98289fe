#!/bin/bash
# Makes the scripts in this folder anew: bash jobs/render.sh, where omb-py is on the PATH
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
for machine in thetagpu polaris aurora generic-pbs generic-torque generic-slurm; do
    omb-py job render scaling --machine "$machine" --one-job --dir "jobs/$machine.sh" || exit
    omb-py job render scaling --machine "$machine" --dir jobs/scaling || exit
done
