"""Batches and micro-batches: nothing is lost, nothing comes twice, nothing is empty."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.training.pipeline import batch_share, batches, micro_batches

COUNTS = st.integers(1, 500)


@given(COUNTS, COUNTS)
def test_batches_follow_each_other_and_only_the_last_is_smaller(samples: int, batch: int) -> None:
    found = batches(samples, batch)
    assert [place for stretch in found for place in range(*stretch)] == list(range(samples))
    sizes = [stop - start for start, stop in found]
    assert sizes[:-1] == [batch] * (len(sizes) - 1)
    assert 1 <= sizes[-1] <= batch


@given(st.integers(0, 500), COUNTS)
def test_micro_batches_are_as_even_as_can_be_and_never_empty(samples: int, parts: int) -> None:
    found = micro_batches(samples, parts)
    assert [place for stretch in found for place in range(*stretch)] == list(range(samples))
    assert len(found) == min(parts, samples)
    sizes = {stop - start for start, stop in found}
    assert not sizes or (min(sizes) >= 1 and max(sizes) - min(sizes) <= 1)


@given(COUNTS, st.integers(0, 500), st.integers(1, 20), st.integers(1, 20))
def test_pipelines_share_a_whole_batch(size: int, start: int, pipelines: int, parts: int) -> None:
    batch = (start, start + size)
    shares = [batch_share(batch, pipelines, pipeline, parts) for pipeline in range(pipelines)]
    taken = [[place for part in one for place in range(*part)] for one in shares]
    assert sum(map(len, taken)) == size
    for one, places in zip(shares, taken, strict=True):
        assert places == list(range(len(places)))
        assert len(one) <= parts
