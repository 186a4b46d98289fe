"""Gradients are what finite differences say, for every layer and the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from omb_py.apps.training.layers import (
    Convolution,
    Dense,
    DepthwiseConvolution,
    Layer,
    MaxPooling,
    MeanPooling,
    ReLU,
    Reshape,
    Scale,
    Skip,
    softmax_cross_entropy,
)

SAMPLES = 3
LAYERS = [
    Reshape((4, 6), (24,)),
    Reshape((4, 6), (4, 6, 1)),
    Dense((5,), 7),
    Convolution((4, 6, 2), filters=3),
    Convolution((5, 4, 2), side=1, stride=2, filters=3, bias=False),
    Convolution((5, 6, 2), side=3, stride=2, filters=2),
    DepthwiseConvolution((4, 6, 2)),
    DepthwiseConvolution((5, 4, 2), stride=2),
    Scale((4, 6, 2)),
    ReLU((4, 6, 2)),
    MaxPooling((4, 6, 2)),
    MaxPooling((5, 6, 2), 3, 2),
    MeanPooling((4, 6, 2)),
]
STEP = 1e-6
LIMIT = 1e-7


def difference(function: Callable[[], float], array: Any) -> Any:
    """The derivatives of a function by each element of an array, which it reads."""
    found = np.empty_like(array)
    for place in np.ndindex(array.shape):
        kept = array[place]
        array[place] = kept + STEP
        above = function()
        array[place] = kept - STEP
        found[place] = (above - function()) / (2 * STEP)
        array[place] = kept
    return found


class Example:
    """A layer with random numbers, of which a weighted sum is to be derived."""

    def __init__(self, layer: Layer, seed: int = 1) -> None:
        self.layer = layer
        random = np.random.default_rng(seed)
        self.values = random.normal(size=(SAMPLES, *layer.given))
        self.parameters = [random.normal(size=shape) for shape in layer.parameters.values()]
        self.weights = random.normal(size=(SAMPLES, *layer.gives))

    def total(self) -> float:
        found, _ = self.layer.forward(np, self.parameters, self.values)
        return float((found * self.weights).sum())

    def learned(self, rows: slice = slice(None)) -> list[Any]:
        gradients = [np.full_like(one, np.nan) for one in self.parameters]
        self.learn(gradients, rows, add=False)
        return gradients

    def learn(self, gradients: list[Any], rows: slice, add: bool) -> None:
        _, kept = self.layer.forward(np, self.parameters, self.values[rows])
        self.layer.learn(np, gradients, kept, self.weights[rows], add)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_what_a_layer_gives_has_the_shape_it_says(layer: Layer) -> None:
    example = Example(layer)
    found, kept = layer.forward(np, example.parameters, example.values)
    assert found.shape == (SAMPLES, *layer.gives)
    back = layer.backward(np, example.parameters, kept, example.weights)
    assert back.shape == (SAMPLES, *layer.given)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_the_gradient_of_the_input_is_that_of_finite_differences(layer: Layer) -> None:
    example = Example(layer)
    _, kept = layer.forward(np, example.parameters, example.values)
    found = layer.backward(np, example.parameters, kept, example.weights)
    assert found == pytest.approx(difference(example.total, example.values), abs=LIMIT)


@pytest.mark.parametrize("layer", [one for one in LAYERS if one.parameters], ids=str)
def test_the_gradients_of_parameters_are_those_of_finite_differences(layer: Layer) -> None:
    example = Example(layer)
    for found, parameter in zip(example.learned(), example.parameters, strict=True):
        assert found == pytest.approx(difference(example.total, parameter), abs=LIMIT)


@pytest.mark.parametrize("layer", [one for one in LAYERS if one.parameters], ids=str)
def test_gradients_of_the_parts_of_a_batch_add_up(layer: Layer) -> None:
    example = Example(layer)
    gradients = example.learned(slice(0, 1))
    example.learn(gradients, slice(1, SAMPLES), add=True)
    for parts, whole in zip(gradients, example.learned(), strict=True):
        assert parts == pytest.approx(whole)


def test_a_convolution_is_the_sum_over_neighbours_with_zeros_around() -> None:
    image = np.arange(12.0).reshape(1, 3, 4, 1)
    found, _ = Convolution((3, 4, 1)).forward(np, [np.ones((3, 3, 1, 1)), np.zeros(1)], image)
    assert found[0, 0, 0, 0] == 0 + 1 + 4 + 5
    assert found[0, 1, 1, 0] == sum(image[0, :3, :3, 0].ravel())


def test_of_equal_pixels_the_first_has_the_gradient() -> None:
    layer = MaxPooling((2, 2, 1))
    found, kept = layer.forward(np, (), np.ones((1, 2, 2, 1)))
    assert found.ravel().tolist() == [1]
    back = layer.backward(np, (), kept, np.full((1, 1, 1, 1), 5.0))
    assert back.ravel().tolist() == [5, 0, 0, 0]


def test_the_loss_is_a_sum_over_samples_and_its_gradient_that_of_finite_differences() -> None:
    random = np.random.default_rng(1)
    scores, labels = random.normal(size=(SAMPLES, 4)), np.array([0, 3, 3])

    def loss() -> float:
        return float(softmax_cross_entropy(np, scores, labels)[0])

    found, gradient = softmax_cross_entropy(np, scores, labels)
    likely = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert found == pytest.approx(-np.log(likely[np.arange(SAMPLES), labels]).sum())
    assert gradient == pytest.approx(difference(loss, scores), abs=LIMIT)


def test_great_scores_do_not_overflow() -> None:
    loss, gradient = softmax_cross_entropy(np, np.array([[1e4, 0.0]]), np.array([1]))
    assert loss == pytest.approx(1e4)
    assert gradient.tolist() == [[1, -1]]


def test_skips_rearrange_a_stack_and_gradients_go_the_other_way() -> None:
    assert Skip.FORK.forward((1, 2)) == (1, 2, 2)
    assert Skip.FORK.backward((1, 2, 3)) == (1, 5)
    assert Skip.SWAP.forward((1, 2, 3)) == (1, 3, 2)
    assert Skip.SWAP.backward((1, 2, 3)) == (1, 3, 2)
    assert Skip.JOIN.forward((1, 2, 3)) == (1, 5)
    assert Skip.JOIN.backward((1, 2)) == (1, 2, 2)
