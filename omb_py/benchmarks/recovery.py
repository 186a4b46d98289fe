"""Going on when ranks fail (ULFM): detection, revocation, shrinking, agreement, replacement."""

from __future__ import annotations

from omb_py.benchmarks import Benchmark, Defaults, Ranks, Recovery, no_plan
from omb_py.core.dataclass import replace
from omb_py.core.options import FAILURE_TIMEOUT, OPERATIONS

AROUND_FAILURE = ("before", "first after", "stable after")
REVOKED = ("allreduce before", "revoke", "interrupted allreduce", "allreduce after")
REPLACED = ("shrink", "spawn", "merge", "reorder", "total")


DETECTION = Benchmark(
    name="ft_detect",
    title="Failure Detection",
    family="fault tolerance",
    summary="Time until operations report a failed rank.",
    plan=no_plan,
    defaults=Defaults(100, 10, 100, 10, smallest=0, largest=0),
    ranks=Ranks.SEVERAL,
    options=frozenset({"victims", "operations"}),
    preset={"timeout": FAILURE_TIMEOUT},
    sized=False,
    recovery=Recovery.DETECT,
    part_names=lambda options: options.operations or OPERATIONS,
    native=False,
)
SHRINKING = replace(
    DETECTION,
    name="ft_shrink",
    title="Comm_shrink",
    summary="MPI_Comm_shrink before, first after and again after a failure.",
    options=frozenset({"victims", "repeated"}),
    recovery=Recovery.SHRINK,
    part_names=lambda options: AROUND_FAILURE,
)

BENCHMARKS = (
    DETECTION,
    replace(
        DETECTION,
        name="ft_revoke",
        title="Comm_revoke",
        summary="Time until an operation on a revoked communicator ends.",
        options=frozenset({"repeated"}),
        recovery=Recovery.REVOKE,
        part_names=lambda options: REVOKED,
    ),
    SHRINKING,
    replace(
        SHRINKING,
        name="ft_agree",
        title="Comm_agree",
        summary="MPI_Comm_agree before, first after and again after a failure.",
        recovery=Recovery.AGREE,
    ),
    replace(
        DETECTION,
        name="ft_respawn",
        title="Rank Replacement",
        summary="Time to replace failed ranks: shrink, spawn, merge, reorder.",
        options=frozenset({"victims"}),
        recovery=Recovery.RESPAWN,
        part_names=lambda options: REPLACED,
    ),
)
