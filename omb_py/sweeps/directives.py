"""Options of schedulers that a configuration may add to a job: they ask for resources.

An option that is not here may still be written into a script by hand. Left out on purpose are those
that name a program (LSF's ``-E``, PBS's ``-S``), a file to write (``--output``, ``-o``) or to copy
(PBS's ``-W stageout``), or that change the job's environment.
"""

from __future__ import annotations

PBS = frozenset("-A -a -k -l -M -m -P -p -q -r".split())
TORQUE = frozenset("-A -a -k -l -M -m -p -q -r".split())
COBALT = frozenset("-A -M -q --attrs --dependencies --notify --project --queue".split())
SLURM = frozenset(
    "-A -C -G -L -M -p -q -w -x --account --begin --clusters --constraint --contiguous --core-spec "
    "--cores-per-socket --cpus-per-gpu --cpus-per-task --dependency --distribution --exclude "
    "--exclusive --gpu-bind --gpu-freq --gpus --gpus-per-node --gres --hint --licenses --mail-type "
    "--mail-user --mem --mem-per-cpu --mem-per-gpu --network --nice --no-requeue --nodelist "
    "--ntasks-per-core --ntasks-per-node --ntasks-per-socket --partition --qos --requeue "
    "--reservation --sockets-per-node --switches --thread-spec --threads-per-core "
    "--use-min-nodes --wckey".split()
)
LSF = frozenset(
    "-G -M -P -R -U -app -alloc_flags -core_isolation -gpu -m -q -sla -sp -u -w -x".split()
)
FLUX = frozenset(
    "-B -q --bank --begin-time --cores-per-slot --dependency --exclusive --gpus-per-slot --queue "
    "--requires --urgency".split()
)
