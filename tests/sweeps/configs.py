"""Sweeps and machines for tests, from what differs from the plainest one."""

from __future__ import annotations

from typing import Any

from omb_py.sweeps.config import Sweep
from omb_py.sweeps.machine import Machine


def sweep(*experiments: dict[str, Any], **values: Any) -> Sweep:
    """A sweep of experiments; by default one of `latency` on two ranks."""
    plain = {"benchmarks": "latency", "bindings": "buffer"}
    found = [plain | ({} if "ranks_per_node" in own else {"ranks": 2}) | own for own in experiments]
    return Sweep.model_validate(
        {"name": "mine", "experiments": found or [plain | {"ranks": 2}]} | values
    )


def machine(**values: Any) -> Machine:
    """A machine of one node with 8 cores, unless told otherwise."""
    return Machine.model_validate(
        {"name": "here", "cores_per_node": 8, "launcher": "mpich"} | values
    )
