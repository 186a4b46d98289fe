"""What k-means computes on one rank: the nearest center of each sample, and sums over them.

The square of the distance of a sample x from a center c is |x|^2 - 2 x.c + |c|^2: a product of
matrices. For the nearest center the first term does not matter (S. Lloyd, Least squares
quantization in PCM, 1982).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from omb_py.apps.numerics.samples import working_bytes
from omb_py.apps.runtime.team import Team

WIDTH = 512
"""Samples in a block: few enough for the BLAS kernels that do not copy small matrices first."""


def _least(distances: Any, minimum: Any) -> None:
    """Write the distance of the nearest center: CuPy 14.2's ``min`` on a GPU fails with ``out``."""
    minimum[...] = distances.min(axis=1, keepdims=True)


class Lloyd:
    """Assigns ``samples``, a row each, to as many centers as one of ``ks``.

    By two products of matrices: distances, then sums over those that are marked. Samples are laid
    out in blocks of `WIDTH`, each a column with a one below it. The columns that are left over in
    the last block are zero, the one too: they add nothing anywhere.
    """

    def __init__(self, team: Team, samples: Any, ks: Iterable[int]) -> None:
        self.xp = xp = team.xp
        self.samples = samples
        self.squares = 0.0
        count, features = samples.shape
        self._whole, self._rest = divmod(count, WIDTH)
        blocks = self._whole + (self._rest > 0)
        self._blocks = xp.zeros((blocks, features + 1, WIDTH), samples.dtype)
        self._blocks[: self._whole, -1] = 1
        self._blocks[self._whole :, -1, : self._rest] = 1
        self._chunks = {k: self._divided(k, working_bytes(team)) for k in ks}

    def load(self) -> None:
        """Take the samples as they are now."""
        self.squares = float(self.xp.sum(self.samples * self.samples, dtype="float64"))
        whole, samples = self._whole, self.samples
        rows = samples[: whole * WIDTH].reshape(whole, WIDTH, samples.shape[1])
        self._blocks[:whole, :-1] = rows.transpose(0, 2, 1)
        self._blocks[whole:, :-1, : self._rest] = samples[whole * WIDTH :].T

    def add_up(self, centers: Any, totals: Any) -> None:
        """Add up the samples nearest to each center; ``totals``, a row for each, is float64.

        A row has the sums of the features, then the number of samples. A sample as far from two
        centers belongs to the first one.
        """
        self._add_up(centers, totals, self._mark_nearest)
        if float(totals[:, -1].sum()) != len(self.samples):
            self._add_up(centers, totals, self._mark_first)

    def inertia(self, centers: Any) -> float:
        """The sum of the squares of all samples' distances from their nearest centers."""
        weights, found = self._weights(centers), self.squares
        for samples, distances, minimum, _, _ in self._chunks[len(centers)]:
            self.xp.matmul(weights, samples, out=distances)
            _least(distances, minimum)
            found += float(self.xp.sum(minimum, dtype="float64"))
        return found

    def _divided(self, k: int, nbytes: int) -> list[tuple[Any, ...]]:
        """Chunks of blocks, and memory for distances, their minima, marks and sums of each."""
        blocks, height, width = self._blocks.shape
        dtype = self._blocks.dtype
        most = min(blocks, max(1, nbytes // ((2 * k + height) * width * dtype.itemsize)))
        shapes = (k, width), (1, width), (k, width), (height, k)
        arrays = [self.xp.empty((most, *shape), dtype) for shape in shapes]
        chunks = (self._blocks[start : start + most] for start in range(0, blocks, most))
        return [(chunk, *(array[: len(chunk)] for array in arrays)) for chunk in chunks]

    def _weights(self, centers: Any) -> Any:
        """What to multiply the blocks with, so that distances come out."""
        squares = (centers * centers).sum(axis=1, keepdims=True)
        return self.xp.concatenate((-2 * centers, squares), axis=1)

    def _add_up(self, centers: Any, totals: Any, mark: Callable[[Any, Any, Any], None]) -> None:
        weights = self._weights(centers)
        totals[...] = 0
        for samples, distances, minimum, marks, sums in self._chunks[len(centers)]:
            self.xp.matmul(weights, samples, out=distances)
            mark(distances, minimum, marks)
            self.xp.matmul(samples, marks.transpose(0, 2, 1), out=sums)
            totals += sums.sum(axis=0).T

    def _mark_nearest(self, distances: Any, minimum: Any, marks: Any) -> None:
        """Ones where a center is the nearest, or as near as that one: more than one in a tie."""
        _least(distances, minimum)
        self.xp.equal(distances, minimum, out=marks)

    def _mark_first(self, distances: Any, minimum: Any, marks: Any) -> None:
        """A one where a center is the first of the nearest: slower."""
        nearest = self.xp.argmin(distances, axis=1)
        numbers = self.xp.arange(distances.shape[1])
        marks[...] = nearest[:, None, :] == numbers[None, :, None]
