"""Pools of workers: what a task costs that another process or thread does, pools by turns.

A task gets bytes and gives them back, as many as the message size, after computing for as long as
it is told to. Pools stay open together, and each round takes all of them, so that they are compared
at the same minute. Nothing here starts MPI unless a pool does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import MissingPackageError, OmbError, UnsupportedError
from omb_py.core.registry import Rows
from omb_py.core.statistics import summarize
from omb_py.measure.rows import MEGABYTE, MICROSECONDS, of_samples
from omb_py.results.row import Row

PATIENCE = 120.0
"""Seconds after which a result is missed: some pools wait for ever when a worker has died."""

SERIAL = "serial"
"""No pool: this process does the tasks. What others are compared with."""


def task(data: bytes, seconds: float = 0.0) -> bytes:
    """What a worker does: compute for so long, and give the bytes back."""
    end = perf_counter() + seconds
    while seconds and perf_counter() < end:
        pass
    return data


class Executor(Protocol):
    """What all pools can do."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Begin a task; the result's method ``result`` waits for it."""

    def map(self, function: Callable[[Any], Any], items: Sequence[Any], *, chunksize: int) -> Any:
        """The results of a task for each item, in order, ``chunksize`` sent together."""


@dataclass(frozen=True)
class Pool:
    """A kind of pool: what opens it with a number of workers.

    ``on_ranks`` says that its workers are the other ranks of an MPI job.
    """

    name: str
    open: Callable[[int], AbstractContextManager[Any]]
    summary: str
    on_ranks: bool = False
    uses_mpi: bool = False


class Serial:
    """Tasks done here, when they are asked for."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Serial.Done:
        return self.Done(function(*arguments))

    def map(self, function: Callable[[Any], Any], items: Sequence[Any], *, chunksize: int) -> Any:
        return map(function, items)

    @dataclass(frozen=True)
    class Done:
        """A result that is there."""

        value: Any

        def result(self, timeout: float) -> Any:
            return self.value


class Applied:
    """A pool whose methods are those of multiprocessing.Pool."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Applied.Result:
        return self.Result(self._pool.apply_async(function, arguments))

    def map(self, function: Callable[[Any], Any], items: Sequence[Any], *, chunksize: int) -> Any:
        return self._pool.map_async(function, items, chunksize).get(PATIENCE)

    @dataclass(frozen=True)
    class Result:
        """A result with the name that others give its method."""

        given: Any

        def result(self, timeout: float) -> Any:
            return self.given.get(timeout)


@contextmanager
def _serial(workers: int) -> Iterator[Executor]:
    yield Serial()


def _threads(workers: int) -> AbstractContextManager[Any]:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(workers)


def _processes(workers: int) -> AbstractContextManager[Any]:
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(workers, _context())


@contextmanager
def _multiprocessing(workers: int) -> Iterator[Executor]:
    with _context().Pool(workers) as pool:
        yield Applied(pool)


@contextmanager
def _loky(workers: int) -> Iterator[Any]:
    try:
        from loky import ProcessPoolExecutor
    except ImportError as error:
        raise MissingPackageError("pool loky", "loky", "pip install loky") from error
    with ProcessPoolExecutor(workers) as executor:
        yield executor


@contextmanager
def _mpi(workers: int) -> Iterator[Any]:
    from mpi4py import MPI
    from mpi4py.futures import MPICommExecutor

    with MPICommExecutor(MPI.COMM_WORLD, 0) as executor:
        yield executor


def _mpi_spawn(workers: int) -> AbstractContextManager[Any]:
    from mpi4py.futures import MPIPoolExecutor

    return MPIPoolExecutor(workers, main=False)


@contextmanager
def _mpi_pool(workers: int) -> Iterator[Executor]:
    from mpi4py.util.pool import Pool as MPIPool

    with MPIPool(workers, main=False) as pool:
        yield Applied(pool)
        pool.close()
        pool.join()  # else MPI ends before its workers do


def _context() -> Any:
    """Python's own way to start processes; a new one where MPI runs, which forks do not survive."""
    import multiprocessing
    import sys

    mpi = sys.modules.get("mpi4py.MPI")
    started = mpi is not None and mpi.Is_initialized()
    return multiprocessing.get_context("spawn" if started else None)


TABLE = {
    pool.name: pool
    for pool in (
        Pool(SERIAL, _serial, "this process, without a pool"),
        Pool("thread", _threads, "concurrent.futures.ThreadPoolExecutor"),
        Pool("process", _processes, "concurrent.futures.ProcessPoolExecutor"),
        Pool("multiprocessing", _multiprocessing, "multiprocessing.Pool"),
        Pool("loky", _loky, "loky.ProcessPoolExecutor"),
        Pool("mpi", _mpi, "mpi4py.futures.MPICommExecutor", on_ranks=True, uses_mpi=True),
        Pool("mpi_spawn", _mpi_spawn, "mpi4py.futures.MPIPoolExecutor", uses_mpi=True),
        Pool("mpi_pool", _mpi_pool, "mpi4py.util.pool.Pool", uses_mpi=True),
    )
}

POOLS = Rows(TABLE, "omb_py.pools", Pool)
"""By name; those of other distributions come by entry points."""


