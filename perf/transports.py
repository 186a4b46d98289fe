"""omb-py's bindings that do not send by MPI beside programs written by hand with the same library.

Both take turns in one job of two ranks, in rounds. Prints, for each binding, benchmark and size,
both medians and the median of the rounds' own ratios, and whether that is within 10 %. Figures are
medians of three pairs of launches, in which each goes first once: at 1 MiB whoever connects first
is up to 1.5 times as fast, also where both are the same program.

Usage: python -m perf.transports [BINDING,…] [LATENCY_SIZES] [BW_SIZES] [ROUNDS]
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

from omb_py.bindings import BINDINGS, Binding, BoundCall, load_before_mpi
from omb_py.core.calls import Call, Iteration, Step, Window
from omb_py.core.calls.loop import Loop, Pace, no_garbage_collection
from omb_py.core.errors import MissingPackageError
from omb_py.core.mpi import launcher
from omb_py.core.options import Options
from omb_py.measure.launch import launch
from perf.jobs import BIN, ENVIRONMENT, parsed

LIMIT = 1.10
LAUNCHES = 3
WINDOW = 64
ALL = ("tcp", "asyncio", "grpc", "ucxx")

Ops = Sequence[tuple[bool, int, Any]]
"""Whether an iteration sends next, how many messages of the same memory, and its bytes."""


def ops_of(iteration: Iteration) -> Ops:
    """What a rank does in an iteration."""
    found = []
    for step in iteration.steps:
        calls = (
            [call for group in step.groups for call in group]
            if isinstance(step, Window)
            else [step]
        )
        call = calls[0]
        assert isinstance(call, Call)
        found.append((call.function.endswith("send"), len(calls), call.messages[0].memory.array))
    return found


class HandLoop(Loop):
    """A loop over functions that a library's program calls, one after the other."""

    def __init__(self, ops: Ops, hand: HandBinding, barrier: BoundCall | None) -> None:
        self._ops = [
            (hand.send if sends else hand.receive, n, hand.data(one)) for sends, n, one in ops
        ]
        self._barrier = barrier

    def run(self, first: int, seconds: array[float]) -> None:
        clock, barrier = time.perf_counter, self._barrier
        (do1, count1, data1), (do2, count2, data2) = self._ops
        with no_garbage_collection():
            for index in range(len(seconds)):
                begin = clock()
                for _ in range(count1):
                    do1(data1)
                for _ in range(count2):
                    do2(data2)
                seconds[index] = clock() - begin
                if barrier is not None:
                    barrier()


class AsyncHandLoop(HandLoop):
    """The same with coroutines, in one event loop."""

    def __init__(self, ops: Ops, hand: HandBinding, barrier: BoundCall | None) -> None:
        super().__init__(ops, hand, barrier)
        self._event_loop = hand.event_loop

    def run(self, first: int, seconds: array[float]) -> None:
        with no_garbage_collection():
            self._event_loop.run_until_complete(self._time(seconds))

    async def _time(self, seconds: array[float]) -> None:
        clock, barrier = time.perf_counter, self._barrier
        (do1, count1, data1), (do2, count2, data2) = self._ops
        for index in range(len(seconds)):
            begin = clock()
            for _ in range(count1):
                await do1(data1)
            for _ in range(count2):
                await do2(data2)
            seconds[index] = clock() - begin
            if barrier is not None:
                barrier()


class HandBinding(Binding):
    """A program by hand; `connect` leaves what `send` and `receive` call."""

    name = "hand"
    kind: type[HandLoop] = HandLoop
    event_loop: Any = None
    send: Callable[[Any], Any]
    receive: Callable[[Any], Any]

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        self.connect()

    def connect(self) -> None:
        raise NotImplementedError

    def data(self, one: Any) -> Any:
        """What `send` and `receive` take of an array."""
        return memoryview(one).cast("B")

    def bind(self, step: Step) -> BoundCall:
        raise NotImplementedError

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        return self.kind(ops_of(iterations[0]), self, self.barrier if pace.barrier else None)

    def stream(self) -> socket.socket:
        """A socket to the other rank."""
        if self.comm.rank == 0:
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                listener.listen()
                self.comm.bcast(listener.getsockname())
                return listener.accept()[0]
        stream = socket.socket()
        stream.connect(self.comm.bcast(None))
        return stream


class TcpHand(HandBinding):
    def connect(self) -> None:
        self.open_stream = stream = self.stream()
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        take = stream.recv_into

        def receive(data: memoryview) -> None:
            got, size = 0, len(data)
            while got < size:
                got += take(data[got:])

        self.send, self.receive = stream.sendall, receive


class AsyncioHand(TcpHand):
    kind = AsyncHandLoop

    def connect(self) -> None:
        super().connect()
        self.event_loop = asyncio.new_event_loop()
        opened = asyncio.open_connection(sock=self.open_stream)
        reader, writer = self.event_loop.run_until_complete(opened)
        writer.transport.set_write_buffer_limits(high=0)

        async def send(data: memoryview) -> None:
            writer.write(data)
            await writer.drain()

        async def receive(data: memoryview) -> None:
            data[:] = await reader.readexactly(len(data))

        self.send, self.receive = send, receive


