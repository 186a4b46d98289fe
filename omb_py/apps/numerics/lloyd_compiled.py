"""What k-means computes on one rank, with the sums compiled by Numba, in host memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numba
import numpy as np

from omb_py.apps.numerics.lloyd import Engine
from omb_py.apps.numerics.samples import working_bytes
from omb_py.apps.runtime.team import Team


def add_nearest(distances: Any, offsets: Any, samples: Any, totals: Any) -> float:
    """Add each sample to the total of its nearest center, and one to the number behind it.

    ``distances``, of shape samples, k, lack ``offsets``, of k. Returns the sum of the minimum ones.
    """
    features = samples.shape[1]
    found = 0.0
    for sample in range(samples.shape[0]):
        minimum = distances[sample, 0] + offsets[0]
        nearest = 0
        for center in range(1, offsets.shape[0]):
            distance = distances[sample, center] + offsets[center]
            closer = distance < minimum  # without a branch, which could not be foretold
            minimum = distance if closer else minimum
            nearest = center if closer else nearest
        found += minimum
        for feature in range(features):
            totals[nearest, feature] += samples[sample, feature]
        totals[nearest, features] += 1
    return found


COMPILED: Any = numba.njit(add_nearest)
"""Once for each element type, in each process: no file that ranks would have to share."""


class Compiled(Engine):
    """By one product of matrices, and one pass over distances and samples."""

    name = "numba"

    def __init__(self, team: Team, samples: Any, ks: Iterable[int]) -> None:
        super().__init__(team, samples, ks)
        nbytes = working_bytes(team)
        self._chunks = {k: self._divided(k, nbytes) for k in self.ks}
        if self.ks:  # compiles
            centers = np.zeros((self.ks[0], samples.shape[1]), samples.dtype)
            self._pass(centers, self._no_totals(centers), self._chunks[self.ks[0]][:1])

    def add_up(self, centers: Any, totals: Any) -> None:
        totals[...] = 0
        self._pass(centers, totals, self._chunks[len(centers)])

    def inertia(self, centers: Any) -> float:
        found = self._pass(centers, self._no_totals(centers), self._chunks[len(centers)])
        return self.squares + found

    def _divided(self, k: int, nbytes: int) -> list[tuple[Any, Any]]:
        """Stretches of samples, and memory for the distances of each."""
        count, features = self.samples.shape
        most = min(count, max(1, nbytes // ((2 * k + features) * self.samples.itemsize)))
        distances = np.empty((most, k), self.samples.dtype)
        chunks = (self.samples[start : start + most] for start in range(0, count, most))
        return [(chunk, distances[: len(chunk)]) for chunk in chunks]

    def _pass(self, centers: Any, totals: Any, chunks: Iterable[tuple[Any, Any]]) -> float:
        weights = np.ascontiguousarray(-2 * centers.T)
        offsets = (centers * centers).sum(axis=1)
        found = 0.0
        for samples, distances in chunks:
            np.matmul(samples, weights, out=distances)
            found += COMPILED(distances, offsets, samples, totals)
        return found

    @staticmethod
    def _no_totals(centers: Any) -> Any:
        """Totals that nobody asks for."""
        return np.zeros((len(centers), centers.shape[1] + 1))