@dataclass(frozen=True)
class TaskRequest:
    """What is to be measured: message sizes in bytes, tasks of a round, seconds of a task."""

    pools: tuple[str, ...]
    workers: int
    sizes: tuple[int, ...]
    tasks: int = 200
    chunksize: int = 1
    rounds: int = 7
    task_seconds: float = 0.0


@dataclass(frozen=True)
class Opened:
    """A pool with its workers, and how long it took to open and to give a first result."""

    pool: Pool
    executor: Any
    open_seconds: float
    first_seconds: float


BENCHMARKS = ("tasks_latency", "tasks_submit", "tasks_map")
"""A task and its result; tasks begun one by one, then waited for; tasks given as a list."""


@dataclass(frozen=True)
class Measured:
    """Seconds of a task in each round, of a pool at a message size."""

    benchmark: str
    pool: str
    size: int
    seconds: tuple[float, ...]


def measure(request: TaskRequest, opened: Sequence[Opened]) -> Iterator[list[Measured]]:
    """What each benchmark finds at each message size: one for each pool, in rounds by turns.

    Raises `OmbError` where a worker dies, a result does not come, or is not what was sent.
    """
    for size in request.sizes:
        data = bytes(i * 31 % 251 for i in range(min(size, 4096))) * (size // 4096 + 1)
        item = data[:size]
        for name in BENCHMARKS:
            found: dict[str, list[float]] = {one.pool.name: [] for one in opened}
            for round_ in range(request.rounds + 1):  # the first warms up
                for one in opened:
                    seconds = _timed(name, one, item, request)
                    if round_:
                        found[one.pool.name].append(seconds)
            yield [Measured(name, pool, size, tuple(times)) for pool, times in found.items()]


def _timed(name: str, opened: Opened, item: bytes, request: TaskRequest) -> float:
    """Seconds of a task in one round of a pool."""
    executor, count = opened.executor, request.tasks
    work = partial(task, seconds=request.task_seconds)
    with _said(opened.pool):
        begin = perf_counter()
        if name == "tasks_latency":
            count = max(1, count // 10)
            results = [executor.submit(work, item).result(PATIENCE) for _ in range(count)]
        elif name == "tasks_submit":
            begun = [executor.submit(work, item) for _ in range(count)]
            results = [one.result(PATIENCE) for one in begun]
        else:
            results = list(executor.map(work, [item] * count, chunksize=request.chunksize))
        seconds = perf_counter() - begin
    if any(result != item for result in results):
        raise OmbError(f"pool {opened.pool.name} gave back other bytes than it was given")
    return seconds / count


@contextmanager
def _said(pool: Pool) -> Iterator[None]:
    """One sentence for what can happen to workers."""
    from concurrent.futures import BrokenExecutor
    from multiprocessing import TimeoutError as NoResultError

    try:
        yield
    except (TimeoutError, NoResultError) as error:
        raise OmbError(
            f"pool {pool.name} gave no result for {PATIENCE:.0f} s: a worker may have died"
        ) from error
    except (BrokenExecutor, EOFError, ConnectionError) as error:
        raise OmbError(
            f"a worker of pool {pool.name} has died ({error}): see what ended it, or take fewer "
            "--workers"
        ) from error


def open_pools(request: TaskRequest, after: ExitStack) -> list[Opened]:
    """The pools of a request, open until ``after`` is closed; raises `OmbError` as they do."""
    opened = []
    for name in request.pools:
        pool = POOLS[name]
        try:
            with _said(pool):
                begin = perf_counter()
                executor = after.enter_context(pool.open(request.workers))
                ready = perf_counter()
                executor.submit(task, b"").result(PATIENCE)
        except OmbError:
            raise
        except Exception as error:
            if not pool.uses_mpi:
                raise
            raise UnsupportedError(
                f"pool {name} cannot start its workers ({' '.join(str(error).split())[:200]}): "
                "use --pool mpi under mpiexec -n N"
            ) from error
        opened.append(Opened(pool, executor, ready - begin, perf_counter() - ready))
    return opened


def row_of(run: str, found: Measured, workers: int) -> Row:
    """A row as a benchmark's: the pool is the binding, the workers are the ranks."""
    summary = summarize([seconds * MICROSECONDS for seconds in found.seconds])
    median = summary.percentile(50)
    return Row(
        run=run,
        benchmark=found.benchmark,
        bytes=found.size,
        ranks=workers,
        buffer="bytes",
        binding=found.pool,
        latency_us=summary.mean,
        latency_min_us=summary.percentile(0),
        latency_max_us=summary.percentile(100),
        messages_per_s=MICROSECONDS / median,
        bandwidth_MBps=found.size / median * MICROSECONDS / MEGABYTE,
        **of_samples(summary),
        iterations=len(found.seconds),
        warmup=1,
        validation="Pass",
    )


def start_row(run: str, opened: Opened, workers: int) -> Row:
    """A row of a pool's start: until it is open and has given a first result."""
    microseconds = (opened.open_seconds + opened.first_seconds) * MICROSECONDS
    return Row(
        run=run,
        benchmark="tasks_start",
        ranks=workers,
        buffer="bytes",
        binding=opened.pool.name,
        latency_us=microseconds,
        sample_mean_us=microseconds,
        sample_p50_us=microseconds,
        iterations=1,
        warmup=0,
    )
