"""Two programs of dask-cuda on the host, as Dask runs them: beside omb-py's applications of ranks.

Usage: python contrib/dask/dask_cuda.py transpose_sum|merge [--workers 2] [--protocol tcp,ucxx]

A scheduler and workers of one thread each start on this node. Input and check are those of
``omb-py transpose_sum`` and ``omb-py merge`` with ``--preset dask-cuda``. Protocols take turns.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any
from uuid import uuid4

from distributed import Client, LocalCluster, wait

from omb_py.apps import APPLICATIONS, merge, shares, transpose_sum

CHUNKS = 4
"""Chunks in each dimension of an array, as dask-cuda has: more only for more workers."""

ROWS = 1_000_000
"""Rows of each table for each worker."""

Program = tuple[tuple[Any, ...], Callable[..., Any], Callable[[Any], Any]]
"""Inputs, what is timed of them (under new keys each time), and its result for the check."""


def transposed(problem: Any, workers: int) -> Program:
    """``(x + x.T).sum()`` of an array in square chunks."""
    import dask.array as da
    from dask.graph_manipulation import clone

    chunks = (shares(problem.size, max(CHUNKS, workers)),) * 2
    x = da.map_blocks(partial(chunk, problem), chunks=chunks, dtype=problem.dtype)
    return (
        (x,),
        lambda x: clone((x + x.T).sum(dtype="float64"), omit=x),
        lambda total: (float(total.compute()), None),
    )


def chunk(problem: Any, block_info: Mapping[Any, Any]) -> Any:
    """The part of the array that Dask wants."""
    (first, last), (begin, end) = block_info[None]["array-location"]
    return transpose_sum.generate(problem, first, last)[:, begin:end].copy()


def merged(problem: Any, workers: int) -> Program:
    """The merge of two data frames that have a partition for each worker."""
    from dask import compute, delayed
    from dask.dataframe import from_map

    def table(side: int) -> Any:
        meta = merge.frame(0, merge.Tables(0, 0), side)
        return from_map(merge.frame, range(workers), args=(problem, side, workers), meta=meta)

    def result(joined: Any) -> Any:
        sums = compute(*map(delayed(merge.checksums_of_frame), joined.to_delayed()))
        return sum(sums[1:], sums[0])

    return (
        (table(merge.LEFT), table(merge.RIGHT)),
        # no column is in both, so that a suffix changes only the keys
        lambda left, right: left.merge(right, on="key", suffixes=("", uuid4().hex)),
        result,
    )


def executed(client: Client) -> int:
    """Tasks that the workers have executed."""
    return sum(client.run(lambda dask_worker: dask_worker.state.executed_count).values())


def seconds(client: Client, inputs: Any, solve: Callable[..., Any]) -> tuple[float, Any]:
    """The time from the program's call to the end of its last task, and its result."""
    with client.as_current():
        before = executed(client)
        begin = perf_counter()
        solved = client.persist(solve(*inputs))
        wait(solved)
        spent = perf_counter() - begin
        assert executed(client) > before, "Dask ran no task, since it had the result"
        return spent, solved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", choices=["transpose_sum", "merge"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--protocol", default="tcp", help="tcp, ucxx (distributed-ucxx), or both")
    parser.add_argument("--size", type=int, default=10_000, help="rows of the array")
    parser.add_argument("--rows", type=int, default=ROWS, help="of each table and worker")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    application = APPLICATIONS.load(given.program)
    if given.program == "transpose_sum":
        problem, make = application.problem(size=given.size), transposed
    else:
        rows = given.rows * given.workers
        problem = application.problem(rows_left=rows, rows_right=rows, keys=0, matching=0.3)
        make = merged
    sequential = application.sequential(problem)
    assert sequential is not None
    expected = sequential.solve()
    with ExitStack() as after:
        opened = {}
        for protocol in given.protocol.split(","):
            cluster = after.enter_context(
                LocalCluster(
                    n_workers=given.workers,
                    threads_per_worker=1,
                    protocol=protocol,
                    memory_limit=None,
                    dashboard_address=":0",
                    silence_logs=logging.CRITICAL,
                )
            )
            client = after.enter_context(Client(cluster))
            inputs, solve, result = make(problem, given.workers)
            inputs = tuple(client.persist(one) for one in inputs)
            wait(inputs)
            opened[protocol] = (client, inputs, solve, result)
        times: dict[str, list[float]] = {protocol: [] for protocol in opened}
        for turn in range(1 + given.repeats):
            for protocol, (client, inputs, solve, result) in opened.items():
                spent, solved = seconds(client, inputs, solve)
                if turn == 0:
                    with client.as_current():
                        check = application.compare(problem, result(solved), expected)
                    assert check is not None
                    assert check.passed, check
                else:
                    times[protocol].append(spent)
    print("| protocol | median s | min | max |\n|---|---:|---:|---:|")
    for protocol, spent_ in times.items():
        print(f"| {protocol} | {median(spent_):.3f} | {min(spent_):.3f} | {max(spent_):.3f} |")


if __name__ == "__main__":
    main()
