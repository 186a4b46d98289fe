#!/bin/sh
# Starts omb-py from an image on the node's own storage: the first rank of a node extracts it from
# omb-py.tar, all others wait for that. Written by omb-py bundle; all arguments are omb-py's.
#
# OMB_PY_BUNDLE    the image, where it is not beside this script (after sbcast, say)
# OMB_PY_NODE_DIR  where to extract it, else TMPDIR, else /tmp

hash=@HASH@
python=@PYTHON@

case $0 in
    */*) tar=${0%/*}/omb-py.tar ;;
    *) tar=./omb-py.tar ;;
esac
tar=${OMB_PY_BUNDLE:-$tar}
storage=${OMB_PY_NODE_DIR:-${TMPDIR:-/tmp}}
case $storage in
    /*) ;;
    *) storage=$PWD/$storage ;;
esac
path=$PATH
libraries=${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PATH=/usr/bin:/bin:$PATH # the commands below are on each node, searched for there alone
unset LD_LIBRARY_PATH
user=$(id -u)
node=$storage/omb-py-$user-$hash
image=$node/image
line_break='
'

rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${PALS_RANKID:-${SLURM_PROCID:-}}}}}
local_rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${PALS_LOCAL_RANKID:-${SLURM_LOCALID:-}}}}
launch=${PMIX_NAMESPACE:-${SLURM_STEP_ID:-${PMI_RANK:+mpiexec}}}
launch=${launch:+$launch.$PPID} # the same for all ranks that a launcher started on this node

# leave CODE SENTENCE: say it, and end the job; Hydra would let other nodes' ranks wait for ever
leave() {
    printf 'omb-py: %s\n' "$2" >&2
    [ -n "$rank" ] && sleep 1 # the launcher passes the sentence on
    if [ -n "${PMI_FD:-}" ] && [ -z "${PMI_JOBID:-}" ] && [ -S "/proc/$$/fd/$PMI_FD" ]; then
        bash -c 'printf "cmd=abort exitcode=%d\n" "$1" >&"$PMI_FD"' bash "$1" 2>/dev/null
        sleep 1
    fi
    exit "$1"
}

# agree CODE SENTENCE: leave with what all ranks of a node find: rank 0 says it, or else one a node
agree() {
    [ "${rank:-0}" -eq 0 ] || sleep 2
    [ "${local_rank:-0}" -eq 0 ] || sleep 2
    [ "${local_rank:-0}" -eq 0 ] || exit "$1"
    leave "$@"
}

# fail SENTENCE: leave with what one rank finds while the others of its node wait for it
fail() {
    rm -rf "$node/new"
    printf '%s\n' "$launch" >"$node/failed"
    leave 1 "$1"
}

extract() {
    if [ -n "$launch" ] && read -r failed 2>/dev/null <"$node/failed" && [ "$failed" = "$launch" ]; then
        exit 1 # the rank that was first has said why
    fi
    rm -rf "$node/new" "$node/failed" # of one that was killed
    reason=$(mkdir "$node/new" 2>&1 && LC_ALL=C tar -xof "$tar" -C "$node/new" 2>&1) || {
        case $reason in
            *"No space left"*) reason="No space left on device" ;;
            *) reason=${reason%%"$line_break"*} ;;
        esac
        fail "cannot extract $tar into $node: ${reason##*: }; OMB_PY_NODE_DIR names another place"
    }
    [ -e "$node/new/complete-$hash" ] ||
        fail "$tar is not the image of $0: write both anew with omb-py bundle"
    mv "$node/new" "$image" || fail "cannot rename $node/new"
}

if [ ! -d "$image" ] && [ ! -r "$tar" ]; then
    agree 1 "cannot read $tar: it belongs beside $0, or name it by OMB_PY_BUNDLE"
fi
reason=$([ -e "$node" ] || mkdir -m 700 "$node" 2>&1) || [ -e "$node" ] ||
    agree 1 "cannot make $node: ${reason##*: }; OMB_PY_NODE_DIR names another place"
[ -n "$(find "$node" -prune -type d -user "$user" ! -perm -020 ! -perm -002)" ] ||
    agree 2 "$node is not a folder of yours alone; OMB_PY_NODE_DIR names another place"
if [ ! -d "$image" ]; then
    command -v flock >/dev/null || agree 1 "there is no flock (util-linux), by which ranks take turns"
    { true >>"$node/lock"; } 2>/dev/null || agree 1 "cannot write into $node; OMB_PY_NODE_DIR names another place"
    { flock 9 && { [ -d "$image" ] || extract; }; } 9>>"$node/lock" || agree 1 "cannot lock $node/lock"
fi

if [ -n "${OPAL_PREFIX:-}" ] && [ -d "$image/lib/openmpi" ]; then
    # Open MPI's launcher names the installation, which would be searched before the image
    while :; do
        case $libraries: in
            *":$OPAL_PREFIX/lib:"*) all=$libraries: ;;
            *) break ;;
        esac
        libraries=${all%%":$OPAL_PREFIX/lib:"*}:${all#*":$OPAL_PREFIX/lib:"}
        libraries=${libraries%:}
    done
    OPAL_PREFIX=$image
    PMIX_PREFIX=$image
    export OPAL_PREFIX PMIX_PREFIX
fi
PATH=$path
PYTHONNOUSERSITE=1
LD_LIBRARY_PATH=$image/lib$libraries
export PATH PYTHONNOUSERSITE LD_LIBRARY_PATH
unset PYTHONHOME
if [ -d "$image/cache" ]; then
    OMB_PY_CACHE_DIR=${OMB_PY_CACHE_DIR:-$image/cache}
    export OMB_PY_CACHE_DIR
fi
exec "$image/bin/$python" "$image/bin/omb-py" "$@"
