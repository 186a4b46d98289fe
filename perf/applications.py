"""Every application on this environment's MPI, on 1, 2, 4 and 8 ranks, strong and weak scaling.

Usage: python -m perf.applications [REPEATS [SCALING,…]]

Into results/applications-mpich.csv or -openmpi.csv, which `omb-py show --speedup` shows. Ends with
1 when a job failed, which it does when a result is wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from omb_py.apps import APPLICATIONS
from perf.families import FEW_CORES, mpi_library
from perf.jobs import BIN, ENVIRONMENT, OMB_PY

ROOT = Path(__file__).parent.parent
RANKS = (1, 2, 4, 8)
WITHOUT_PROBLEM = "replay"
"""It repeats the calls of a profile."""


def main() -> int:
    """Measure; how many jobs failed."""
    os.chdir(ROOT / "results")
    name = mpi_library().split()[0].lower()
    output = f"applications-{'mpich' if name == 'mpich' else 'openmpi'}.csv"
    Path(output).unlink(missing_ok=True)
    repeats = ["--repeats", sys.argv[1]] if sys.argv[1:] else []
    scalings = sys.argv[2].split(",") if sys.argv[2:] else ("strong", "weak")
    failed = 0
    for application in APPLICATIONS.builtin():
        for scaling in scalings if application != WITHOUT_PROBLEM else ():
            for ranks in RANKS:
                words = [application, "--scaling", scaling, "-q", "--output", output]
                words += repeats
                done = subprocess.run(
                    [str(BIN / "mpiexec"), "-n", str(ranks), OMB_PY, *words],
                    env=ENVIRONMENT | FEW_CORES,
                    check=False,
                )
                failed += done.returncode != 0
                print(application, scaling, ranks, f"exit code {done.returncode}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
