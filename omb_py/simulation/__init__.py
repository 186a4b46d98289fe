"""Programs of many ranks, run on SimGrid instead of MPI, to predict a larger machine.

`program` has the operations of a rank, `network` the costs of messages and the connections of
nodes, `engine` runs one on the other. Nothing here is loaded except for a simulation.
"""

from importlib.util import find_spec

from omb_py.core.errors import MissingPackageError, installing


def check_installed() -> None:
    """Raise `MissingPackageError` without SimGrid."""
    if find_spec("simgrid") is None:
        raise MissingPackageError(
            "simulate",
            "simgrid",
            "apt install python3-simgrid (Debian, Ubuntu; for the Python of the system: a virtual "
            "environment by /usr/bin/python3 -m venv --system-site-packages), or pip install "
            f"'simgrid<4' where it builds; then {installing('simulate')}",
        )
