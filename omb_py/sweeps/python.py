"""Questions that another process of this Python answers, as none of ours may load MPI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

NOT_STARTED = {"MPI4PY_RC_INITIALIZE": "0"}
"""The variable with which mpi4py loads MPI and does not start it."""


def in_python(
    program: str,
    variables: Mapping[str, str | None],
    *words: str,
    python: str = sys.executable,
) -> subprocess.CompletedProcess[str]:
    """Run a program in this Python, or another one, and return its end and its output.

    It has ``variables`` besides those of this process, without those that are None. Raises
    `OSError` if there is no such Python.
    """
    command = [python, "-c", program, *words]
    environment = {
        name: one for name, one in {**os.environ, **variables}.items() if one is not None
    }
    # the packages of a folder where someone is would come before those of another environment
    folder = None if python == sys.executable else os.path.dirname(python)
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
