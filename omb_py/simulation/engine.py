"""Programs run on SimGrid: its network decides when each message arrives.

One actor drives all ranks, since an actor of Python costs a thread: it starts a communication of
SimGrid's for each message, waits for the next ones that end, and takes the ranks that they were for
one operation further. Where a rank is busy by itself (overheads, additions) until an earlier time,
it waits until then: all time is SimGrid's.

A process runs one engine, as SimGrid has it; `workers` starts processes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, TypeAlias

from omb_py.core.errors import MissingError, OmbError
from omb_py.core.text.words import first_of
from omb_py.simulation.network import Network
from omb_py.simulation.network import Path as NetworkPath
from omb_py.simulation.program import (
    Add,
    Operation,
    Program,
    Receive,
    Send,
    StartTiming,
    Wait,
)
from omb_py.simulation.topologies import parse

MICRO, MEGA = 1e-6, 1e6

SPEED = 1e9
"""Speed of hosts, which compute nothing."""

LATENCY, BANDWIDTH, CONTENTION = "latency-bound", "bandwidth-bound", "contended"

CONTENDED = 1.1
"""The smallest slowdown of transfers over transfers without shared links that counts as
contention."""

MAX_CONNECTIONS = 64
"""The most idle connections that are kept for a rank."""

RESOLUTION = 1e12
"""Ranks that are busy until the same picosecond go on together."""

SETTINGS = (
    "network/model:CM02",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "network/weight-S:0",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
    "surf/precision:1e-13",
)
"""Settings of SimGrid: messages share links as in the network, without the corrections for TCP, and
events are simultaneous if fewer seconds than the precision are between them."""


@dataclass(frozen=True)
class SimulatedOutcome:
    """The result of a program: the end of each rank, in seconds from its start or `StartTiming`.

    ``messages`` counts those sent in that time. Summed over them, ``latencies`` are the seconds
    that do not depend on bytes, ``transfers`` those of their bytes, and ``alone`` those of
    transfers that share no link.
    """

    ends: tuple[float, ...]
    messages: int
    latencies: float = 0.0
    transfers: float = 0.0
    alone: float = 0.0

    @property
    def regime(self) -> str:
        """The bottleneck of its time: latency, bandwidth, or messages that share links."""
        if self.latencies >= self.transfers:
            return LATENCY
        return CONTENTION if self.transfers > CONTENDED * self.alone else BANDWIDTH


Run: TypeAlias = Callable[[Program], SimulatedOutcome]
"""Runs a program."""


@dataclass(slots=True, eq=False)
class _Request:
    """A message that a rank has started to send or to receive.

    ``complete`` is true if the other side has done its part; ``overhead`` are seconds that the rank
    is still to spend on it. ``waiter`` waits for it.
    """

    complete: bool = False
    overhead: float = 0.0
    waiter: _Rank | None = None


@dataclass(slots=True, eq=False)
class _Message:
    """A message between two ranks, and the state of each side."""

    source: int
    target: int
    nbytes: float
    path: NetworkPath
    sent: _Request
    counted: bool
    received: _Request | None = None
    arrived: bool = False
    overhead: float = 0.0
    began: float = 0.0


Channel: TypeAlias = tuple[deque[_Message], deque[_Request]]
"""Messages without a receive, and receives without a message: one of them is empty."""


def channel() -> Channel:
    """Return the state of a channel that nothing was sent on."""
    return deque(), deque()


@dataclass(slots=True, eq=False)
class _Rank:
    """A rank and its place in its program.

    ``busy`` seconds pass before other ranks see the next operation.
    """

    number: int
    operations: Iterator[Operation]
    requests: dict[int, _Request] = field(default_factory=dict)
    waiting: list[_Request] = field(default_factory=list)
    busy: float = 0.0


Then: TypeAlias = Callable[[Any], None]


def hosts_of(simgrid: Any, network: Network, nodes: Iterable[int]) -> dict[int, Any]:
    """Make the hosts of a network with their links, by node: of a star those of ``nodes``.

    Each node's link carries messages in both directions at once, and its memory those between its
    ranks.
    """
    topology = parse(network.topology)
    bandwidth = network.between.bandwidth_MBps * MEGA
    latency = network.between.latency_us * MICRO / topology.hops
    hosts: dict[int, Any] = {}

    def new_host(zone: Any, coordinates: Any, number: int) -> tuple[Any, None]:
        """Add a node to a zone: return where it begins, and no gateway."""
        hosts[number] = zone.create_host(f"node{number}", SPEED).seal()
        return hosts[number].netpoint, None

    def loopback(zone: Any, coordinates: Any, number: int) -> Any:
        """Add a node's memory: each pair of ranks gets its bandwidth, until they need too much."""
        pair = network.within.bandwidth_MBps * MEGA
        whole = max(pair, network.memory_MBps * MEGA)
        link = zone.create_link(f"memory{number}", whole)
        link.set_latency(network.within.latency_us * MICRO)
        policy = simgrid.Link.SharingPolicy.NONLINEAR
        shared = lambda _, flows: min(whole, pair * max(1, flows))  # noqa: E731
        return link.set_sharing_policy(policy, shared).seal()

    zones, kind, numbers = simgrid.NetZone, topology.kind, topology.numbers
    root = zones.create_full_zone("root")
    if kind == "star":
        zone = zones.create_star_zone("star")
        zone.set_parent(root)
        up = simgrid.LinkInRoute.UP
        for number in sorted(set(nodes)):
            begin, _ = new_host(zone, (), number)
            link = zone.create_split_duplex_link(f"link{number}", bandwidth)
            link = simgrid.LinkInRoute(link.set_latency(latency).seal(), up)
            memory = simgrid.LinkInRoute(loopback(zone, (), number))
            zone.add_route(begin, None, None, None, [link], True)
            zone.add_route(begin, begin, None, None, [memory], False)
    else:
        callbacks = simgrid.ClusterCallbacks(new_host, loopback, None)
        ends = (callbacks, bandwidth, latency, simgrid.Link.SharingPolicy.SPLITDUPLEX)
        if kind == "fat-tree":
            shape = simgrid.FatTreeParams(len(numbers[0]), *map(list, numbers))
            zone = zones.create_fatTree_zone(kind, root, shape, *ends)
        elif kind == "dragonfly":
            shape = simgrid.DragonflyParams(*numbers[:3], numbers[3][0])
            zone = zones.create_dragonfly_zone(kind, root, shape, *ends)
        else:
            zone = zones.create_torus_zone(kind, root, list(numbers[0]), *ends)
    zone.seal()
    return hosts


