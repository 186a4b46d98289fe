"""Jobs over virtual hosts: the launcher's words, and running them on the first host."""

from __future__ import annotations

import os
from pathlib import Path

from tests.conftest import BIN, ENVIRONMENT, MPIEXEC, OMB_PY, Finished, run
from tests.hosts.virtual_hosts import Hosts

OPEN_MPI = (BIN / "prterun").exists()
UNDER_COVERAGE = [name for name in ("COVERAGE_PROCESS_CONFIG",) if name in os.environ]


def launcher(ranks: int, per_host: int, variables: tuple[str, ...] = ()) -> list[str]:
    """The words that start so many ranks on each host until there are enough.

    Open MPI hands on to other hosts only the ``variables`` that are named, MPICH all.
    """
    words = [MPIEXEC, "-n", str(ranks)]
    if not OPEN_MPI:
        return [*words, "-ppn", str(per_host)]
    named = [word for name in (*variables, *UNDER_COVERAGE) for word in ("-x", name)]
    return [*words, "--map-by", f"ppr:{per_host}:node:oversubscribe", *named]


def job(
    hosts: Hosts,
    ranks: int,
    per_host: int,
    *arguments: str,
    folder: Path,
    timeout: float = 240,
    **variables: str,
) -> Finished:
    """Run omb-py on so many ranks of each host."""
    named = ("PYTHONPATH", *variables)
    command = [*launcher(ranks, per_host, named), OMB_PY, *arguments]
    environment = ENVIRONMENT | hosts.environment | variables
    return run(hosts.first.inside(command, folder), environment, folder, timeout)
