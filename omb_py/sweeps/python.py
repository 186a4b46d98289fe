"""Questions that another process of this Python answers, as none of ours may load MPI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

NOT_STARTED = {"MPI4PY_RC_INITIALIZE": "0"}
"""The variable with which mpi4py loads MPI and does not start it."""


def in_python(
    program: str, variables: Mapping[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in this Python with variables added, and return its end and its output."""
    command = [sys.executable, "-c", program, *words]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
