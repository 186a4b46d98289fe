"""Calls are counted with the bytes that profiles give them, and time goes to one phase each."""

from __future__ import annotations

import pytest

from omb_py.apps.runtime.phases import Phase, Phases, Timed, message_bytes
from omb_py.buffers.numpy import BUFFER
from omb_py.core.calls import Call, Form, Message
from omb_py.core.datatypes import find_types

(FLOAT,) = find_types(["float32"])


def message(*counts: int, form: Form = "") -> Message:
    """Blocks of so many floats."""
    return Message(BUFFER.allocate(4 * sum(counts), FLOAT), FLOAT, counts, form)


@pytest.mark.parametrize(
    ("call", "nbytes"),
    [
        (Call("send", (message(10),), peer=1), 40),
        (Call("recv", (message(10),), peer=1), 40),
        (Call("bcast", (message(10),), root=0), 40),
        (Call("allreduce", (message(10), message(10)), op="sum"), 40),
        (Call("gather", (message(10), message(*[10] * 4)), root=0), 40),
        (Call("gather", (message(10), None), root=0), 40),
        (Call("scatter", (message(*[10] * 4), message(10)), root=0), 40),
        (Call("scatter", (None, message(10)), root=0), 40),
        (Call("allgather", (message(10), message(*[10] * 4))), 40),
        (Call("alltoall", (message(*[10] * 4), message(*[10] * 4))), 40),
        (Call("alltoallv", (message(0, 10, 20, 10, form="v"), message(1, 2, 3, 4))), 40),
        (Call("barrier"), 0),
    ],
    ids=lambda value: value.function if isinstance(value, Call) else None,
)
def test_bytes_of_a_message_on_four_ranks(call: Call, nbytes: int) -> None:
    assert message_bytes(call, ranks=4) == nbytes


def test_calls_of_one_size_share_a_tally_until_all_is_cleared() -> None:
    phases = Phases()
    first = phases.tally(Call("send", (message(10),), peer=1), ranks=2)
    assert phases.tally(Call("send", (message(10),), peer=0), ranks=2) is first
    assert phases.tally(Call("send", (message(11),), peer=1), ranks=2) is not first
    first.calls, first.seconds = 3, 0.5
    phases.seconds[Phase.WAIT] = 1.0
    phases.clear()
    assert (first.calls, first.seconds) == (0, 0.0)
    assert set(phases.seconds.values()) == {0.0}


def test_time_goes_to_its_phase() -> None:
    phases = Phases()
    with Timed(phases.seconds, Phase.COMPUTE):
        sum(range(10_000))
    assert phases.seconds[Phase.COMPUTE] > 0
    assert sum(phases.seconds.values()) == phases.seconds[Phase.COMPUTE]


def test_time_counts_also_where_computing_fails() -> None:
    phases = Phases()
    with pytest.raises(ValueError, match="x"), Timed(phases.seconds, Phase.COMPUTE):
        raise ValueError("x")
    assert phases.seconds[Phase.COMPUTE] > 0