class Engine:
    """SimGrid with one network, for the one process that may have it.

    ``nodes`` has the node of each rank; a program may have fewer ranks.
    """

    def __init__(self, network: Network, nodes: Sequence[int]) -> None:
        import simgrid

        if not simgrid.simgrid_version.startswith("3."):
            raise MissingError(
                f"simulations need SimGrid 3 (Debian 12's is 3.32), and this is "
                f"{simgrid.simgrid_version}"
            )
        settings = (f"--cfg={one}" for one in SETTINGS)
        self._simgrid = simgrid
        self._engine = simgrid.Engine(["omb-py", "--log=root.thres:error", *settings])
        self.network = network
        self.nodes = nodes
        self.hosts = hosts_of(simgrid, network, nodes)

    def run(self, script: Callable[[Run], None]) -> None:
        """Run a script, whose argument runs one program after the other.

        Raises the script's exceptions, and `OmbError` if ranks wait for messages that no rank
        sends.
        """
        failures: list[BaseException] = []

        def run(program: Program) -> SimulatedOutcome:
            return _Run(self, program).run()

        def drive() -> None:
            try:
                script(run)
            except self._simgrid.ActorKilled:
                failures.append(OmbError("SimGrid found nothing more to simulate"))
                raise
            except BaseException as error:  # one that leaves an actor ends the process
                failures.append(error)

        host = next(iter(self.hosts.values()))
        self._simgrid.Actor.create("ranks", host, drive)
        self._engine.run()
        if failures:
            raise failures[0]

    @property
    def clock(self) -> float:
        """SimGrid's time in seconds."""
        return float(self._simgrid.Engine.clock)

    def communication(self, source: int, target: int, nbytes: int) -> Any:
        """Return a started communication between two nodes."""
        return self._simgrid.Comm.sendto_async(self.hosts[source], self.hosts[target], nbytes)

    def wait_any(self, pending: Sequence[Any], until: float | None) -> int | None:
        """Return the place of a communication that is over, after waiting for one; None at a
        time."""
        if not pending:
            assert until is not None
            self._simgrid.this_actor.sleep_until(until)
            return None
        timeout = -1.0 if until is None else max(0.0, until - self.clock)
        place = int(self._simgrid.Comm.wait_any_for(pending, timeout))
        return None if place < 0 else place


