"""The cost of failed ranks for the survivors: each part of it timed on all of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omb_py.benchmarks import Benchmark, Recovery
from omb_py.benchmarks.recovery import REPLACED, REVOKED
from omb_py.core.calls.loop import no_garbage_collection
from omb_py.core.errors import UnsupportedError, UsageError, ValidationError
from omb_py.core.job import first_ranks
from omb_py.core.mpi import recovery
from omb_py.core.options import NODE, OPERATIONS, Options
from omb_py.core.text.words import count
from omb_py.measure import devices
from omb_py.measure.launch import Launch
from omb_py.measure.measurement import check_ranks
from omb_py.measure.rows import make_unplanned_row, times_of
from omb_py.measure.writers import start_writers
from omb_py.results.columns import Row, new_run
from omb_py.results.destinations import benchmark_writers
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from mpi4py import MPI

Operation = Callable[["MPI.Intracomm"], Any]
"""Something done on a communicator; another one that it makes is given back."""

ORDER_TAG = 2
"""Tag of the message upon which a rank kills itself."""


class RecoveryMeasurement:
    """Ranks of this job fail, and the others go on."""

    def __init__(
        self,
        launch: Launch,
        benchmark: Benchmark,
        options: Options,
        more_writers: Callable[[], Sequence[Writer[Any]]],
    ) -> None:
        self._launch = launch
        self._benchmark = benchmark
        assert benchmark.recovery is not None
        self._measured = benchmark.recovery
        self._job = launch.job
        self._options = options
        self._more_writers = more_writers
        self._run = new_run()
        self._writers: list[Writer[Row]] = []
        self._failures: list[tuple[int, ...]] = []
        self._failed = 0
        """Number of ranks that have failed since the current communicator was made."""

    def run(self) -> None:
        """Measure and write; collective over the ranks that are left.

        Raises `UsageError` or `SharedError` on all of them when it cannot be done.
        """
        from mpi4py import MPI

        job = self._job
        self._mpi = MPI
        with job.agreement():
            recovery.check()
            if self._measured is Recovery.RESPAWN:
                recovery.check_spawn()
        job.at_end(lambda: recovery.limit_finalize(job.rank))
        if job.is_spawned:
            self._rebuilt(recovery.join())
        else:
            self._start()
        measurements: dict[Recovery, Callable[[], None]] = {
            Recovery.DETECT: self._detect,
            Recovery.SHRINK: partial(self._around_failure, MPI.Intracomm.Shrink),
            Recovery.AGREE: partial(self._around_failure, self._agree),
            Recovery.RESPAWN: self._respawn,
        }
        with no_garbage_collection():
            if self._measured is Recovery.REVOKE:
                self._revoke()
            while self._failures:
                measurements[self._measured]()
        with job.agreement():
            for writer in self._writers:
                writer.finish()

    def _start(self) -> None:
        """Check the job, choose who fails, open the results."""
        benchmark, job, options = self._benchmark, self._job, self._options
        check_ranks(benchmark, options, job)
        devices.check_host_only(options, self._launch.buffer.device)
        if "victims" in benchmark.options:
            operations = len(options.operations or OPERATIONS)
            times = options.failures * (operations if self._measured is Recovery.DETECT else 1)
            nodes = first_ranks(job)
            replaced = self._measured is Recovery.RESPAWN
            self._failures = victims_of_failures(options.victims, nodes, times, replaced)
        nodes_of_job = job.nodes(devices.word(None))
        job.free_host()  # while all its ranks are alive
        job.note(job.oversubscription(nodes_of_job))
        self._writers = start_writers(
            self._launch,
            options,
            self._run,
            nodes_of_job,
            lambda: [*benchmark_writers(benchmark, options), *self._more_writers()],
        )
        with job.agreement():
            for writer in self._writers:
                writer.section(None)

    def _stage(self, text: str) -> None:
        self._launch.progress(f"measuring {self._benchmark.name}: {text}")

    def _detect(self) -> None:
        """Time each operation, with a failure for each."""
        for name in self._options.operations or OPERATIONS:
            self._stage(name)
            comm, failed = self._let_fail()
            seconds = self._until_reported(name, comm, failed[0])
            self._write(name, [seconds], ranks=comm.size)

    def _let_fail(self) -> tuple[MPI.Intracomm, tuple[int, ...]]:
        """Kill the next ranks; return the communicator of all ranks, and the ranks that fail.

        Survivors leave together. By then the ranks that are to fail have sent all their messages.
        """
        comm, failed = self._job.comm, self._failures.pop(0)
        fails = comm.rank in failed
        survivors: Any = comm.Split(self._mpi.UNDEFINED if fails else 0, comm.rank)
        order = bytearray(1)
        if fails:
            comm.Recv([order, 1, self._mpi.BYTE], 0, ORDER_TAG)
            recovery.fail()
        self._job.continue_on(survivors)
        self._failed = len(failed)
        survivors.Barrier()
        if comm.rank == 0:
            for rank in failed:
                comm.Send([order, 1, self._mpi.BYTE], rank, ORDER_TAG)
        return comm, failed

    def _until_reported(self, name: str, comm: MPI.Intracomm, failed: int) -> float:
        """Return the seconds until an operation reports a failure; collective.

        Raises `SharedError` if it does not on some rank.
        """
        with self._job.agreement():
            return self._until_error(name, comm, failed)

    def _until_error(self, name: str, comm: MPI.Intracomm, failed: int) -> float:
        """Return the seconds until an operation fails; raises `UnsupportedError` if it does not."""
        operation = self._operation(name, comm, failed)
        begin = perf_counter()
        try:
            operation()
        except self._mpi.Exception:
            seconds = perf_counter() - begin
            if not recovery.is_failure(comm):
                raise
            return seconds
        raise UnsupportedError(
            f"MPI_{name.capitalize()} reports no error though rank {failed} has failed or revoked "
            "the communicator: with Open MPI's component han, OMPI_MCA_coll=^han helps"
        )

    def _operation(self, name: str, comm: MPI.Intracomm, failed: int) -> Callable[[], object]:
        double = self._mpi.DOUBLE
        given, found = ([array("d", [0.0]), 1, double] for _ in range(2))
        operations: dict[str, Callable[[], object]] = {
            "recv": partial(comm.Recv, found, failed),
            "barrier": comm.Barrier,
            "allreduce": partial(comm.Allreduce, given, found),
        }
        return operations[name]

    def _revoke(self) -> None:
        """Time the revocation of a communicator in which the other ranks wait."""
        comm = self._job.comm
        revokes = comm.rank == comm.size - 1
        times: dict[str, list[float]] = {part: [] for part in REVOKED}
        self._stage("MPI_Comm_revoke")
        iterations, warmup = self._benchmark.counts(self._options, 0)
        for _ in range(warmup + iterations):
            revoked = comm.Dup()
            before = self._operation("allreduce", revoked, 0)
            after = self._operation("allreduce", comm, 0)
            times["allreduce before"].append(self._timed(before))
            comm.Barrier()
            with self._job.agreement():
                if revokes:
                    seconds = self._timed(revoked.Revoke)
                else:
                    seconds = self._until_error("allreduce", revoked, comm.size - 1)
            times["revoke"].append(seconds)
            times["interrupted allreduce"].append(seconds)
            comm.Barrier()
            times["allreduce after"].append(self._timed(after))
            revoked.Free()
        timed = {"revoke": revokes, "interrupted allreduce": not revokes}
        for part in REVOKED:
            self._write(part, times[part][warmup:], timed.get(part, True), warmup=warmup)

    def _around_failure(self, operation: Operation) -> None:
        """Time an operation before a failure, first after it, and again."""
        self._failed = 0
        self._stage("before the failure")
        comm = self._job.comm
        ranks = comm.size
        self._repeat("before", operation, comm, comm, ranks)
        comm, failed = self._let_fail()
        survivors = self._job.comm
        self._stage("after the failure")
        self._until_reported("recv", comm, failed[0])
        survivors.Barrier()
        self._write("first after", [self._seconds(operation, comm)], ranks=ranks)
        comm.Ack_failed()
        self._repeat("stable after", operation, comm, survivors, ranks)

    def _repeat(
        self,
        part: str,
        operation: Operation,
        comm: MPI.Intracomm,
        together: MPI.Intracomm,
        ranks: int,
    ) -> None:
        """Time an operation on ``comm`` again and again, after a barrier of ``together``."""
        times = []
        iterations, warmup = self._benchmark.counts(self._options, 0)
        for _ in range(warmup + iterations):
            together.Barrier()
            times.append(self._seconds(operation, comm))
        self._write(part, times[warmup:], ranks=ranks, warmup=warmup)

    def _seconds(self, operation: Operation, comm: MPI.Intracomm) -> float:
        """Return the seconds of an operation on ``comm``; what it makes is freed afterwards."""
        begin = perf_counter()
        made = operation(comm)
        seconds = perf_counter() - begin
        if made is not None:
            made.Free()
        return seconds

    def _agree(self, comm: MPI.Intracomm) -> None:
        try:
            comm.Agree(1)
        except self._mpi.Exception:  # as long as failures are not acknowledged
            if not recovery.is_failure(comm):
                raise

    def _respawn(self) -> None:
        self._stage("the replacement")
        before = self._job.rank
        comm, failed = self._let_fail()
        self._until_reported("recv", comm, failed[0])
        self._job.comm.Barrier()
        times: dict[str, float] = {}
        begin = perf_counter()
        shrunk = recovery.shrink(comm)
        times["shrink"] = perf_counter() - begin
        replacement = recovery.Replacement(shrunk, comm.rank, recovery.failed_ranks(comm, shrunk))
        times["spawn"] = self._timed(replacement.spawn)
        times["merge"] = self._timed(replacement.merge)
        started = perf_counter()
        replaced = replacement.reorder()
        times["reorder"] = perf_counter() - started
        times["total"] = perf_counter() - begin
        replacement.finish()
        self._rebuilt(replaced, before, times)

    def _timed(self, action: Callable[[], object]) -> float:
        begin = perf_counter()
        action()
        return perf_counter() - begin

    def _rebuilt(
        self,
        comm: MPI.Intracomm,
        rank: int | None = None,
        times: Mapping[str, float] | None = None,
    ) -> None:
        """Go on with ``comm``, in which processes have replaced ranks, after the times are written.

        Only survivors have ``times``, and the ``rank`` that they had. Collective; raises
        `ValidationError` if a rank has not the number that it had.
        """
        job = self._job
        moved = rank is not None and comm.rank != rank
        job.continue_on(comm)
        if job.total(int(moved)) or job.total(job.rank) != sum(range(job.ranks)):
            raise ValidationError("after the replacement, ranks have other numbers than before")
        plans = [" ".join(map(str, failed)) for failed in self._failures]
        plans = job.text_of(",".join(plans), 0).split(",")
        self._failures = [tuple(map(int, plan.split())) for plan in plans if plan]
        for part in REPLACED:
            seconds = 0.0 if times is None else times[part]
            self._write(part, [seconds], times is not None, validation="Pass")

    def _write(self, part: str, seconds: Sequence[float], timed: bool = True, **found: Any) -> None:
        """Write the row of a part from each rank's seconds; collective."""
        job = self._job
        combined = job.combine(array("d", seconds), timed)
        with job.agreement():
            if combined is not None:
                ranks = found.pop("ranks", job.ranks)
                values = times_of(combined) | {"failed": self._failed} | found
                row = make_unplanned_row(
                    self._run, self._benchmark, self._options, part, ranks, **values
                )
                for writer in self._writers:
                    writer.row(row)


