"""Choices of algorithms from launches whose truth is known, and what proves them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np
import pytest

from omb_py.algorithms import DEFAULT, library
from omb_py.analysis.charts.tuning import tuning_chart
from omb_py.analysis.tuning import (
    KEPT,
    RULES,
    Boundary,
    Place,
    Values,
    choices,
    own_sheet,
    proofs,
    rules_of,
    table,
    without,
)

SIZES = (8, 1024, 65536)
LAUNCHES = 8


def launches(
    times: Mapping[str, tuple[float, ...]], noise: float = 0.02, seed: int = 1, ranks: int = 4
) -> Values:
    """Launches of an allreduce whose options take these microseconds at `SIZES`, with noise."""
    random = np.random.default_rng(seed)
    return {
        Place("allreduce", ranks, size): {
            word: of_sizes[place] * np.exp(random.normal(0, noise, LAUNCHES))
            for word, of_sizes in times.items()
            if np.isfinite(of_sizes[place])
        }
        for place, size in enumerate(SIZES)
    }


SAME = (10.0, 20.0, 300.0)
FASTER_AT_THE_END = (11.0, 21.0, 200.0)


def words(values: Values, gain: float = 0.05) -> list[str]:
    return [one.word for one in choices(values, gain)]


def test_nothing_differs_keeps_the_library_everywhere_in_twenty_of_twenty() -> None:
    names = (DEFAULT, KEPT, "ring", "recursive_doubling", "rabenseifner", "linear")
    for seed in range(20):
        assert words(launches(dict.fromkeys(names, SAME), 0.05, seed)) == [KEPT] * 3


def test_algorithm_replaces_the_library_where_it_is_faster() -> None:
    values = launches({DEFAULT: SAME, KEPT: SAME, "ring": FASTER_AT_THE_END})
    assert words(values) == [KEPT, KEPT, "ring"]


def test_gain_below_the_one_asked_for_keeps_the_library() -> None:
    values = launches({DEFAULT: SAME, KEPT: SAME, "ring": FASTER_AT_THE_END})
    assert words(values, gain=0.6) == [KEPT] * 3


def test_gain_within_noise_keeps_the_library() -> None:
    values = launches({DEFAULT: SAME, KEPT: SAME, "ring": FASTER_AT_THE_END}, noise=0.6)
    assert words(values) == [KEPT] * 3


def test_few_launches_keep_the_library() -> None:
    values = launches({DEFAULT: SAME, KEPT: SAME, "ring": FASTER_AT_THE_END})
    few = {
        place: {word: times[:3] for word, times in options.items()}
        for place, options in values.items()
    }
    assert words(few) == [KEPT] * 3


def test_algorithm_that_is_nearly_as_fast_goes_on_from_the_size_before() -> None:
    times = {
        DEFAULT: (10.0, 20.0, 30.0),
        KEPT: (10.0, 20.0, 30.0),
        "ring": (5.0, 10.0, 15.0),
        "linear": (9.0, 9.9, 14.9),
    }
    assert words(launches(times, 0.001)) == ["ring"] * 3


def test_library_without_its_users_variables_is_kept_where_that_is_as_fast() -> None:
    times = {DEFAULT: SAME, KEPT: (5.0, 20.0, 300.0), "ring": (5.0, 20.0, 300.0)}
    assert words(launches(times)) == [KEPT] * 3


def test_default_that_no_file_can_keep_is_taken_by_name() -> None:
    times = {DEFAULT: SAME, KEPT: (20.0, 20.0, 300.0), "ring": (10.0, 40.0, 600.0)}
    assert words(launches(times)) == ["ring", KEPT, KEPT]


def test_default_that_nothing_reaches_is_lost() -> None:
    times = {DEFAULT: SAME, KEPT: (20.0, 20.0, 300.0), "ring": (30.0, 40.0, 600.0)}
    assert [one.lost for one in choices(launches(times))] == [True, False, False]


def test_algorithm_that_cannot_be_used_at_a_size_is_not_chosen_there() -> None:
    times = {DEFAULT: SAME, KEPT: SAME, "ring": (np.inf, 10.0, 150.0)}
    assert words(launches(times)) == [KEPT, "ring", "ring"]


def test_own_algorithm_is_told_and_never_chosen() -> None:
    times = {DEFAULT: SAME, KEPT: SAME, "own ring": (5.0, 10.0, 100.0)}
    values = launches(times)
    assert words(values) == [KEPT] * 3
    sheet = own_sheet(values)
    assert [row[:4] for row in sheet.rows] == [
        ("allreduce", "4", size, "ring") for size in ("8 B", "1 KiB", "64 KiB")
    ]


def test_rule_that_is_taken_out_changes_no_other_choice() -> None:
    times = {
        DEFAULT: (10.0, 20.0, 30.0),
        KEPT: (10.0, 20.0, 30.0),
        "ring": (5.0, 10.0, 15.0),
        "linear": (9.0, 9.9, 14.9),
    }
    chosen = choices(launches(times, 0.001))
    found = without(chosen, [chosen[0].place])
    assert [one.word for one in found] == [KEPT, "ring", "ring"]


def ranges(values: Values) -> tuple[list[tuple[int, int, str]], list[Boundary]]:
    rules, boundaries = rules_of(choices(values), values, library("Open MPI").algorithm)
    return [(one.first, one.last, one.algorithm.word) for one in rules], boundaries


def test_rules_merge_sizes_and_end_with_what_was_measured() -> None:
    times = {DEFAULT: SAME, KEPT: SAME, "ring": (20.0, 10.0, 100.0)}
    found, (border,) = ranges(launches(times, 0.001))
    assert found == [(border.at, 65536, "ring")]


def test_boundary_is_where_both_take_equally_long() -> None:
    times = {DEFAULT: SAME, KEPT: SAME, "ring": (20.0, 10.0, 100.0)}
    _, (border,) = ranges(launches(times, 0.0001))
    assert border.crossing
    assert border.at == pytest.approx((8 * 1024) ** 0.5, rel=0.01)
    assert "where both take equally long by interpolation between 8 B and 1 KiB" in border.text


def test_boundary_without_a_crossing_is_the_measured_size() -> None:
    times = {DEFAULT: SAME, KEPT: SAME, "ring": (9.9, 10.0, 100.0)}
    found, (border,) = ranges(launches(times, 0.0001))
    assert found == [(1024, 65536, "ring")]
    assert "the next measured size: between 8 B and 1 KiB nothing was measured" in border.text


def test_rule_ends_at_the_last_size_where_it_is_faster() -> None:
    times = {DEFAULT: SAME, KEPT: SAME, "ring": (5.0, 19.9, 299.0)}
    assert ranges(launches(times, 0.0001))[0] == [(8, 8, "ring")]


def test_rules_of_several_numbers_of_ranks_are_apart() -> None:
    two = launches({DEFAULT: SAME, KEPT: SAME, "ring": (5.0, 10.0, 100.0)}, ranks=2)
    four = launches({DEFAULT: SAME, KEPT: SAME, "ring": SAME}, ranks=4)
    both = {**two, **four}
    rules, _ = rules_of(choices(both), both, library("Open MPI").algorithm)
    assert [(one.ranks, one.first, one.last) for one in rules] == [(2, 8, 65536)]


@pytest.mark.parametrize(
    ("rules", "outcome"),
    [
        (150.0, "faster"),
        (300.0, "not obeyed"),
        (330.0, "slower"),
    ],
)
def test_rules_in_force_are_told_by_times(rules: float, outcome: str) -> None:
    times = {
        DEFAULT: SAME,
        RULES: (10.0, 20.0, rules),
        "ring": (np.inf, np.inf, 150.0),
    }
    found = proofs(launches(times), lambda place: "ring" if place.size == 65536 else KEPT)
    assert [one.outcome(0.05) for one in found] == ["no difference", "no difference", outcome]


def test_algorithm_as_fast_as_the_library_cannot_tell_whether_it_is_obeyed() -> None:
    times = {DEFAULT: SAME, RULES: SAME, "ring": SAME}
    found = proofs(launches(times), lambda place: "ring")
    assert {one.outcome(0.05) for one in found} == {"no difference"}


def test_figure_has_a_panel_for_each_function_and_bands_where_a_rule_is() -> None:
    values = launches({DEFAULT: SAME, KEPT: SAME, "ring": (20.0, 10.0, 100.0)})
    (chart,) = tuning_chart(table(choices(values), [], 0.05))
    text = json.dumps(chart.specification())
    assert "allreduce, 4 ranks" in text
    assert text.count('"text": "ring"') == 1
    assert {"default", "fastest algorithm"} <= {*re.findall(r'"line": "([^"]+)"', text)}
    assert chart.image("svg").startswith(b"<svg")


def test_function_without_sizes_has_no_figure() -> None:
    values = {Place("barrier", 4, 0): {DEFAULT: np.full(8, 2.0), "tree": np.full(8, 1.0)}}
    assert list(tuning_chart(table(choices(values), [], 0.05))) == []
