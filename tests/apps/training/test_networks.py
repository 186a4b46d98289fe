"""Networks: how they are cut into stages."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.training.networks import balance, network
from omb_py.core.errors import UsageError
from tests.helpers.properties import examples
from tests.helpers.refusals import refuses

RESNET = "resnet20"
"""It has 21 convolutions, two of them around blocks, 19 layers that scale, and one dense."""


@pytest.mark.parametrize("stages", [1, 2, 3, 5, 41])
def test_stages_one_after_the_other_are_the_network(stages: int) -> None:
    whole = network(RESNET)
    cut = whole.stages(stages)
    assert [shape for stage in cut for shape in stage.shapes] == whole.shapes
    assert [layer for stage in cut for layer in stage.layers] == whole.layers
    assert all(stage.shapes for stage in cut)
    assert all(one.gives == other.given for one, other in pairwise(cut))


def test_too_many_stages_refused() -> None:
    net = network(RESNET)
    with refuses(UsageError, f"{len(net.layers)} 50 --model resnet1001"):
        net.stages(50)


@examples(50)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=8), st.data())
def test_no_other_cut_has_a_smaller_greatest_stage(work: list[int], data: st.DataObject) -> None:
    parts = data.draw(st.integers(1, len(work)))
    ends = balance(work, parts)
    assert len(ends) == parts
    assert ends[-1] == len(work)

    def maximum(places: tuple[int, ...]) -> int:
        return max(sum(work[start:stop]) for start, stop in pairwise((0, *places)))

    assert all(start < stop for start, stop in pairwise((0, *ends)))
    others = combinations(range(1, len(work)), parts - 1)
    assert maximum(ends) == min(maximum((*cut, len(work))) for cut in others)


def test_thousands_of_layers_are_cut_into_many_stages() -> None:
    ends = balance([1 + number % 7 for number in range(5000)], 64)
    assert len(ends) == 64
    assert ends[-1] == 5000
