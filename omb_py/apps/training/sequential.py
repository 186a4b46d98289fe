"""The program for one process that training on many ranks is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omb_py.apps.training import Training
from omb_py.apps.training.data import batches, load
from omb_py.apps.training.networks import network


def prepare(training: Training) -> Callable[[], dict[str, Any]]:
    """A function that trains from the beginning with NumPy, its samples loaded before.

    It returns ``losses``, the mean one of a sample for each epoch, and ``parameters``, the final
    ones as NumPy arrays in order of declaration.
    """
    import numpy as np

    samples, labels, classes = load(training)
    net = network(training, np, classes, samples.shape[1:])
    initial = net.initial(training.seed)

    def train() -> dict[str, Any]:
        parameters = [one.copy() for one in initial]
        net.bind(parameters, [np.empty_like(one) for one in initial])
        losses = []
        for _ in range(training.epochs):
            loss = 0.0
            for start, stop in batches(len(samples), training.batch):
                loss += net.loss_and_gradients(samples[start:stop], labels[start:stop])
                net.descend(training.learning_rate / (stop - start))
            losses.append(loss / len(samples))
        return {"losses": losses, "parameters": parameters}

    return train


def train_alone(training: Training) -> dict[str, Any]:
    """What `prepare` gives, samples loaded and trained at once."""
    return prepare(training)()
