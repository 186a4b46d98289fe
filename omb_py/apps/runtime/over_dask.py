"""Applications as programs of Dask, on clusters of one node that differ in what moves data."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

from omb_py.apps import ApplicationRequest, OverDask, Sequential
from omb_py.apps.runtime.rows import describe
from omb_py.core.errors import MissingPackageError, OmbError, needing
from omb_py.results.application import ApplicationRow
from omb_py.results.row import columns, new_run

PROTOCOLS = ("tcp", "ucxx")
"""What can move data between the workers of a cluster on one node."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that is open, its client, and the program with its input in the workers."""

    protocol: str
    client: Any
    program: OverDask


def versions() -> dict[str, str]:
    """What a file of results says of Dask; raises `MissingPackageError` where it is missing."""
    with needing("dask"):
        import dask
        import distributed
    return {"dask": dask.__version__, "distributed": distributed.__version__}


def measure(
    request: ApplicationRequest, workers: int, protocols: Sequence[str]
) -> Iterator[ApplicationRow]:
    """A row for each protocol; their clusters are open together, and take turns in each repeat.

    Raises `UsageError` for a problem that does not fit, `OmbError` where a worker is lost.
    """
    application, settings = request.application, request.settings
    problem = request.problem_for(workers)
    reference: Sequential | None = application.sequential(problem) if settings.check else None
    expected = reference.solve() if reference is not None else None
    with ExitStack() as after:
        clusters = [
            after.enter_context(open_cluster(protocol, application, problem, workers))
            for protocol in protocols
        ]
        seconds: dict[str, list[float]] = {protocol: [] for protocol in protocols}
        results: dict[str, Any] = {}
        for turn in range(settings.warmup_repeats + settings.repeats):
            for cluster in clusters:
                spent, results[cluster.protocol] = solve(cluster)
                if turn >= settings.warmup_repeats:
                    seconds[cluster.protocol].append(spent)
    for protocol, times in seconds.items():
        check = None
        if reference is not None:
            check = application.compare(problem, results[protocol], expected)
        time = median(times)
        empty: dict[str, Any] = dict.fromkeys(columns(ApplicationRow))
        yield ApplicationRow(
            **empty
            | {
                "run": new_run(),
                "application": application.name,
                "ranks": workers,
                "nodes": 1,
                "host_cores": os.cpu_count() or 1,
                "buffer": "numpy",
                "binding": f"dask-{protocol}",
                "problem": describe(application, request.problem),
                "scaling": settings.scaling,
                "threads": 1,
                "cores": workers,
                "blas": "",
                "repeats": settings.repeats,
                "time_s": time,
                "time_low_s": min(times),
                "time_high_s": max(times),
                "value": application.metric(problem, time),
                "unit": application.unit,
                "check": None if check is None else "Pass" if check.passed else "Fail",
                "difference": None if check is None else check.difference,
            }
        )


@contextmanager
def open_cluster(protocol: str, application: Any, problem: Any, workers: int) -> Iterator[Cluster]:
    """A scheduler and so many workers, processes of one thread each that never spill."""
    from distributed import Client, LocalCluster, wait

    if protocol == "ucxx":
        os.environ.setdefault("UCX_WARN_UNUSED_ENV_VARS", "n")  # UCX warns of its own variables
        try:
            import distributed_ucxx  # noqa: F401
        except ImportError as error:
            install = "pip install distributed-ucxx-cu12"
            raise MissingPackageError("--protocol ucxx", "distributed_ucxx", install) from error
    with _lost(protocol), ExitStack() as after:
        cluster = after.enter_context(
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                protocol=protocol,
                memory_limit=None,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            )
        )
        client = after.enter_context(Client(cluster))
        client.wait_for_workers(workers)
        program = application.over_dask(problem, workers)
        inputs = tuple(client.persist(one) for one in program.inputs)
        wait(inputs)
        yield Cluster(protocol, client, OverDask(inputs, program.solve, program.result))


def solve(cluster: Cluster) -> tuple[float, Any]:
    """Return the seconds from the program's call to the end of its last task, and its result.

    Raises `OmbError` if no task ran: Dask computes nothing that it still has.
    """
    from distributed import wait

    program = cluster.program
    with _lost(cluster.protocol), cluster.client.as_current():
        before = executed(cluster.client)
        begin = perf_counter()
        solved = cluster.client.persist(program.solve(*program.inputs))
        wait(solved)
        spent = perf_counter() - begin
        if executed(cluster.client) == before:
            raise OmbError(
                "Dask ran no task, since it had the result: the keys of over_dask's solve must be "
                "new each time"
            )
        return spent, program.result(solved)


def executed(client: Any) -> int:
    """Return how many tasks the workers have executed."""
    return sum(client.run(lambda dask_worker: dask_worker.state.executed_count).values())


@contextmanager
def _lost(protocol: str) -> Iterator[None]:
    """One sentence for what can happen to workers."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    try:
        yield
    except (KilledWorker, CommClosedError, FutureCancelledError, TimeoutError) as error:
        raise OmbError(
            f"a worker of Dask over {protocol} is lost ({' '.join(str(error).split())[:160]}): "
            "it may have run out of memory; choose a smaller problem or fewer --workers"
        ) from error