def victims_of_failures(
    choice: tuple[int, ...] | str | None, nodes: Sequence[int], times: int, replaced: bool
) -> list[tuple[int, ...]]:
    """Return the ranks that fail each time, numbered as they are then.

    ``nodes`` has the first rank on the node of each rank. Ranks that fail are ``replaced``, or the
    others move up. Without a ``choice`` it is the last rank that was not replaced. Raises
    `UsageError` if there are not so many.

    >>> victims_of_failures(None, [0, 0, 0], 2, replaced=False)
    [(2,), (1,)]
    """
    found = []
    for number in range(1, times + 1):
        last = len(nodes) - 1
        if choice == NODE:
            failed = tuple(rank for rank, node in enumerate(nodes) if node == nodes[-1])
        else:
            # not one that replaced another: mpirun would take its death for that of the job
            default = last - (number - 1 if replaced else 0)
            failed = (default,) if choice is None else tuple(map(int, choice))
        if failed[0] <= 0 or failed[-1] > last:
            which = "ranks on another node than rank 0" if choice == NODE else f"rank {failed[-1]}"
            if choice is None:
                which = "rank other than 0"
            raise UsageError(
                f"failure {number} of {times} finds no {which} among {count(len(nodes), 'rank')}: "
                "start more ranks, or choose others with --victims, --failures or --operation"
            )
        found.append(failed)
        if not replaced:
            nodes = [node for rank, node in enumerate(nodes) if rank not in failed]
    return found