class GrpcHand(HandBinding):
    def connect(self) -> None:
        import queue
        from concurrent.futures import ThreadPoolExecutor

        import grpc

        arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()

        def take(message: bytes, context: Any) -> bytes:
            arrived.put(message)
            return b""

        limits = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
        self._server = grpc.server(ThreadPoolExecutor(4), options=limits)
        handlers = {"take": grpc.unary_unary_rpc_method_handler(take)}
        service = grpc.method_handlers_generic_handler("hand", handlers)
        self._server.add_generic_rpc_handlers((service,))
        ports = self.comm.allgather(self._server.add_insecure_port("127.0.0.1:0"))
        self._server.start()
        self.comm.Barrier()
        other = f"127.0.0.1:{ports[1 - self.comm.rank]}"
        call = grpc.insecure_channel(other, options=limits).unary_unary("/hand/take")

        def send(data: memoryview) -> None:
            call(bytes(data))

        def receive(data: memoryview) -> None:
            data[:] = arrived.get()

        self.send, self.receive = send, receive

    def close(self) -> None:
        self._server.stop(None).wait()


class UcxxHand(HandBinding):
    def connect(self) -> None:
        from ucxx._lib import libucxx

        context = libucxx.UCXContext(feature_flags=(libucxx.Feature.TAG,))
        worker = libucxx.UCXWorker(context)
        addresses = self.comm.allgather(bytes(memoryview(worker.address)))
        endpoint = libucxx.UCXEndpoint.create_from_worker_address(
            worker,
            libucxx.UCXAddress.create_from_buffer(addresses[1 - self.comm.rank]),
            endpoint_error_handling=False,
        )
        tag, progress = libucxx.UCXXTag(1), worker.progress

        def finish(request: Any) -> None:
            while not request.completed:
                progress()
            request.check_error()

        self.send = lambda data: finish(endpoint.tag_send(data, tag))
        self.receive = lambda data: finish(endpoint.tag_recv(data, tag))

    def data(self, one: Any) -> Any:
        from ucxx._lib.arr import Array

        return Array(one)


HANDS: dict[str, type[HandBinding]] = {
    "tcp": TcpHand,
    "asyncio": AsyncioHand,
    "grpc": GrpcHand,
    "ucxx": UcxxHand,
}


def rank(name: str, benchmark: str, sizes: str, rounds: str, own_first: str, output: str) -> None:
    """One rank of a comparison; rank 0 writes it to ``output``."""
    from omb_py.benchmarks import find_benchmark
    from omb_py.measure.overhead import OverheadMeasurement

    load_before_mpi((name,))
    options = Options(
        sizes=tuple(map(int, sizes.split(","))),
        window=WINDOW,
        output=output,
        quiet=True,
        debug=True,
    )
    with launch(find_benchmark(benchmark), options) as context:
        kinds = [HANDS[name], BINDINGS.load(name)]
        if own_first:
            kinds.reverse()
        members = [kind(context.job.comm, options) for kind in kinds]
        OverheadMeasurement(context, members, int(rounds), optional=False).run()
        for member in members:
            member.close()


def measured(name: str, benchmark: str, sizes: str, rounds: str, own_first: str) -> list[Any]:
    """Of each size in one launch: bytes, the first one's and the other's time, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "rows.csv")
        words = ("-m", "perf.transports", "rank", name, benchmark, sizes, rounds, own_first, output)
        subprocess.run(
            [str(BIN / "mpiexec"), "-n", "2", sys.executable, *words], env=ENVIRONMENT, check=True
        )
        rows = parsed(Path(output).read_text().splitlines())
    columns = ("bytes", "base_us", "median_us", "ratio")
    return [[float(row[column]) for column in columns] for row in rows[1::2]]


def one_pair(name: str, benchmark: str, sizes: str, rounds: str) -> list[list[float]]:
    """Of each size: bytes, the times by hand and of omb-py, and their ratio, in two launches."""
    found = []
    first = measured(name, benchmark, sizes, rounds, "")
    second = measured(name, benchmark, sizes, rounds, "own first")
    for (size, hand, own, ratio), (_, own_2, hand_2, inverse) in zip(first, second, strict=True):
        found.append([size, (hand + hand_2) / 2, (own + own_2) / 2, sqrt(ratio / inverse)])
    return found


def main() -> None:
    given = dict(enumerate(sys.argv[1:]))
    names = given.get(0, "").split(",") if given.get(0) else ALL
    sizes = {"latency": given.get(1) or "8,1024,65536,1048576", "bw": given.get(2) or "8,65536"}
    rounds = given.get(3) or "20"
    print(
        f"{'binding':<16}{'benchmark':<10}{'bytes':>9}{'hand us':>10}{'omb-py us':>11}{'ratio':>7}"
    )
    failed = False
    for name in names:
        try:
            BINDINGS.load(name)
        except MissingPackageError as error:
            print(f"{name:<16}left out: {error}")
            continue
        for benchmark in sizes:
            pairs = [one_pair(name, benchmark, sizes[benchmark], rounds) for _ in range(LAUNCHES)]
            for of_size in zip(*pairs, strict=True):
                size, hand, own, ratio = (median(column) for column in zip(*of_size, strict=True))
                failed |= ratio > LIMIT
                verdict = "" if ratio <= LIMIT else f"  over {LIMIT:.2f}"
                line = f"{name:<16}{benchmark:<10}{size:9.0f}{hand:10.2f}{own:11.2f}{ratio:7.3f}"
                print(line + verdict, flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        if launcher.rank() != 0:
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        rank(*sys.argv[2:])
    else:
        main()
