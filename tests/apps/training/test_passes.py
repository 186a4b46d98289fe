"""Schedules of pipelines: every micro-batch goes forward and back, and nobody waits forever."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.training.pipeline import SCHEDULES, Pass

STAGES, PARTS = st.integers(1, 9), st.integers(1, 12)
KINDS = st.sampled_from(sorted(SCHEDULES))


@given(KINDS, STAGES, PARTS, st.data())
def test_each_micro_batch_goes_forward_and_then_back_once(
    schedule: str, stages: int, parts: int, data: st.DataObject
) -> None:
    passes = SCHEDULES[schedule](stages, data.draw(st.integers(0, stages - 1)), parts)
    assert len(passes) == len(set(passes)) == 2 * parts
    assert all(passes.index(Pass(True, n)) < passes.index(Pass(False, n)) for n in range(parts))


@given(KINDS, STAGES, PARTS)
def test_stages_take_micro_batches_in_sending_order(schedule: str, stages: int, parts: int) -> None:
    of_stages = [SCHEDULES[schedule](stages, stage, parts) for stage in range(stages)]
    for forward in (True, False):
        orders = [[one.part for one in passes if one.forward == forward] for passes in of_stages]
        assert all(order == orders[0] for order in orders)


@given(KINDS, STAGES, PARTS)
def test_no_stage_waits_for_one_that_waits_for_it(schedule: str, stages: int, parts: int) -> None:
    """Receives block, sends do not."""
    left = [SCHEDULES[schedule](stages, stage, parts)[::-1] for stage in range(stages)]
    sent: set[tuple[int, Pass]] = set()
    progress = True
    while progress:
        progress = False
        for stage, passes in enumerate(left):
            while passes and _possible(sent, stages, stage, passes[-1]):
                sent.add((stage, passes.pop()))
                progress = True
    assert not any(left)


def _possible(sent: set[tuple[int, Pass]], stages: int, stage: int, one: Pass) -> bool:
    before = stage - 1 if one.forward else stage + 1
    return not 0 <= before < stages or (before, one) in sent


@given(STAGES, PARTS)
def test_one_by_one_keeps_as_many_as_there_are_stages_behind(stages: int, parts: int) -> None:
    for stage in range(stages):
        assert most_kept(SCHEDULES["1f1b"](stages, stage, parts)) == min(stages - stage, parts)
        assert most_kept(SCHEDULES["gpipe"](stages, stage, parts)) == parts


def most_kept(passes: list[Pass]) -> int:
    """The most micro-batches that are forward, but not back yet."""
    return max(accumulate(1 if one.forward else -1 for one in passes))
