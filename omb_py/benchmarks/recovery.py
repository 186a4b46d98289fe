"""Going on when ranks fail (ULFM): detection, revocation, shrinking, agreement, replacement."""

from __future__ import annotations

from collections.abc import Callable

from omb_py.benchmarks import Benchmark, Defaults, Ranks, Recovery, no_plan
from omb_py.core.options import FAILURE_TIMEOUT, OPERATIONS, Options

AROUND_FAILURE = ("before", "first after", "stable after")
REVOKED = ("allreduce before", "revoke", "interrupted allreduce", "allreduce after")
REPLACED = ("shrink", "spawn", "merge", "reorder", "total")


def recovery(
    name: str,
    title: str,
    summary: str,
    measured: Recovery,
    options: set[str],
    part_names: Callable[[Options], tuple[str, ...]],
) -> Benchmark:
    """Return a benchmark of jobs whose ranks fail."""
    return Benchmark(
        name=name,
        title=title,
        family="fault tolerance",
        summary=summary,
        plan=no_plan,
        defaults=Defaults(100, 10, 100, 10, smallest=0, largest=0),
        ranks=Ranks.SEVERAL,
        options=frozenset(options),
        preset={"timeout": FAILURE_TIMEOUT},
        sized=False,
        recovery=measured,
        part_names=part_names,
        native=False,
    )


BENCHMARKS = (
    recovery(
        "ft_detect",
        "Failure Detection",
        "Time until operations report a failed rank.",
        Recovery.DETECT,
        {"victims", "operations"},
        lambda options: options.operations or OPERATIONS,
    ),
    recovery(
        "ft_revoke",
        "Comm_revoke",
        "Time until an operation on a revoked communicator ends.",
        Recovery.REVOKE,
        {"repeated"},
        lambda options: REVOKED,
    ),
    recovery(
        "ft_shrink",
        "Comm_shrink",
        "MPI_Comm_shrink before, first after and again after a failure.",
        Recovery.SHRINK,
        {"victims", "repeated"},
        lambda options: AROUND_FAILURE,
    ),
    recovery(
        "ft_agree",
        "Comm_agree",
        "MPI_Comm_agree before, first after and again after a failure.",
        Recovery.AGREE,
        {"victims", "repeated"},
        lambda options: AROUND_FAILURE,
    ),
    recovery(
        "ft_respawn",
        "Rank Replacement",
        "Time to replace failed ranks: shrink, spawn, merge, reorder.",
        Recovery.RESPAWN,
        {"victims"},
        lambda options: REPLACED,
    ),
)
