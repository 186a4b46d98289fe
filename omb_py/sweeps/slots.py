"""Slots for Open MPI's ranks in a job of PBS, Torque or Cobalt.

There Open MPI takes a node's slots from the job's node file, one for each line that names it, and
not from a host file: PRRTE of Open MPI 5 and later in every build (component ras/pbs), Open MPI 4
where it was built with Torque's library (ras/tm). To leave that component out would give up the
launch ids that plm/tm needs, the lines' numbers, so the node file gets more lines at its end.
Open MPI 4 expects it to be named after the job.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from omb_py.sweeps.files import write_atomically

NODE_FILES = {"PBS_JOBID": "PBS_NODEFILE", "COBALT_JOBID": "COBALT_NODEFILE"}
"""The variable of a job's node file, by that of its number."""

SLOTS_ELSEWHERE = "PBS_PPN"
"""Set where a node file names each node once and this is its slots (ras/pbs, "SMP mode")."""


def with_slots(slots: int, folder: Path) -> dict[str, str]:
    """The variables that name node files of this job with so many slots for each node.

    The files are written into ``folder``. Nothing for a file that has enough. Raises `OmbError`
    when one cannot be written.
    """
    found: dict[str, str] = {}
    for job, variable in NODE_FILES.items():
        number, path = os.environ.get(job), os.environ.get(variable)
        if not number or not path or SLOTS_ELSEWHERE in os.environ:
            continue
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        there = Counter(lines)
        more = [name for name in there for _ in range(slots - there[name])]
        if more:
            ours = folder.resolve() / Path(number).name
            write_atomically(ours, "".join(f"{name}\n" for name in lines + more))
            found[variable] = str(ours)
    return found
