"""Calls in MPI's other forms: what is set up once, and what an iteration still makes."""

from __future__ import annotations

from omb_py.benchmarks import CheckedIteration
from omb_py.core.calls import Call, Iteration, Slot, Step, Window
from omb_py.core.calls.forms import nonblocking, persistent, setup_of


def names(steps: tuple[Step, ...]) -> list[str]:
    return [step.function for step in steps if isinstance(step, Call)]


def slots(steps: tuple[Step, ...]) -> list[Slot | None]:
    return [step.slot for step in steps if isinstance(step, Call)]


def test_a_nonblocking_call_is_started_and_waited_for() -> None:
    iteration = nonblocking(Iteration((Call("bcast", root=1), Call("barrier"))))
    assert names(iteration.steps) == ["ibcast", "wait", "ibarrier", "wait"]
    first, second, third, fourth = slots(iteration.steps)
    assert first is second is not None
    assert third is fourth is not None
    assert first is not third
    start = iteration.steps[0]
    assert isinstance(start, Call)
    assert start.root == 1


def test_the_rest_of_an_exchange_stays() -> None:
    before_check = (Call("barrier"),)
    iteration = CheckedIteration(
        (Call("bcast", root=0),), before=before_check, before_check=before_check
    )
    for form in (nonblocking, persistent):
        assert form(iteration).before_check == before_check
        assert form(iteration).before == before_check
        assert form(iteration).inputs == iteration.inputs


def test_a_persistent_call_is_set_up_once_and_freed_once() -> None:
    iteration = persistent(Iteration((Call("send", peer=1, tag=7), Call("recv", peer=1, tag=7))))
    assert names(iteration.setup) == ["send_init", "recv_init"]
    assert names(iteration.steps) == ["start", "wait", "start", "wait"]
    assert names(iteration.teardown) == ["request_free", "request_free"]
    send, receive = slots(iteration.setup)
    assert slots(iteration.steps) == [send, send, receive, receive]
    assert slots(iteration.teardown) == [send, receive]
    assert all(step.peer == 1 for step in iteration.setup if isinstance(step, Call))


def test_persistent_window_waits_for_the_last_group_first() -> None:
    receives, sends = (Call("irecv", peer=1),) * 3, (Call("isend", peer=1),) * 2
    iteration = persistent(Iteration((Window((receives, sends)),)))
    assert names(iteration.setup) == ["recv_init"] * 3 + ["send_init"] * 2
    assert names(iteration.steps) == ["startall", "startall", "waitall", "waitall"]
    assert len(iteration.teardown) == 5
    first, second, *waits = slots(iteration.steps)
    assert waits == [second, first]
    assert first is not None
    assert second is not None
    assert (first.count, second.count) == (3, 2)
    indices = [step.index for step in iteration.setup if isinstance(step, Call)]
    assert indices == [0, 1, 2, 0, 1]


def test_persistent_form_keeps_work_before_its_wait() -> None:
    slot = Slot()
    start, test, wait = (
        Call("iallreduce", slot=slot),
        Call("test", slot=slot),
        Call("wait", slot=slot),
    )
    iteration = persistent(
        Iteration((start, test, wait)), lambda call: call.function == "iallreduce"
    )
    assert names(iteration.setup) == ["allreduce_init"]
    assert names(iteration.steps) == ["start", "test", "wait"]
    assert len({id(one) for one in slots(iteration.steps + iteration.setup)}) == 1


def test_calls_that_are_left_out_stay_as_they_are() -> None:
    reply = Call("recv", peer=1, tag=5)
    iteration = persistent(Iteration((Call("send", peer=1), reply)), lambda call: call.tag != 5)
    assert iteration.steps[-1] is reply
    assert names(iteration.setup) == ["send_init"]


def test_a_setup_is_named_after_the_blocking_call() -> None:
    assert setup_of(Call("isend", peer=1)) == setup_of(Call("send", peer=1)) == "send_init"
    assert setup_of(Call("ialltoallw")) == "alltoallw_init"
