"""Programs run on SimGrid: its network decides when each message arrives.

One actor drives all ranks, since an actor of Python costs a thread: it starts a communication of
SimGrid's for each message, waits for the next ones that end, and takes the ranks that they were for
one operation further. Where a rank is busy by itself (overheads, additions, computing) until an
earlier time, it waits until then: all time is SimGrid's.

A process runs one engine, as SimGrid has it; `workers` starts processes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from ctypes import CDLL, RTLD_GLOBAL
from heapq import heappop, heappush
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import OmbError
from omb_py.core.text.words import first_of
from omb_py.simulation.network import Network
from omb_py.simulation.network import Path as NetworkPath
from omb_py.simulation.program import (
    Add,
    Background,
    Compute,
    Operation,
    Program,
    Receive,
    Send,
    StartTiming,
    Wait,
)
from omb_py.tracing.records import Kind

if TYPE_CHECKING:
    from omb_py.simulation.platform import Platform

MICRO = 1e-6

LATENCY, BANDWIDTH, CONTENTION = "latency-bound", "bandwidth-bound", "contended"

CONTENDED = 1.1
"""By what factor transfers are longer than alone, at the minimum, where links are contended."""

MEGA = 1e6

MAX_CONNECTIONS = 64
"""Of a rank, those that are kept although nothing is sent on them."""

RESOLUTION = 1e12
"""Ranks that are busy until the same picosecond go on together."""

SETTINGS = (
    "network/model:CM02",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "network/weight-S:0",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
)
"""Of SimGrid: messages share links as the network says, without the corrections for TCP."""

PRECISION = {"3": "surf/precision:1e-13", "4": "precision/timing:1e-13"}
"""Events that are so many seconds apart are one; SimGrid's setting, by its major version."""


@dataclass(frozen=True)
class Event:
    """What a rank did, from when to when in seconds, as a record has it (`records.layout.Kind`).

    ``name`` is an MPI routine's, as in ``MPI_Isend``, or that of an operation without messages.
    ``peer`` is -1 where there is none. ``sequence`` is the number of a message where it is
    complete, from 1 among those with its peer, tag and direction, and of a send where it begins,
    too. Of a rank's background there are no calls, but what messages lasted.
    """

    rank: int
    kind: Kind
    name: str
    began: float
    ended: float
    peer: int = -1
    nbytes: float = 0.0
    tag: int = 0
    sequence: int = 0


@dataclass(frozen=True)
class Outcome:
    """A program that has run: when each rank ended, in seconds from its start or `StartTiming`.

    ``messages`` counts those that were sent then. Of all of them together, ``latencies`` are the
    seconds that do not depend on bytes, ``transfers`` those of their bytes, and ``alone`` what
    transfers would have taken had no message shared a link. ``events`` are empty unless they were
    to be traced; their times are from the program's start.
    """

    ends: tuple[float, ...]
    messages: int
    latencies: float = 0.0
    transfers: float = 0.0
    alone: float = 0.0
    events: tuple[Event, ...] = ()

    @property
    def regime(self) -> str:
        """What decides its time: latency, bandwidth, or messages that share links."""
        if self.latencies >= self.transfers:
            return LATENCY
        return CONTENTION if self.transfers > CONTENDED * self.alone else BANDWIDTH


Run: TypeAlias = Callable[[Program], Outcome]
"""Runs a program."""

Progress: TypeAlias = Callable[[int], None]


def nobody(messages: int) -> None:
    """Progress that nobody wants to know."""


def load() -> Any:
    """The module `simgrid`.

    PyPI's lies beside its library, where nothing looks for that.
    """
    try:
        import simgrid
    except ImportError:
        spec = find_spec("simgrid")
        if spec is None or spec.origin is None:
            raise
        for library in sorted(Path(spec.origin).parent.glob("libsimgrid.so.*")):
            CDLL(str(library), RTLD_GLOBAL)
        import simgrid
    return simgrid


