"""A training that went wrong is found out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from omb_py.apps import RunSettings
from omb_py.apps.train import APPLICATION, compare
from omb_py.apps.training import Training, data
from omb_py.apps.training.architectures import network, sample_shape
from omb_py.apps.training.checking import Operations, Worst, sum_over_ranks
from omb_py.apps.training.layers import softmax_cross_entropy
from omb_py.apps.training.networks import Network

TRAINING = Training(epochs=2)


def result(**changes: Any) -> dict[str, Any]:
    """A training as it should be, but for some changes."""
    worst = Worst(0.5, "dense1, forward, step 1")
    right = {"losses": [2.0, 1.0], "worst": worst, "difference": 1e-6, "different": []}
    return right | changes


def test_the_same_as_in_one_process_passes() -> None:
    assert compare(TRAINING, result(), result()).passed


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"losses": [1.0, 1.0]}, "does not fall"),
        ({"losses": [1.0, float("nan")]}, "does not fall"),
        ({"worst": Worst(1.1, "dense2, backward")}, "dense2, backward: off by 1.1"),
        ({"worst": Worst(float("nan"), "dense2, backward")}, "dense2, backward: off by nan"),
        ({"different": [3]}, "rank 3 has OTHER parameters"),
    ],
)
def test_what_went_wrong_is_said(wrong: dict[str, Any], words: str) -> None:
    found = compare(TRAINING, result(**wrong), result())
    assert not found.passed
    assert words in found.text


def test_a_training_that_diverges_in_numpy_is_called_that() -> None:
    lost = result(losses=[2.0, float("nan")], worst=Worst(float("nan"), "dense4.bias"))
    found = compare(TRAINING, lost, result(losses=[float("inf"), float("inf")]))
    assert not found.passed
    assert found.text == "the training diverges (loss nan), in NumPy, too: lower --learning-rate"
    assert "dense4.bias" in compare(TRAINING, lost, result()).text


def test_the_loss_of_one_epoch_neither_falls_nor_rises() -> None:
    found = compare(Training(epochs=1), result(losses=[2.105]), result(losses=[2.105]))
    assert found.passed
    assert found.text.startswith("loss is 2.105 (NumPy's: 2.105); ")


SMALL = (
    Training(data="generated", samples=16, layers=8),
    Training(data="generated", samples=16, model="cnn"),
    Training(model="resnet", layers=8, image=8, compute="real", samples=4),
    Training(model="mobilenet", image=32, compute="real", samples=2),
)
"""Each layer is in one of their networks."""


class OneProcess:
    """A team of a process that computes with NumPy."""

    def on_host(self, values: Any) -> Any:
        return values


class Observed:
    """A step of a network, each operation compared; ``spoil`` is called between two of them."""

    def __init__(self, training: Training, seed: int = 1) -> None:
        self.worst = Worst()
        loaded = data.load(training, sample_shape(training))
        self.samples, self.labels = loaded.images, loaded.labels
        self.network: Network = network(training, np)
        random = np.random.default_rng(seed)
        initial = [
            one + random.normal(0, 0.01, one.shape).astype("float32")
            for one in self.network.initial(seed)
        ]
        self.gradients = [np.empty_like(one) for one in initial]
        self.network.bind(initial, self.gradients)
        team: Any = OneProcess()
        self.operations = Operations(team, self.network, self.worst)

    def step(self) -> Worst:
        """The worst operation."""
        net, operations = self.network, self.operations
        operations.begin()
        net.observe, net.observe_back = operations.forward, operations.backward
        (scores,), kept = net.forward((self.samples,))
        _, gradient = softmax_cross_entropy(np, scores, self.labels)
        operations.loss(scores, self.labels, gradient)
        net.backward(kept, (gradient,))
        operations.gradients(self.gradients)
        return self.worst


@pytest.mark.parametrize("training", SMALL, ids=lambda training: training.model)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rounding_stays_within_what_it_can_be(training: Training, seed: int) -> None:
    assert 0 < Observed(training, seed).step().part <= 1


@pytest.mark.parametrize("training", SMALL, ids=lambda training: training.model)
def test_every_operation_that_is_off_by_a_little_is_found(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number of what a layer gives, or of a gradient, is off by a thousandth of the largest."""
    kinds = {type(layer) for _, layer in network(training, np).layers}
    for kind in kinds:
        for method in ("forward", "backward"):
            original = getattr(kind, method)

            def spoiled(self: Any, *arguments: Any, original: Any = original) -> Any:
                found = original(self, *arguments)
                values = found[0] if type(found) is tuple and len(found) == 2 else found
                values = values[-1] if isinstance(values, tuple) else values
                if values.dtype == np.float32 and values.flags.writeable:
                    values[(0,) * values.ndim] += np.float32(1e-3) * (np.abs(values).max() + 1)
                return found

            if kind.__name__ in ("Reshape", "Skip", "MeanPooling"):
                continue  # their results are views of, or the same as, what they are given
            with monkeypatch.context() as patch:
                patch.setattr(kind, method, spoiled)
                worst = Observed(training).step()
            assert worst.part > 1, (kind, method)


