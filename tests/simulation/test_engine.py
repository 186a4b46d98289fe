"""What programs take on SimGrid, beside what they take by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from omb_py.core.errors import OmbError
from omb_py.simulation.engine import BANDWIDTH, CONTENTION, LATENCY, Run, SimulatedOutcome
from omb_py.simulation.network import Network, Path, Protocol
from omb_py.simulation.program import Add, Operation, Program, Receive, Send, Wait
from omb_py.simulation.workers import Simulation, run_all
from tests.helpers.refusals import refuses

pytestmark = pytest.mark.usefixtures("simgrid")

Operations = Callable[[int], Iterator[Operation]]

NETWORK = Network(
    "star",
    Path(10.0, 100.0, 1000, (Protocol(1000, 1.0), Protocol(overhead_us=2.0, handshake_us=5.0))),
    Path(1.0, 1000.0, 1000, (Protocol(overhead_us=0.5),)),
    memory_MBps=2000.0,
    add_us_per_byte=0.01,
)
"""Messages of up to 1000 bytes are sent eagerly. A byte takes 0.01 us between nodes."""


def task(operations: Operations, ranks: int, run: Run) -> SimulatedOutcome:
    return run(Program(ranks, operations))


def outcomes(
    *programs: Operations, nodes: tuple[int, ...] = (0, 1), network: Network = NETWORK
) -> list[SimulatedOutcome]:
    """What comes of programs, one after the other in one process."""
    tasks = [partial(task, one, len(nodes)) for one in programs]
    return run_all([Simulation(network, nodes, one) for one in tasks], 1)


def microseconds(outcome: SimulatedOutcome) -> list[float]:
    return [end * 1e6 for end in outcome.ends]


def one_message(nbytes: int, rank: int) -> Iterator[Operation]:
    yield Send(1, nbytes) if rank == 0 else Receive(0)


def test_an_eager_message_leaves_its_sender_behind() -> None:
    """1 us of overhead on each side; 10 us and 100 bytes at 100 bytes per us between them."""
    (found,) = outcomes(partial(one_message, 100))
    assert microseconds(found) == pytest.approx([1.0, 1.0 + 10.0 + 1.0 + 1.0])
    assert found.messages == 1
    assert found.regime == LATENCY


def late_receiver(nbytes: int, rank: int) -> Iterator[Operation]:
    if rank == 1:
        yield Add(10_000)  # 100 us
    yield from one_message(nbytes, rank)


def test_a_large_message_waits_for_its_receiver() -> None:
    """It begins when the receiver is there, after a handshake of 5 us, and both end with it."""
    eager, waiting = outcomes(partial(late_receiver, 100), partial(late_receiver, 10_000))
    assert microseconds(eager) == pytest.approx([1.0, 100.0 + 1.0])
    assert microseconds(waiting) == pytest.approx([100 + 5 + 10 + 100, 100 + 5 + 10 + 100 + 2])
    assert waiting.regime == BANDWIDTH


def within(rank: int) -> Iterator[Operation]:
    yield from one_message(900, rank)


def test_ranks_of_a_node_send_through_its_memory() -> None:
    (found,) = outcomes(within, nodes=(0, 0))
    assert microseconds(found) == pytest.approx([0.5, 0.5 + 1.0 + 0.9 + 0.5])


def to_one(rank: int) -> Iterator[Operation]:
    """Everybody sends to rank 0, which receives all at once."""
    if rank:
        yield Send(0, 100_000)
        return
    for source in (1, 2):
        yield Receive(source, source)
    yield Wait((1, 2))


def test_messages_that_meet_share_a_link() -> None:
    (found,) = outcomes(to_one, nodes=(0, 1, 2))
    assert microseconds(found)[0] == pytest.approx(2 + 5 + 10 + 2 * 1000 + 2 * 2)
    assert found.regime == CONTENTION


def pairs_in_memory(rank: int) -> Iterator[Operation]:
    yield Send(rank + 1, 900_000, tag=3) if rank % 2 == 0 else Receive(rank - 1, tag=3)


def test_pairs_of_a_node_share_its_memory_when_they_are_many() -> None:
    """A pair gets 1000 MB/s, of which the memory has 2000: four pairs get half."""
    for pairs, times in ((2, 1), (4, 2)):
        (found,) = outcomes(pairs_in_memory, nodes=(0,) * 2 * pairs)
        assert max(microseconds(found)) == pytest.approx(900 * times, rel=0.01)


def adding(rank: int) -> Iterator[Operation]:
    """Both exchange 100 bytes and add them up."""
    yield Receive(1 - rank, 0)
    yield Send(1 - rank, 100, 1)
    yield Wait((0, 1))
    yield Add(100)


def test_additions_and_both_directions_of_a_link() -> None:
    (found,) = outcomes(adding)
    assert microseconds(found) == pytest.approx([1 + 10 + 1 + 1 + 1] * 2)


def many(rank: int) -> Iterator[Operation]:
    """Rank 0 takes 5,000 messages that have arrived before."""
    if rank:
        for _ in range(5000):
            yield Send(0, 0)
        return
    yield Add(100_000_000)  # 1 s
    for _ in range(5000):
        yield Receive(1)


def test_thousands_of_messages_that_are_there_are_taken_in_turn() -> None:
    """Also where that takes no time."""
    free = replace(NETWORK, between=Path(10.0, 100.0, 1000))
    (found,) = outcomes(many, network=free)
    assert microseconds(found)[0] == pytest.approx(1e6)
    assert found.messages == 5000


def nobody_sends(rank: int) -> Iterator[Operation]:
    if rank == 1:
        yield Receive(0)


def killed(rank: int) -> Iterator[Operation]:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)
    yield Add(1)


@pytest.mark.parametrize(
    ("program", "words"),
    [(nobody_sends, "rank 1 waits message"), (killed, "process simulation ended memory")],
)
def test_simulation_without_an_end_refused(program: Operations, words: str) -> None:
    with refuses(OmbError, words):
        outcomes(program)


def completed_in_another_order(rank: int) -> Iterator[Operation]:
    """Two messages, of which the second is waited for first."""
    if rank == 0:
        yield Send(1, 100, 0)
        yield Send(1, 200, 1)
        yield Wait((0, 1))
    else:
        yield Receive(0, 0)
        yield Receive(0, 1)
        yield Wait((1,))
        yield Wait((0,))


def test_requests_are_waited_for_in_any_order() -> None:
    """The second message is there 3 us later: 1 us of overhead and 2 us of bytes."""
    (found,) = outcomes(completed_in_another_order)
    assert found.messages == 2
    assert microseconds(found) == pytest.approx([2.0, 2.0 + 10.0 + 2.0 + 2.0])
