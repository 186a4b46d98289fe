"""Whether ranks compute the gradients that one process computes from the same parameters.

Parameters themselves drift apart in training: sums in another order round otherwise, and where a
unit of ReLU or the maximum of a pool is within rounding of another one, a step magnifies that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from omb_py.apps.runtime.team import Team, alone
from omb_py.apps.training import Training
from omb_py.apps.training.data import batches, load
from omb_py.apps.training.networks import network

EPOCHS = 2
"""At least so many: a batch counts by its nearest epoch, since a unit at its edge is rare."""

UNIT = {"none": 2.0**-24, "fp16": 2.0**-11}
"""The rounding of one operation in the precision in which gradients travel, by --compression."""

SMALLEST = {"none": 2.0**-149, "fp16": 2.0**-24}
"""The spacing of numbers near 0."""


@contextmanager
def unrecorded() -> Iterator[None]:
    """Around calls of all ranks that profiles leave out, since they belong to no training."""
    from mpi4py import MPI

    MPI.Pcontrol(0)
    try:
        yield
    finally:
        MPI.Pcontrol(1)


def gradients_difference(
    team: Team,
    training: Training,
    parameters: Callable[[], Any],
    learn: Callable[[int], Any],
    descend: Callable[[int], None],
) -> float:
    """Train again, and compare each step's gradients with NumPy's, on rank 0; collective.

    On rank 0 ``parameters`` are all parameters, and ``learn`` gives their gradients for a batch,
    summed over its samples, as NumPy arrays; ``descend`` makes the step. The difference is that of
    the worst tensor in the worst batch; 0 on other ranks.
    """
    import numpy as np

    samples, labels, classes = load(training)
    net = network(training, np, classes, samples.shape[1:])
    expected = [np.empty(shape, np.float32) for _, shape in net.shapes]
    epoch = batches(len(samples), training.batch)
    nearest = np.full(len(epoch), np.inf if team.rank == 0 else 0.0)

    def compare(number: int, before: Any, found: Any) -> None:
        net.bind(before, expected)
        part = slice(*epoch[number])
        net.loss_and_gradients(samples[part], labels[part])
        worst = np.max([relative_difference(*pair) for pair in zip(found, expected, strict=True)])
        nearest[number] = np.minimum(nearest[number], worst)  # which passes on a NaN

    for _ in range(max(EPOCHS, training.epochs)):
        for number in range(len(epoch)):
            before, found = parameters(), learn(number)
            alone(partial(compare, number, before, found), team.comm)
            descend(number)
    return float(nearest.max())


def relative_difference(found: Any, expected: Any) -> float:
    """The maximum difference of two numbers, of the maximum number expected."""
    import numpy as np

    difference = float(np.abs(found.reshape(expected.shape) - expected).max())
    largest = float(np.abs(expected).max())
    return difference / largest if largest else difference and np.inf


def sum_over_ranks(team: Team, training: Training, own: Any, found: Any) -> tuple[Any, float]:
    """The sums of the ranks' ``own`` numbers, and how far off ``found`` is; collective.

    In whatever order n numbers are added, the result is off by at most (n - 1) units of rounding
    times the sum of their absolute values (Higham: Accuracy and Stability of Numerical Algorithms,
    2002, section 4.2); converting, dividing and multiplying round once more each. Given is the
    worst error of a number, as a part of that limit. On rank 0.
    """
    import numpy as np

    exact, absolute = np.zeros((2, *own.shape))
    team.comm.Reduce(own.astype(float), exact)
    team.comm.Reduce(np.abs(own).astype(float), absolute)
    kind = training.compression
    limit = (team.ranks + 3) * (UNIT[kind] * absolute + team.ranks * SMALLEST[kind])
    return exact, float((np.abs(found - exact) / limit).max()) if team.rank == 0 else 0.0