@pytest.mark.parametrize("training", SMALL, ids=lambda training: training.model)
def test_a_gradient_that_lacks_a_sample_is_found(training: Training) -> None:
    observed = Observed(training)
    learned = [one.copy() for one in observed.gradients]
    observed.network.loss_and_gradients(observed.samples[1:], observed.labels[1:])
    learned = [one.copy() for one in observed.gradients]
    assert observed.step().part <= 1
    observed.operations.gradients(learned)
    assert observed.worst.part > 1
    assert "gradient" in observed.worst.where


class Ranks:
    """Rank 0 of several, whose numbers are known: a team, and its communicator."""

    rank = 0

    def __init__(self, numbers: NDArray[Any]) -> None:
        self.ranks, self.comm = len(numbers), self
        self._sums = iter((numbers.sum(0, float), np.abs(numbers).sum(0, dtype=float)))

    def Reduce(self, own: NDArray[Any], into: NDArray[Any]) -> None:  # noqa: N802 - mpi4py's
        into[...] = next(self._sums)


NUMBERS = st.integers(2, 9).flatmap(
    lambda ranks: st.lists(
        st.lists(st.floats(-1e4, 1e4, width=16), min_size=ranks, max_size=ranks),
        min_size=1,
        max_size=5,
    )
)


@given(NUMBERS, st.sampled_from(["none", "fp16"]), st.randoms(use_true_random=False))
def test_averages_in_any_order_are_within_what_rounding_allows(
    columns: list[list[float]], compression: str, random: Any
) -> None:
    kind = np.float16 if compression == "fp16" else np.float32
    numbers = np.array(columns, np.float32).T
    ranks = list(range(len(numbers)))
    random.shuffle(ranks)
    total: Any = np.zeros(len(columns), kind)
    for rank in ranks:
        total += (numbers[rank] / len(ranks)).astype(kind)
    found = total.astype(np.float32) * len(ranks)
    team: Any = Ranks(numbers)
    exact, worst = sum_over_ranks(team, Training(compression=compression), numbers[0], found)
    assert worst <= 1
    assert exact == pytest.approx(numbers.sum(0, float))


@pytest.mark.parametrize("compression", ["none", "fp16"])
def test_an_average_that_is_off_by_a_part_is_not(compression: str) -> None:
    numbers = np.ones((2, 3), np.float32)
    part = 1e-6 if compression == "none" else 0.01
    team: Any = Ranks(numbers)
    _, worst = sum_over_ranks(
        team, Training(compression=compression), numbers[0], 2 * numbers[0] + part
    )
    assert worst > 1


@pytest.mark.parametrize("difference", [1e-7, float("nan")])
def test_replayed_averages_are_exact(difference: float) -> None:
    replayed = Training(model="resnet50")
    assert compare(replayed, {"difference": 0.0, "limit": 0.0, "lost": []}, None).passed
    assert not compare(replayed, {"difference": difference, "limit": 0.0, "lost": []}, None).passed


def test_a_loss_need_not_fall_at_a_rate_that_the_user_chose() -> None:
    chosen = Training(epochs=2, learning_rate=0.0)
    found = compare(chosen, result(losses=[1.0, 1.0]), result())
    assert found.passed
    assert "does not fall" in found.text


def test_what_did_not_arrive_at_a_stage_is_said() -> None:
    found = compare(
        Training(model="resnet50"), {"difference": 0.0, "limit": None, "lost": [2]}, None
    )
    assert not found.passed
    assert "rank 2 has OTHER values" in found.text


@pytest.mark.parametrize(
    ("training", "has_references"),
    [
        (Training(), True),
        (Training(model="resnet50"), True),
        (Training(model="resnet50", sample_time=0.0), False),
        (Training(model="resnet50", sample_time=0.0, compute="matmul"), False),
    ],
)
def test_what_computes_nothing_has_no_speed_up(training: Training, has_references: bool) -> None:
    assert APPLICATION.applicable(RunSettings(), training).references == has_references


def test_a_problem_that_grows_has_as_many_samples_for_each_rank() -> None:
    assert APPLICATION.weak_scaled is not None
    grown = APPLICATION.weak_scaled(Training(samples=100, batch=10), 4)
    assert (grown.samples, grown.batch, grown.test_samples) == (400, 40, 256)
    tested = Training(data="generated", test="parallel", test_samples=10)
    assert APPLICATION.weak_scaled(tested, 4).test_samples == 40
