"""Rank 0 receives in a random order, by every way there is; each message names itself.

Rank 0 prints a line for each receive: when it was posted (ns), the sender, and the ordinal of the
message among those of the sender; in the end, for each sender, when it sent its messages. SEED and
STEPS are the arguments.
"""

from __future__ import annotations

import sys
from random import Random
from time import monotonic_ns, sleep

from mpi4py import MPI

ANY = MPI.ANY_SOURCE
TAGS = (3, 4)
UNTOUCHED = 255
WAYS = ("Irecv", "Irecv", "start", "Recv", "status", "Sendrecv", "probe", "matched", "imatched")


def send(data: MPI.Intracomm, orders: MPI.Intracomm) -> None:
    """Send what rank 0 orders."""
    requests, began = [], []
    for number in range(1 << 30):
        order = orders.recv(source=0)
        if order is None:
            break
        tag, size, way = order
        content = bytes([data.rank]) + number.to_bytes(3, "big") + bytes(size - 4)
        began.append(monotonic_ns())
        made = getattr(data, way)(content, 0, tag)
        requests += [made] if made is not None else []
    MPI.Request.Waitall(requests)
    orders.send(began, 0)


class Receiver:
    """Rank 0: ``waiting`` receives match none of the messages that are ``under_way``."""

    def __init__(self, data: MPI.Intracomm, orders: MPI.Intracomm, seed: int) -> None:
        self.data, self.orders, self.random = data, orders, Random(seed)
        self.sent = dict.fromkeys(range(1, data.size), 0)
        self.under_way: list[tuple[int, int, int]] = []  # source, tag, ordinal
        self.waiting: list[tuple[int, int, int, bytearray, MPI.Request]] = []
        self.arrived: list[MPI.Request] = []
        self.held: list[tuple[MPI.Message, str]] = []

    def order(self, source: int, tag: int) -> None:
        """Let a rank send a message; see which receive got it."""
        size = self.random.choice((8, 8, 8, 16))
        self.orders.send((tag, size, self.random.choice(("Send", "Isend"))), source)
        self.under_way.append((source, tag, self.sent[source]))
        self.sent[source] += 1
        if any(fits(one, (source, tag)) for one in self.waiting):
            self.look()

    def look(self) -> None:
        """Wait until one of the receives has its message, and do not complete it."""
        while True:
            self.orders.Iprobe()  # MPI goes on meanwhile
            sleep(1e-4)
            for one in self.waiting:
                if one[3][0] != UNTOUCHED:
                    self.waiting.remove(one)
                    self.arrived.append(one[4])
                    self.came(one[0], one[3])
                    return

    def came(self, posted: int, content: bytearray) -> None:
        """Report a receive, whose message is under way no more."""
        source, number = content[0], int.from_bytes(content[1:4], "big")
        print(posted, source, number, flush=True)
        self.under_way = [one for one in self.under_way if (one[0], one[2]) != (source, number)]

    def post(self, source: int, tag: int) -> None:
        """Receive, or begin to."""
        data, content = self.data, bytearray([UNTOUCHED] * 16)
        there = any(fits((0, source, tag), one) for one in self.under_way)
        way = self.random.choice(WAYS if there else WAYS[:3])
        if way in ("Irecv", "start"):
            posted = monotonic_ns()
            if way == "Irecv":
                request = data.Irecv(content, source, tag)
            else:
                request = data.Recv_init(content, source, tag)
                posted = monotonic_ns()
                request.Start()
            self.waiting.append((posted, source, tag, content, request))
            if there:
                self.look()
            return
        status = MPI.Status()
        if way in ("matched", "imatched"):
            self.held.append((data.Mprobe(source, tag, status), way))
            came = (status.source, status.tag)
            same = next(one for one in self.under_way if one[:2] == came)
            self.under_way.remove(same)  # the first of its kind
            return
        if way == "probe":
            data.Probe(source, tag, status)
            source, tag = status.source, status.tag
        posted = monotonic_ns()
        if way == "Sendrecv":
            data.Sendrecv(b"", MPI.PROC_NULL, 0, content, source, tag, status)
        elif way == "Recv":
            data.Recv(content, source, tag)
        else:
            data.Recv(content, source, tag, status)
        self.came(posted, content)

    def finish_some(self) -> None:
        """Complete some of what has arrived, in any order."""
        chance = self.random.random()
        if self.held and chance < 0.5:
            message, way = self.held.pop(self.random.randrange(len(self.held)))
            content, posted = bytearray(16), monotonic_ns()
            if way == "matched":
                message.Recv(content)
            else:
                message.Irecv(content).Wait()
            self.came(posted, content)
            return
        self.random.shuffle(self.arrived)
        some = [self.arrived.pop() for _ in range(min(len(self.arrived), 3))]
        if chance < 0.7:
            MPI.Request.Waitall(some)
        elif chance < 0.8:
            MPI.Request.Waitall(some, [MPI.Status() for _ in some])
        else:
            for request in some:
                while not (request.Test() if chance < 0.9 else request.Wait()):
                    pass


def fits(receive: tuple[object, ...], message: tuple[int, ...]) -> bool:
    """Whether a receive takes a message."""
    return receive[1] in (ANY, message[0]) and receive[2] in (MPI.ANY_TAG, message[1])


def main(seed: int, steps: int) -> None:
    data, orders = MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Dup()
    data.Set_name("data")
    if data.rank:
        send(data, orders)
        return
    me = Receiver(data, orders, seed)
    senders = list(me.sent)
    for _ in range(steps):
        step = me.random.random()
        if step < 0.5 and len(me.under_way) < 20:
            me.order(me.random.choice(senders), me.random.choice(TAGS))
        elif step < 0.85 and len(me.waiting) < 5:
            named = me.random.random() < 0.7
            source = me.random.choice(senders) if named else ANY
            me.post(source, me.random.choice((*TAGS, MPI.ANY_TAG)))
        else:
            me.finish_some()
    while me.waiting:
        _, source, tag, *_ = me.waiting[0]
        me.order(senders[0] if source == ANY else source, TAGS[0] if tag == MPI.ANY_TAG else tag)
    while me.under_way or me.arrived or me.held:
        me.post(ANY, MPI.ANY_TAG) if me.under_way else me.finish_some()
    for sender in senders:
        orders.send(None, sender)
        print("sent", sender, *orders.recv(source=sender), flush=True)


main(int(sys.argv[1]), int(sys.argv[2]))