class _Run:
    """The state of one simulated program: its ranks, and their waits."""

    def __init__(self, engine: Engine, program: Program) -> None:
        self.engine = engine
        self.program = program
        self.start = self.now = engine.clock
        self.pending: list[Any] = []
        self.actions: list[_Message] = []
        self.busy: defaultdict[int, list[tuple[Then, Any]]] = defaultdict(list)
        self.dates: list[int] = []
        self.channels: defaultdict[tuple[int, int, int], Channel] = defaultdict(channel)
        self.connections: defaultdict[int, dict[int, float]] = defaultdict(dict)
        self.messages = 0
        self.latencies = self.transfers = self.alone = 0.0
        self.starts = [self.start] * program.ranks
        self.counts = [not program.timed] * program.ranks
        self.ends: list[float | None] = [None] * program.ranks
        network, nodes = engine.network, engine.nodes
        self.nodes = nodes
        self.between, self.within = network.between, network.within
        self.add_seconds = network.add_us_per_byte * MICRO

    def run(self) -> SimulatedOutcome:
        """Simulate the program until no rank has anything left to do."""
        for rank in range(self.program.ranks):
            self.proceed(_Rank(rank, self.program.operations(rank)))
        while self.pending or self.dates:
            self.take()
        blocked = [rank for rank, end in enumerate(self.ends) if end is None]
        if blocked:
            wait = "s {} wait for messages" if blocked[1:] else " {} waits for a message"
            ranks = wait.format(first_of(blocked))
            name = self.program.name or "the program"
            raise OmbError(f"{name}: rank{ranks} that no rank sends")
        times = zip(self.starts, self.ends, strict=True)
        ends = tuple(end - start for start, end in times if end is not None)
        sums = (self.latencies, self.transfers, self.alone)
        return SimulatedOutcome(ends, self.messages, *sums)

    def take(self) -> None:
        """Wait for the next event, and process it."""
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
        """Call ``action`` later; actions due at the same time are called together."""
        date = round((self.now + seconds - self.start) * RESOLUTION)
        if date not in self.busy:
            heappush(self.dates, date)
        self.busy[date].append((action, argument))

    def when_free(self, rank: _Rank, action: Then, argument: Any, more: float = 0.0) -> None:
        """Call ``action`` when a rank is no longer busy, and ``more`` seconds after that."""
        busy, rank.busy = rank.busy, 0.0
        self.delay(busy + more, action, argument)

    def proceed(self, rank: _Rank) -> None:
        """Make a rank's operations until it is busy, or waits."""
        for operation in rank.operations:
            if isinstance(operation, Send):
                protocol = self.path(rank.number, operation.peer).protocol(operation.nbytes)
                overhead = protocol.overhead_us * MICRO
                self.when_free(rank, self.send, (rank, operation), overhead)
                return
            if isinstance(operation, Wait):
                requests = [rank.requests.pop(number) for number in operation.requests]
                if not self.wait(rank, requests):
                    return
            elif isinstance(operation, Add):
                rank.busy += operation.nbytes * self.add_seconds
            elif rank.busy:
                self.when_free(rank, self.after_busy, (rank, operation))
                return
            elif not self.make(rank, operation):
                return
        if rank.busy:
            self.when_free(rank, self.end, rank)
        else:
            self.end(rank)

    def after_busy(self, argument: tuple[_Rank, Operation]) -> None:
        """Make the operation before which the rank was busy."""
        if self.make(*argument):
            self.proceed(argument[0])

    def make(self, rank: _Rank, operation: Operation) -> bool:
        """Make an operation of a rank that is not busy; whether it may go on at once."""
        if isinstance(operation, Receive):
            request = self.receive(rank, operation)
            if operation.request is None:
                return self.wait(rank, [request])
            rank.requests[operation.request] = request
        elif isinstance(operation, StartTiming):
            self.starts[rank.number] = self.now
            self.counts[rank.number] = True
        return True

    def send(self, argument: tuple[_Rank, Send]) -> None:
        """Send a message from its rank, after the overhead."""
        rank, operation = argument
        source, target, nbytes = rank.number, operation.peer, operation.nbytes
        path = self.path(source, target)
        request = _Request()
        message = _Message(source, target, nbytes, path, request, self.counts[source])
        messages, receives = self.channels[source, target, operation.tag]
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
        if operation.request is not None:
            rank.requests[operation.request] = request
            self.proceed(rank)
        else:
            self.begin_wait((rank, [request]))

    def transfer(self, message: _Message) -> None:
        """Start a message, after the delay of its protocol."""
        delay = message.path.protocol(message.nbytes).delay_us(message.nbytes)
        if delay > 0:
            self.delay(delay * MICRO, self.start_transfer, message)
        else:
            self.start_transfer(message)

    def start_transfer(self, message: _Message) -> None:
        """Start a message after the ones before it between the two ranks, as on a connection."""
        seconds = message.nbytes / (message.path.bandwidth_MBps * MEGA)
        free = self.connections[message.source]
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
        """Start a message on SimGrid's network, with the overheads of its protocol."""
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
        """Hand a message to its receiver."""
        message.arrived = True
        if message.counted:
            self.transfers += self.now - message.began - message.path.latency_us * MICRO
        if message.received is not None:
            self.complete(message.received, message)
        if not message.sent.complete:
            message.sent.complete = True
            self.notify(message.sent)

    def receive(self, rank: _Rank, operation: Receive) -> _Request:
        """Ask for the next message from a rank."""
        request = _Request()
        messages, receives = self.channels[operation.peer, rank.number, operation.tag]
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
        """Complete a receive, and let the rank that waits for it go on."""
        request.complete = True
        request.overhead = message.overhead
        self.notify(request)

    def notify(self, request: _Request) -> None:
        """Go on if a rank waits for a request that is complete."""
        if request.waiter is not None:
            self.look(request.waiter)

    def wait(self, rank: _Rank, requests: list[_Request]) -> bool:
        """Wait for requests; a rank that is busy begins after that. Whether all are there."""
        if rank.busy:
            self.when_free(rank, self.begin_wait, (rank, requests))
            return False
        return self.block(rank, requests)

    def begin_wait(self, argument: tuple[_Rank, list[_Request]]) -> None:
        """Wait for requests of a rank that is not busy, and go on if all are there."""
        if self.block(*argument):
            self.proceed(argument[0])

    def block(self, rank: _Rank, requests: list[_Request]) -> bool:
        """Wait for requests of a rank that is not busy; whether all are there."""
        rank.waiting = requests
        for request in requests:
            request.waiter = rank
        return self.waited(rank)

    def waited(self, rank: _Rank) -> bool:
        """Account for arrived messages, and return whether all have arrived."""
        overhead = 0.0
        missing = False
        for request in rank.waiting:
            if request.complete:
                overhead += request.overhead
                request.overhead = 0.0
            else:
                missing = True
        if not missing or overhead > 0.0:  # whatever arrives meanwhile is taken in afterwards
            for request in rank.waiting:
                request.waiter = None
        if not missing:
            rank.busy += overhead
            rank.waiting = []
        elif overhead > 0.0:
            self.delay(overhead, self.again, rank)
        return not missing

    def again(self, rank: _Rank) -> None:
        """Wait again for the missing messages, after the rank was busy with arrived ones."""
        for request in rank.waiting:
            request.waiter = rank
        self.look(rank)

    def look(self, rank: _Rank) -> None:
        """Check again whether a rank can proceed."""
        if self.waited(rank):
            self.proceed(rank)

    def end(self, rank: _Rank) -> None:
        """End a rank after its last operation."""
        self.ends[rank.number] = self.now

    def path(self, source: int, target: int) -> NetworkPath:
        """Return the path of messages between two ranks."""
        return self.within if self.nodes[source] == self.nodes[target] else self.between