class _Request:
    """A message that a rank has started to send or to receive.

    ``complete`` says that the other side has done its part; ``overhead`` are seconds that the rank
    is still to spend on it. ``stream`` waits for it. ``name`` is that of the routine that began it,
    ``sequence`` the message's number where it is traced.
    """

    __slots__ = (
        *("began", "complete", "name", "nbytes", "overhead"),
        *("peer", "sequence", "stream", "tag"),
    )

    def __init__(
        self, name: str = "", peer: int = -1, tag: int = 0, nbytes: float = 0.0, began: float = 0.0
    ) -> None:
        self.complete = False
        self.overhead = 0.0
        self.stream: _Stream | None = None
        self.name = name
        self.peer = peer
        self.tag = tag
        self.nbytes = nbytes
        self.began = began
        self.sequence = 0


class _Message:
    """A message between two ranks, and what each of them knows of it."""

    __slots__ = (
        *("arrived", "began", "counted", "nbytes", "overhead"),
        *("path", "received", "sent", "source", "target"),
    )

    def __init__(
        self, source: int, target: int, nbytes: float, path: NetworkPath, sent: _Request
    ) -> None:
        self.source = source
        self.target = target
        self.nbytes = nbytes
        self.path = path
        self.sent = sent
        self.received: _Request | None = None
        self.arrived = False
        self.counted = True
        self.overhead = 0.0
        self.began = 0.0


Channel: TypeAlias = tuple[deque[_Message], deque[_Request]]
"""Messages that nobody has asked for, and receives without a message: one of them is empty."""


class _Stream:
    """Operations that a rank makes one after the other: its program, or one in its background.

    ``busy`` seconds are spent before anybody else sees what follows.
    """

    __slots__ = (
        "began",
        "busy",
        "operations",
        "parent",
        "queue",
        "rank",
        "request",
        "requests",
        "waiting",
    )

    def __init__(self, rank: int, operations: Iterable[Operation]) -> None:
        self.rank = rank
        self.operations = iter(operations)
        self.requests: dict[int, _Request] = {}
        self.waiting: list[_Request] = []
        self.busy = 0.0
        self.began = 0.0
        self.request: _Request | None = None  # that its end completes
        self.parent: _Stream | None = None
        self.queue: deque[_Stream] | None = None  # of its background


Then: TypeAlias = Callable[[Any], None]


class Engine:
    """SimGrid with one network, for the one process that may have it.

    ``nodes`` has the node of each rank; a program may have fewer ranks. Events are kept where
    programs are ``traced``.
    """

    def __init__(self, network: Network, nodes: Sequence[int], traced: bool = False) -> None:
        from omb_py.simulation.platform import build

        simgrid = load()
        precision = PRECISION.get(simgrid.simgrid_version[0], PRECISION["4"])
        settings = (f"--cfg={one}" for one in (*SETTINGS, precision))
        self._simgrid = simgrid
        self._engine = simgrid.Engine(["omb-py", "--log=root.thres:error", *settings])
        self.network = network
        self.nodes = nodes
        self.traced = traced
        self.platform: Platform = build(simgrid, self._engine, network, nodes)

    def run(self, script: Callable[[Run], None], progress: Progress = nobody) -> None:
        """Run a script, which is given what runs one program after the other.

        ``progress`` gets the number of a program's messages so far, now and then. Raises what the
        script raises, and `OmbError` where ranks wait for messages that nobody sends.
        """
        failures: list[BaseException] = []

        def run(program: Program) -> Outcome:
            return _Run(self, program, self.traced, progress).run()

        def drive() -> None:
            try:
                script(run)
            except self._simgrid.ActorKilled:
                failures.append(OmbError("SimGrid found nothing more to simulate"))
                raise
            except BaseException as error:  # one that leaves an actor ends the process
                failures.append(error)

        host = next(iter(self.platform.hosts.values()))
        if hasattr(host, "add_actor"):
            host.add_actor("ranks", drive)
        else:
            self._simgrid.Actor.create("ranks", host, drive)
        self._engine.run()
        if failures:
            raise failures[0]

    @property
    def clock(self) -> float:
        """SimGrid's time in seconds."""
        return float(self._simgrid.Engine.clock)

    def communication(self, source: int, target: int, nbytes: int) -> Any:
        """A started communication between two nodes."""
        hosts = self.platform.hosts
        return self._simgrid.Comm.sendto_async(hosts[source], hosts[target], nbytes)

    def wait_any(self, pending: Sequence[Any], until: float | None) -> int | None:
        """The place of a communication that is over, after waiting for one; None at a time."""
        if not pending:
            assert until is not None
            self._simgrid.this_actor.sleep_until(until)
            return None
        timeout = -1.0 if until is None else max(0.0, until - self.clock)
        comm = self._simgrid.Comm
        if hasattr(comm, "wait_any_for"):
            place = int(comm.wait_any_for(pending, timeout))
            return None if place < 0 else place
        try:
            over = self._simgrid.ActivitySet(pending).wait_any_for(timeout)
        except self._simgrid.TimeoutException:
            return None
        return next(place for place, one in enumerate(pending) if one == over)


