"""Samples for learning, how they are divided, and when a result passes for scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps.kmeans import (
    Clustering,
    Clusters,
    compare,
    deal_out,
    elbow,
    first_centers,
    sequential,
)
from omb_py.apps.knn import Classified, Queries, split
from omb_py.apps.knn import compare as compare_classes
from omb_py.apps.knn import sequential as classifier
from omb_py.apps.runtime.samples import Samples, draw, weak_scaled
from omb_py.core.errors import UsageError
from tests.helpers.refusals import missing, refuses


def test_generated_samples_are_reproducible() -> None:
    problem = Samples(samples=101, features=3, clusters=4, dtype="float32")
    values, classes = draw(problem)
    assert (values.shape, values.dtype) == ((101, 3), np.float32)
    assert (classes.shape, classes.dtype) == ((101,), np.int32)
    assert set(classes) == {0, 1, 2, 3}
    again, _ = draw(problem)
    assert np.array_equal(values, again)
    other, _ = draw(replace(problem, seed=2))
    assert not np.array_equal(values, other)


def test_generated_samples_of_a_class_lie_around_its_center() -> None:
    values, classes = draw(Samples(samples=20_000, features=16, clusters=4, dtype="float64"))
    means = np.array([values[classes == one].mean(axis=0) for one in range(4)])
    around = values - means[classes]
    assert around.std() == pytest.approx(1, rel=0.02)
    assert np.abs(means - means.mean(axis=0)).max() > 0.3


def test_queries_are_not_among_the_training_samples() -> None:
    samples, known, queries, truth = split(Queries(samples=50, queries=7))
    assert (len(samples), len(known), len(queries), len(truth)) == (50, 50, 7, 7)
    assert not set(map(bytes, queries)) & set(map(bytes, samples))


def test_samples_grow_with_the_ranks() -> None:
    assert weak_scaled(Samples(samples=10), 3).samples == 30


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Clusters(k_from=5, k_to=4), "--k-to"),
        (lambda: Clusters(k_to=11, samples=10), "--k-to"),
        (lambda: Queries(samples=4, neighbours=5), "--neighbours"),
    ],
)
def test_impossible_numbers_of_samples_refused(make: Callable[[], object], words: str) -> None:
    with refuses(UsageError, words):
        make()


def test_k_means_begins_with_different_samples() -> None:
    problem = Clusters(samples=60, features=2, k_from=50, k_to=50)
    samples, _ = draw(problem)
    samples[10:20] = samples[0]
    first = first_centers(problem, samples)
    assert len(np.unique(first, axis=0)) == 50
    assert {one.tobytes() for one in first} <= {one.tobytes() for one in samples}
    with refuses(UsageError, "only 50 samples are different"):
        first_centers(replace(problem, k_to=51, k_from=51), samples)


@pytest.mark.parametrize(
    ("inertias", "k"),
    [([100, 40, 10, 9, 8], 4), ([1, 0.4, 0.1, 0.09, 0.08], 4), ([4, 3, 2], None), ([7], None)],
)
def test_elbow_is_the_k_farthest_below_the_line_from_first_to_last(
    inertias: list[float], k: int | None
) -> None:
    assert elbow([2, 3, 4, 5, 6][: len(inertias)], inertias) == k


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60, unique=True), st.integers(1, 20))
def test_values_of_k_are_dealt_evenly(ks: list[int], ranks: int) -> None:
    hands = deal_out(ks, ranks)
    assert len(hands) == ranks
    assert sorted(k for hand in hands for k in hand) == sorted(ks)
    loads = [sum(hand) for hand in hands]
    assert max(loads) <= sum(ks) / ranks + max(ks) * (1 - 1 / ranks) + 1e-9
    if len(ks) >= ranks:
        assert min(map(len, hands)) > 0


SMALL = Clusters(
    samples=300, features=3, k_from=2, k_to=4, k_step=2, lloyd_iterations=5, dtype="float64"
)


def found_by_scikit_learn() -> tuple[list[Clustering], list[Any]]:
    """Its answer as ours, and its own."""
    models = sequential(SMALL).solve()
    return [
        Clustering(k, model.cluster_centers_, model.inertia_, False)
        for k, model in zip(SMALL.ks, models, strict=True)
    ], models


def test_clusters_like_scikit_learn_s_pass() -> None:
    found, models = found_by_scikit_learn()
    check = compare(SMALL, found, models)
    assert check is not None
    assert check.passed
    assert check.difference is not None
    assert check.difference < 1e-12


@pytest.mark.parametrize("wrong", ["inertia", "centers"])
def test_clusters_unlike_scikit_learn_s_fail(wrong: str) -> None:
    found, models = found_by_scikit_learn()
    found[1] = replace(found[1], **{wrong: getattr(found[1], wrong) * 1.00001})
    check = compare(SMALL, found, models)
    assert check is not None
    assert not check.passed


def test_k_with_an_empty_cluster_is_not_checked() -> None:
    found, models = found_by_scikit_learn()
    found[1] = replace(found[1], inertia=0.0, emptied=True)
    check = compare(SMALL, found, models)
    assert check is not None
    assert check.passed
    assert not missing("left out, empty: k 4", check.text)
    assert compare(SMALL, [replace(one, emptied=True) for one in found], models) is None


def test_it_is_said_where_scikit_learn_stopped_earlier() -> None:
    problem = replace(SMALL, lloyd_iterations=200)
    models = sequential(problem).solve()
    found = [
        Clustering(k, model.cluster_centers_, model.inertia_, False)
        for k, model in zip(problem.ks, models, strict=True)
    ]
    check = compare(problem, found, models)
    assert check is not None
    assert not missing("stopped at rest: k 2, 4", check.text)


ASKED = Queries(samples=200, queries=40, features=3, neighbours=4, dtype="float64")


def classified_by_scikit_learn() -> tuple[Classified, tuple[Any, Any]]:
    """Its answer as ours, and its own."""
    classes, model = reference = classifier(ASKED).solve()
    distances, _ = model.kneighbors(split(ASKED)[2])
    return Classified(classes.copy(), distances**2), reference


def test_classes_like_scikit_learn_s_pass() -> None:
    found, reference = classified_by_scikit_learn()
    check = compare_classes(ASKED, found, reference)
    assert check.passed
    assert "0 of 40 classes differ" in check.text


def test_one_wrong_class_fails() -> None:
    found, reference = classified_by_scikit_learn()
    found.classes[7] += 1
    check = compare_classes(ASKED, found, reference)
    assert not check.passed
    assert "1 of 40 classes differ" in check.text


@pytest.mark.slow
def test_one_wrong_distance_fails() -> None:
    found, reference = classified_by_scikit_learn()
    found.squares[7, 2] += 1e-6
    assert not compare_classes(ASKED, found, reference).passed


def test_a_class_that_a_tie_decides_may_differ() -> None:
    samples = np.array([[1.0], [-1.0], [4.0]])
    model = SimpleNamespace(
        kneighbors=lambda queries, k: (np.sort(np.abs(queries - samples.T))[:, :k], None)
    )
    problem = Queries(samples=3, queries=2, features=1, neighbours=1, dtype="float64")
    reference = np.array([0, 1]), model
    with pytest.MonkeyPatch.context() as patch:
        data = samples, np.array([0, 1, 1]), np.array([[0.0], [3.0]]), None
        patch.setattr("omb_py.apps.knn.split", lambda problem: data)
        squares = np.array([[1.0], [1.0]])
        tie = compare_classes(problem, Classified(np.array([1, 1]), squares), reference)
        wrong = compare_classes(problem, Classified(np.array([0, 0]), squares), reference)
    assert tie.passed
    assert "1 whose neighbours 1 and 2 are as near" in tie.text
    assert not wrong.passed
