"""Networks: their parameters, how they learn, and how they are cut."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.train import prepare
from omb_py.apps.training import Training, data
from omb_py.apps.training.architectures import network, sample_shape
from omb_py.apps.training.data import CLASSES
from omb_py.apps.training.layers import softmax_cross_entropy
from omb_py.apps.training.networks import Network, balance, elements
from omb_py.core.errors import UsageError
from tests.helpers.properties import examples

SMALL = Training(data="generated", samples=96, batch=32, epochs=3, hidden=16, layers=4)
MODELS = ("mlp", "cnn")
RESNET = Training(model="resnet", layers=8, image=8, compute="real", samples=16, batch=8)


def load(training: Training) -> tuple[Any, Any]:
    """Images and labels."""
    found = data.load(training, sample_shape(training))
    return found.images, found.labels


class Computing:
    """What can be entered again and again, but not while it is."""

    inside = False

    def __enter__(self) -> None:
        assert not self.inside
        self.inside = True

    def __exit__(self, *error: object) -> None:
        self.inside = False


def bind(net: Network, initial: list[Any], dtype: str) -> list[Any]:
    """Memory for a network, and its gradients there."""
    parameters = [one.astype(dtype) for one in initial]
    gradients = [np.full_like(one, np.nan) for one in parameters]
    net.bind(parameters, gradients)
    return gradients


def test_the_parameters_of_mlp_are_those_of_its_dense_layers() -> None:
    net = network(replace(SMALL, layers=3), np)
    assert net.shapes == [
        ("dense1.weight", (64, 16)),
        ("dense1.bias", (16,)),
        ("dense2.weight", (16, 16)),
        ("dense2.bias", (16,)),
        ("dense3.weight", (16, 10)),
        ("dense3.bias", (10,)),
    ]


def test_the_parameters_of_cnn_are_those_of_two_convolutions_and_a_dense_layer() -> None:
    net = network(replace(SMALL, model="cnn"), np)
    assert net.shapes == [
        ("convolution1.weight", (3, 3, 1, 16)),
        ("convolution1.bias", (16,)),
        ("convolution2.weight", (3, 3, 16, 32)),
        ("convolution2.bias", (32,)),
        ("dense1.weight", (128, 10)),
        ("dense1.bias", (10,)),
    ]


@pytest.mark.parametrize("model", MODELS)
def test_a_seed_gives_the_same_weights_of_the_declared_shapes(model: str) -> None:
    net = network(replace(SMALL, model=model), np)
    first, second, other = net.initial(1), net.initial(1), net.initial(2)
    assert [one.shape for one in first] == [shape for _, shape in net.shapes]
    assert {one.dtype.name for one in first} == {"float32"}
    assert all(np.array_equal(one, two) for one, two in zip(first, second, strict=True))
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("model", MODELS)
def test_gradients_are_those_of_finite_differences_at_random_places(model: str) -> None:
    training = replace(SMALL, model=model)
    samples, labels = load(training)
    samples, labels = samples[:8].astype("float64"), labels[:8]
    net = network(training, np)
    parameters = [one.astype("float64") for one in net.initial(1)]
    gradients = [np.full_like(one, np.nan) for one in parameters]
    net.bind(parameters, gradients)
    net.loss_and_gradients(samples, labels)
    random, step = np.random.default_rng(1), 1e-6
    for parameter, gradient in zip(parameters, [one.copy() for one in gradients], strict=True):
        for _ in range(5):
            place = tuple(random.integers(parameter.shape))
            kept, losses = parameter[place], []
            for moved in (kept + step, kept - step):
                parameter[place] = moved
                losses.append(net.loss_and_gradients(samples, labels))
            parameter[place] = kept
            assert gradient[place] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_gradients_are_ready_in_reverse_order_and_complete_by_then(model: str) -> None:
    training = replace(SMALL, model=model)
    samples, labels = load(training)
    net = network(training, np)
    gradients = bind(net, net.initial(1), "float32")
    computing, seen = Computing(), []

    def ready(tensor: int) -> None:
        assert not computing.inside
        seen.append((tensor, gradients[tensor].copy()))

    net.loss_and_gradients(samples, labels, ready, computing)
    assert [tensor for tensor, _ in seen] == list(reversed(range(len(net.shapes))))
    assert all(np.array_equal(gradients[tensor], then) for tensor, then in seen)


@pytest.mark.parametrize("model", MODELS)
def test_loss_and_gradients_are_sums_over_the_samples(model: str) -> None:
    training = replace(SMALL, model=model)
    samples, labels = load(training)
    net = network(training, np)
    gradients = bind(net, net.initial(1), "float64")
    samples = samples.astype("float64")
    whole = net.loss_and_gradients(samples, labels)
    of_whole = [one.copy() for one in gradients]
    loss, sums = 0.0, [np.zeros_like(one) for one in gradients]
    for start, stop in ((0, 10), (10, 11), (11, 96)):
        loss += net.loss_and_gradients(samples[start:stop], labels[start:stop])
        for total, one in zip(sums, gradients, strict=True):
            total += one
    assert loss == pytest.approx(whole)
    for total, one in zip(sums, of_whole, strict=True):
        assert total == pytest.approx(one)


@pytest.mark.parametrize("model", MODELS)
def test_a_batch_without_samples_has_no_loss_and_gradients_of_0(model: str) -> None:
    net = network(replace(SMALL, model=model), np)
    gradients = bind(net, net.initial(1), "float32")
    assert net.loss_and_gradients(np.zeros((0, 8, 8), "float32"), np.zeros(0, int)) == 0
    assert not any(one.any() for one in gradients)


@pytest.mark.product(strength=1)
@pytest.mark.parametrize("data", ["digits", "generated"])
@pytest.mark.parametrize("model", MODELS)
def test_the_loss_falls_and_is_the_same_every_time(model: str, data: str) -> None:
    training = replace(SMALL, model=model, data=data, samples=512)
    first, second = prepare(training)(), prepare(training)()
    losses = first["losses"]
    assert len(losses) == training.epochs
    assert all(later < earlier for earlier, later in pairwise(losses))
    assert losses[0] < 2 * np.log(CLASSES)
    assert losses == second["losses"]
    for one, other in zip(first["parameters"], second["parameters"], strict=True):
        assert one.dtype == np.float32
        assert np.array_equal(one, other)


CUTS = [
    *((replace(SMALL, layers=8), stages) for stages in (1, 2, 3, 7, 8)),
    *((replace(SMALL, model="cnn"), stages) for stages in (1, 2, 3)),
    *((RESNET, stages) for stages in (2, 3, 5, 17)),
]


@pytest.mark.parametrize(("training", "stages"), CUTS, ids=lambda one: getattr(one, "model", one))
def test_stages_one_after_the_other_are_the_network(training: Training, stages: int) -> None:
    samples, labels = load(training)
    whole = network(training, np)
    gradients = bind(whole, whole.initial(1), "float32")
    loss = whole.loss_and_gradients(samples, labels)
    cut = whole.stages(stages)
    assert [shape for stage in cut for _, shape in stage.shapes] == [
        shape for _, shape in whole.shapes
    ]
    assert all(stage.shapes for stage in cut)
    assert all(one.gives == other.given for one, other in pairwise(cut))
    initial, learned, stack, kept = iter(whole.initial(1)), [], (samples,), []
    for stage in cut:
        learned.append(bind(stage, [next(initial) for _ in stage.shapes], "float32"))
        stack, own = stage.forward(stack)
        kept.append(own)
    found, gradient = softmax_cross_entropy(np, stack[-1], labels)
    assert found == loss
    gradients_of_stack: Any = (gradient,)
    for number in reversed(range(stages)):
        gradients_of_stack = cut[number].backward(
            kept[number], gradients_of_stack, onward=number > 0
        )
    everything = [one for of_stage in learned for one in of_stage]
    assert all(np.array_equal(one, two) for one, two in zip(everything, gradients, strict=True))


def test_too_many_stages_are_refused_with_what_to_do() -> None:
    net = network(SMALL, np)
    with pytest.raises(UsageError, match=r"cut into 4 stages, not 5: .* --layers"):
        net.stages(5)


def test_a_partition_says_how_many_layers_that_learn_each_stage_has() -> None:
    net = network(replace(SMALL, layers=6), np)
    assert [stage.learning for stage in net.stages(3, (1, 3, 2))] == [1, 3, 2]
    with pytest.raises(UsageError, match="give 3 numbers whose sum is 6"):
        net.stages(3, (1, 3, 3))


def test_given_costs_are_balanced_instead_of_work() -> None:
    net = network(replace(SMALL, layers=4, hidden=64), np)
    costs = [9.0 if name == "dense4" else 1.0 for name, _ in net.layers]
    assert [stage.learning for stage in net.stages(2, costs=costs)] == [3, 1]


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


def test_stages_of_equal_layers_are_equal() -> None:
    net = network(replace(SMALL, hidden=64, layers=8), np)
    sizes = [elements(stage.shapes) for stage in net.stages(4)]
    assert sizes[:3] == [2 * (64 * 64 + 64)] * 3