class _Run:
    """One program under way."""

    def __init__(self, engine: Engine, program: Program, traced: bool, progress: Progress) -> None:
        self.engine = engine
        self.program = program
        self.progress = progress
        self.events: list[Event] | None = [] if traced else None
        self.numbers: Counter[tuple[bool, int, int, int]] = Counter()
        self.start = self.now = engine.clock
        self.pending: list[Any] = []
        self.actions: list[_Message] = []
        self.busy: dict[int, list[tuple[Then, Any]]] = {}
        self.dates: list[int] = []
        self.channels: dict[tuple[int, int, int], Channel] = {}
        self.connections: dict[int, dict[int, float]] = {}
        self.sent = self.messages = 0
        self.latencies = self.transfers = self.alone = 0.0
        self.starts = [self.start] * program.ranks
        self.counts = [not program.timed] * program.ranks
        self.ends: list[float | None] = [None] * program.ranks
        network, nodes = engine.network, engine.nodes
        self.nodes = nodes
        self.between, self.within = engine.platform.between, network.within
        self.add_seconds = network.add_us_per_byte * MICRO

    def run(self) -> Outcome:
        """Run it to its end."""
        for rank in range(self.program.ranks):
            self.proceed(_Stream(rank, self.program.operations(rank)))
        while self.pending or self.dates:
            self.take()
        blocked = [rank for rank, end in enumerate(self.ends) if end is None]
        if blocked:
            wait = "s {} wait for messages" if blocked[1:] else " {} waits for a message"
            ranks = wait.format(first_of(blocked))
            name = self.program.name or "the program"
            raise OmbError(f"{name}: rank{ranks} that nobody sends")
        times = zip(self.starts, self.ends, strict=True)
        ends = tuple(end - start for start, end in times if end is not None)
        sums = (self.latencies, self.transfers, self.alone)
        return Outcome(ends, self.messages, *sums, tuple(self.events or ()))

    def take(self) -> None:
        """Wait for what comes next, and do what is to be done then."""
        date = self.dates[0] if self.dates else None
        until = None if date is None else self.start + date / RESOLUTION
        place = None
        if until is None or until > self.now:
            place = self.engine.wait_any(self.pending, until)
            self.now = self.engine.clock
        if place is None:
            assert date is not None
            heappop(self.dates)
            for action, argument in self.busy.pop(date):
                action(argument)
            return
        # all that end at this time, since waiting again would cost as much as all that are left
        over = [
            number
            for number, comm in enumerate(self.pending)
            if number == place or comm.finish_time >= 0
        ]
        arrived = [self.actions[number] for number in over]
        for number in reversed(over):
            for listed in (self.pending, self.actions):
                listed[number] = listed[-1]
                listed.pop()
        for message in arrived:
            self.arrive(message)

    def delay(self, seconds: float, action: Then, argument: Any) -> None:
        """Do something later; what is due at the same time is done together."""
        date = round((self.now + seconds - self.start) * RESOLUTION)
        found = self.busy.get(date)
        if found is None:
            found = self.busy[date] = []
            heappush(self.dates, date)
        found.append((action, argument))

    def proceed(self, stream: _Stream) -> None:
        """Make operations until the rank is busy, or waits."""
        for operation in stream.operations:
            if isinstance(operation, Send):
                protocol = self.path(stream.rank, operation.peer).protocol(operation.nbytes)
                busy, stream.busy = stream.busy, 0.0
                began = self.now + busy
                busy += protocol.overhead_us * MICRO
                self.delay(busy, self.send, (stream, operation, began))
                return
            if isinstance(operation, Wait):
                requests = [stream.requests.pop(number) for number in operation.requests]
                if not self.wait(stream, requests):
                    return
                continue
            if isinstance(operation, Add):
                stream.busy += operation.nbytes * self.add_seconds
            elif stream.busy:
                busy, stream.busy = stream.busy, 0.0
                self.delay(busy, self.after_busy, (stream, operation))
                return
            elif not self.make(stream, operation):
                return
        if stream.busy:
            busy, stream.busy = stream.busy, 0.0
            self.delay(busy, self.end, stream)
        else:
            self.end(stream)

    def after_busy(self, argument: tuple[_Stream, Operation]) -> None:
        """Make the operation before which the rank was busy."""
        if self.make(*argument):
            self.proceed(argument[0])

    def make(self, stream: _Stream, operation: Operation) -> bool:
        """Make an operation of a rank that is not busy; whether it may go on at once."""
        if isinstance(operation, Receive):
            request = self.receive(stream, operation)
            if operation.request is None:
                return self.wait(stream, [request])
            stream.requests[operation.request] = request
        elif isinstance(operation, Compute):
            self.delay(operation.seconds, self.computed, (stream, operation.name, self.now))
            return False
        elif isinstance(operation, StartTiming):
            self.starts[stream.rank] = self.now
            self.counts[stream.rank] = True
        elif isinstance(operation, Background):
            stream.requests[operation.request] = self.in_background(stream, operation)
        return True

    def computed(self, argument: tuple[_Stream, str, float]) -> None:
        stream, name, began = argument
        if self.events is not None:
            self.record(stream, Kind.SPAN, _Request(name, began=began))
        self.proceed(stream)

    def send(self, argument: tuple[_Stream, Send, float]) -> None:
        """A message leaves its rank, after the overhead."""
        stream, operation, began = argument
        source, target, nbytes = stream.rank, operation.peer, operation.nbytes
        path = self.path(source, target)
        blocking = operation.request is None and stream.parent is None
        name = "MPI_Send" if blocking else "MPI_Isend"
        request = _Request(name, target, operation.tag, nbytes, began)
        message = _Message(source, target, nbytes, path, request)
        messages, receives = self.channel(source, target, operation.tag)
        self.sent += 1
        if not self.sent & 0xFFF:
            self.progress(self.sent)
        message.counted = self.counts[source]
        self.messages += message.counted
        eager = nbytes <= path.eager
        if receives:
            message.received = receives.popleft()
            self.transfer(message)
        else:
            messages.append(message)
            if eager:
                self.transfer(message)
        if eager:
            request.complete = True
        self.number(stream, request, True)
        if operation.request is None:
            stream.began = began
            if self.block(stream, [request]):
                self.proceed(stream)
            return
        self.record(stream, Kind.CALL, request, request.sequence)
        stream.requests[operation.request] = request
        self.proceed(stream)

    def transfer(self, message: _Message) -> None:
        """Start a message, after what its protocol takes."""
        delay = message.path.protocol(message.nbytes).delay_us(message.nbytes)
        if delay > 0:
            self.delay(delay * MICRO, self.start_transfer, message)
        else:
            self.start_transfer(message)

    def start_transfer(self, message: _Message) -> None:
        """Messages from one rank to another go one after the other, as on a connection."""
        seconds = message.nbytes / (message.path.bandwidth_MBps * MEGA)
        free = self.connections.setdefault(message.source, {})
        begin = max(self.now, free.get(message.target, 0.0))
        if len(free) > MAX_CONNECTIONS:
            for target in [target for target, until in free.items() if until <= self.now]:
                del free[target]
        free[message.target] = begin + seconds
        if begin > self.now:
            self.delay(begin - self.now, self.communicate, message)
        else:
            self.communicate(message)

    def communicate(self, message: _Message) -> None:
        """Give a message to SimGrid."""
        path = message.path
        protocol = path.protocol(message.nbytes)
        source, target = self.nodes[message.source], self.nodes[message.target]
        message.overhead = protocol.overhead_us * MICRO
        nbytes = max(1, round(message.nbytes))  # SimGrid sends no 0 bytes
        message.began = self.now
        fixed = 2 * protocol.overhead_us + protocol.delay_us(message.nbytes) + path.latency_us
        if message.counted:
            self.latencies += fixed * MICRO
            self.alone += nbytes / (path.bandwidth_MBps * MEGA)
        self.pending.append(self.engine.communication(source, target, nbytes))
        self.actions.append(message)

    def arrive(self, message: _Message) -> None:
        """A message is at its receiver."""
        message.arrived = True
        if message.counted:
            self.transfers += self.now - message.began - message.path.latency_us * MICRO
        if message.received is not None:
            self.complete(message.received, message)
        if not message.sent.complete:
            message.sent.complete = True
            self.notify(message.sent)

    def receive(self, stream: _Stream, operation: Receive) -> _Request:
        """Ask for the next message from a rank."""
        blocking = operation.request is None and stream.parent is None
        name = "MPI_Recv" if blocking else "MPI_Irecv"
        request = _Request(name, operation.peer, operation.tag, began=self.now)
        self.number(stream, request, False)
        if operation.request is not None:
            self.record(stream, Kind.CALL, request)
        messages, receives = self.channel(operation.peer, stream.rank, operation.tag)
        if not messages:
            receives.append(request)
            return request
        message = messages.popleft()
        message.received = request
        if message.arrived:
            self.complete(request, message)
        elif message.nbytes > message.path.eager:
            self.transfer(message)
        return request

    def complete(self, request: _Request, message: _Message) -> None:
        request.complete = True
        request.overhead = message.overhead
        request.nbytes = message.nbytes
        self.notify(request)

    def notify(self, request: _Request) -> None:
        """Go on where somebody waits for a request that is complete."""
        stream = request.stream
        if stream is not None and self.waited(stream):
            self.proceed(stream)

    def wait(self, stream: _Stream, requests: list[_Request]) -> bool:
        """Wait for requests; a rank that is busy begins after that. Whether all are there."""
        stream.began = self.now + stream.busy
        if stream.busy:
            busy, stream.busy = stream.busy, 0.0
            self.delay(busy, self.begin_wait, (stream, requests))
            return False
        return self.block(stream, requests)

    def begin_wait(self, argument: tuple[_Stream, list[_Request]]) -> None:
        if self.block(*argument):
            self.proceed(argument[0])

    def block(self, stream: _Stream, requests: list[_Request]) -> bool:
        """Wait for requests of a rank that is not busy; whether all are there."""
        stream.waiting = requests
        for request in requests:
            request.stream = stream
        return self.waited(stream)

    def waited(self, stream: _Stream) -> bool:
        """Take in what has arrived; whether nothing is missing."""
        overhead = 0.0
        missing = False
        for request in stream.waiting:
            if request.complete:
                overhead += request.overhead
                request.overhead = 0.0
            else:
                missing = True
        if missing:
            if overhead > 0.0:
                # whatever arrives meanwhile is taken in afterwards
                for request in stream.waiting:
                    request.stream = None
                self.delay(overhead, self.again, stream)
            return False
        for request in stream.waiting:
            request.stream = None
        stream.busy += overhead
        requests, stream.waiting = stream.waiting, []
        if self.events is not None:
            self.record_wait(stream, requests, overhead)
        return True

    def record_wait(self, stream: _Stream, requests: list[_Request], overhead: float) -> None:
        """Keep the call that has waited, and what it has completed."""
        first = requests[0]
        if first.name in ("MPI_Send", "MPI_Recv"):
            first.began = stream.began
            self.record(stream, Kind.CALL, first, first.sequence, overhead)
            return
        self.record(stream, Kind.CALL, _Request("MPI_Waitall", began=stream.began), 0, overhead)
        for request in requests:
            kind = Kind.DONE if request.name.startswith("MPI_") else Kind.SPAN
            self.record(stream, kind, request, request.sequence, overhead)

    def number(self, stream: _Stream, request: _Request, sends: bool) -> None:
        """Give a message its number, where it is traced."""
        if self.events is not None:
            key = (sends, stream.rank, request.peer, request.tag)
            self.numbers[key] += 1
            request.sequence = self.numbers[key]

    def again(self, stream: _Stream) -> None:
        """Look again at what a rank waits for."""
        for request in stream.waiting:
            request.stream = stream
        if self.waited(stream):
            self.proceed(stream)

    def in_background(self, stream: _Stream, operation: Background) -> _Request:
        """Queue operations behind the earlier ones of a rank's background."""
        made = _Stream(stream.rank, operation.operations)
        made.parent = stream
        made.request = _Request(operation.name, began=self.now)
        if stream.queue is None:
            stream.queue = deque()
        stream.queue.append(made)
        if len(stream.queue) == 1:
            self.delay(0.0, self.proceed, made)
        return made.request

    def end(self, stream: _Stream) -> None:
        """The last operation of a stream is over."""
        if stream.parent is None:
            self.ends[stream.rank] = self.now
            return
        assert stream.request is not None
        assert stream.parent.queue is not None
        stream.parent.queue.popleft()
        if stream.parent.queue:
            self.proceed(stream.parent.queue[0])
        stream.request.complete = True
        self.notify(stream.request)

    def path(self, source: int, target: int) -> NetworkPath:
        """Where messages between two ranks go."""
        return self.within if self.nodes[source] == self.nodes[target] else self.between

    def channel(self, source: int, target: int, tag: int) -> Channel:
        """What is known of the messages from one rank to another."""
        key = (source, target, tag)
        found = self.channels.get(key)
        if found is None:
            found = self.channels[key] = (deque(), deque())
        return found

    def record(
        self, stream: _Stream, kind: Kind, one: _Request, sequence: int = 0, more: float = 0.0
    ) -> None:
        """Keep what a rank has done until now, or ``more`` seconds from now."""
        if self.events is not None and (stream.parent is None or kind is not Kind.CALL):
            began, ended = one.began - self.start, self.now + more - self.start
            what = (began, ended, one.peer, one.nbytes, one.tag, sequence)
            self.events.append(Event(stream.rank, kind, one.name, *what))


def simulate(
    program: Program, network: Network, nodes: Sequence[int], traced: bool = False
) -> Outcome:
    """Run one program, in a process that has run none.

    Raises `OmbError` where ranks wait for messages that nobody sends.
    """
    found: list[Outcome] = []
    Engine(network, nodes, traced).run(lambda run: found.append(run(program)))
    return found[0]
