"""What one rank computes for k-means and k nearest neighbours, against the plainest programs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.kmeans import add_up, inertia
from omb_py.apps.knn import MIN_ROWS, find_nearest, smallest, vote
from omb_py.apps.runtime import samples as shared_samples
from tests.helpers.properties import examples

ALONE: Any = SimpleNamespace(xp=np, buffer=SimpleNamespace(device=None))
"""As much of a team as arrays to compute with need."""


def totals_of(samples: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Sums, and numbers behind them, of the samples nearest to each center."""
    totals = np.empty((len(centers), samples.shape[1] + 1))
    add_up(ALONE, samples, centers, totals)
    return totals


def nearest_of(samples: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The number of the first of the nearest centers."""
    distances: np.ndarray = ((samples[:, None] - centers) ** 2).sum(axis=2)
    found: np.ndarray = distances.argmin(axis=1)
    return found


@given(
    count=st.sampled_from([1, 7, 500, 1600]),
    features=st.integers(1, 5),
    k=st.integers(1, 9),
    bytes_at_a_time=st.sampled_from([1, 100_000, 1 << 19]),
    seed=st.integers(0, 99),
)
@examples(60)
def test_sums_of_clusters_are_those_of_the_nearest_centers(
    count: int, features: int, k: int, bytes_at_a_time: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    samples = random.integers(-4, 5, (count, features)).astype(np.float64)
    centers = random.integers(-4, 5, (k, features)).astype(np.float64)  # so that there are ties
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_samples, "HOST_BYTES", bytes_at_a_time)
        totals = totals_of(samples, centers)
        found = inertia(ALONE, samples, centers)
    nearest = nearest_of(samples, centers)
    assert np.array_equal(totals[:, -1], np.bincount(nearest, minlength=k))
    for center in range(k):
        assert np.array_equal(totals[center, :-1], samples[nearest == center].sum(axis=0))
    assert found == ((samples - centers[nearest]) ** 2).sum()


def test_a_sample_between_two_centers_counts_once() -> None:
    totals = totals_of(np.zeros((3, 1)), np.array([[1.0], [-1.0], [5.0]]))
    assert totals[:, -1].tolist() == [3, 0, 0]


@given(
    count=st.integers(1, 200),
    queries=st.integers(1, 40),
    features=st.integers(1, 5),
    data=st.data(),
)
@examples(60)
def test_nearest_are_found(count: int, queries: int, features: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, count))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    samples, asked = (
        random.integers(-9, 10, (rows, features)).astype(np.float64) for rows in (count, queries)
    )
    distances, numbers = np.empty((queries, k)), np.empty((queries, k), np.int64)
    find_nearest(ALONE, samples, asked, distances, numbers)
    every = ((asked[:, None] - samples) ** 2).sum(axis=2)
    assert np.array_equal(np.sort(distances), np.sort(every)[:, :k])
    assert np.array_equal(np.take_along_axis(every, numbers, axis=1), distances)
    assert all(len(set(row)) == k for row in numbers)


def test_queries_in_several_portions_are_all_answered() -> None:
    random = np.random.default_rng(1)
    samples, asked = random.standard_normal((5000, 2)), random.standard_normal((100, 2))
    assert max(MIN_ROWS, shared_samples.HOST_BYTES // samples.nbytes) < 100
    distances, numbers = np.empty((100, 3)), np.empty((100, 3), np.int64)
    find_nearest(ALONE, samples, asked, distances, numbers)
    every = ((asked[:, None] - samples) ** 2).sum(axis=2)
    assert np.array_equal(np.sort(numbers), np.sort(np.argsort(every)[:, :3]))


def test_the_smallest_of_a_row_are_as_many_as_asked_for() -> None:
    values = np.array([[3, 1, 2], [5, 5, 4]])
    assert np.sort(smallest(np, values, 2)).tolist()[0] == [1, 2]
    assert np.sort(smallest(np, values, 3)).tolist() == [[0, 1, 2]] * 2


def test_neighbours_vote_and_the_least_class_wins_a_draw() -> None:
    classes = np.array([[2, 2, 0], [1, 0, 2], [2, 1, 1]])
    assert vote(np, classes, 3).tolist() == [2, 0, 1]
