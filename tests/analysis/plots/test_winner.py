"""Maps of who is best name the right configuration, and say where nobody is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.plots import terminal
from omb_py.analysis.plots.figures import Request, draw, pictures
from omb_py.analysis.plots.winner import TIMES, Contender, best
from omb_py.analysis.table import Results, of_rows
from omb_py.core.errors import OmbError
from tests.analysis.plots.test_figures import RUN, only, row
from tests.helpers.properties import examples


def measured(word: str | None, value: float, **more: Any) -> dict[str, Any]:
    """A row of an allreduce by an algorithm, whose median is known to a tenth."""
    near = {"sample_p50_us": value, "median_low_us": value * 0.9, "median_high_us": value * 1.1}
    usual = {"benchmark": "allreduce", "ranks": 4, "latency_us": value, "sample_mean_us": value}
    return row(**{**usual, **near, "library_algorithm": word, **more})


def of(*rows: dict[str, Any]) -> Results:
    return of_rows(list(rows), RUN)


def test_each_cell_has_the_lowest_latency_and_how_far_it_leads() -> None:
    chart = only(
        of(
            measured("ring", 10.0, bytes=8),
            measured("linear", 5.0, bytes=8),
            measured("default", 20.0, bytes=8),
            measured("ring", 3.0, bytes=1024),
            measured("linear", 9.0, bytes=1024),
            measured("ring", 4.0, bytes=8, ranks=8),
            measured("linear", 1.0, bytes=8, ranks=8),
        ),
        kind="winner",
    )
    assert chart.ranks == ("4 ranks", "8 ranks")
    assert chart.sizes == (8, 1024)
    texts = [[cell.text if cell else None for cell in cells] for cells in chart.cells]
    assert texts == [[f"linear 2.00{TIMES}", f"linear 4.00{TIMES}"], [f"ring 3.00{TIMES}", None]]


def test_overlapping_intervals_have_no_winner_beyond_noise() -> None:
    chart = only(of(measured("ring", 10.0), measured("linear", 10.5)), kind="winner")
    ((cell,),) = chart.cells
    assert cell.text == "ring, within noise"
    assert "the intervals of best and second best overlap" in " ".join(chart.caption)


def test_of_a_bandwidth_the_highest_wins() -> None:
    rows = [
        row(latency_us=None, bandwidth_MBps=value, variant=name, benchmark="bw")
        for name, value in (("UCX_TLS=tcp", 5.0), ("UCX_TLS=sm", 20.0))
    ]
    chart = only(of(*rows), kind="winner")
    assert chart.cells[0][0].text == f"UCX_TLS=sm 4.00{TIMES}"
    assert "highest" in chart.words


def test_own_algorithms_and_their_segments_compete_with_the_librarys_call() -> None:
    chosen = [
        (None, None, None, 9.0),
        (None, "library", None, 9.5),
        ("ring", None, None, 8.0),
        (None, "ring", None, 7.0),
        (None, "segmented_ring", 8192, 3.0),
        (None, "segmented_ring", 65536, 6.0),
    ]
    rows = [
        measured(word, value, algorithm=own, segment=segment)
        for word, own, segment, value in chosen
    ]
    chart = only(of(*rows), kind="winner")
    assert chart.names == (
        "default",
        "library",
        "own ring",
        "own segmented ring, segments of 8 KiB",
        "own segmented ring, segments of 64 KiB",
        "ring algorithm",
    )
    assert chart.cells[0][0].text == f"own segmented ring, segments of 8 KiB 2.00{TIMES}"


def test_what_is_no_contender_makes_a_map_of_its_own() -> None:
    rows = [
        measured(word, value, binding=binding, bytes=8)
        for binding in ("native", "buffer")
        for word, value in (("ring", 1.0), ("linear", 2.0))
    ]
    found = pictures(of(*rows), Request("winner"))
    assert set(found) == {
        "allreduce-winner-binding-native",
        "allreduce-winner-binding-buffer",
    }


def test_without_algorithms_the_configurations_compete() -> None:
    rows = [row(binding=name, latency_us=value) for name, value in (("pickle", 3), ("buffer", 1))]
    assert only(of(*rows), kind="winner").cells[0][0].text == f"buffer 3.00{TIMES}"
    chart = only(of(*rows), kind="winner", lines=("binding",))
    assert chart.names == ("buffer", "pickle")


def test_an_algorithm_that_a_binding_brings_tells_no_contenders_apart() -> None:
    brought = {"buffer": None, "tcp": "by_size", "unix": "by_size"}
    rows = [
        measured(None, value, binding=name, algorithm=brought[name])
        for name, value in (("buffer", 6.0), ("tcp", 3.0), ("unix", 1.0))
    ]
    chart = only(of(*rows), kind="winner")
    assert chart.names == ("buffer", "tcp", "unix")
    assert chart.cells[0][0].text == f"unix 3.00{TIMES}"


def test_runs_of_one_contender_are_its_median_between_extremes() -> None:
    rows = [measured("ring", value) for value in (1.0, 2.0, 3.0)] + [measured("linear", 2.5)]
    ((cell,),) = only(of(*rows), kind="winner").cells
    assert (cell.winner, cell.within_noise) == ("ring", True)


def test_single_launches_are_said_to_tell_nothing_of_launches() -> None:
    once = [measured("ring", 10.0), measured("linear", 5.0)]
    again = [measured(word, value) for word, value in (("ring", 11.0), ("linear", 6.0))]
    words = "Single launches say nothing of what launches differ by: repeat them"
    assert words in only(of(*once), kind="winner").caption
    assert words not in only(of(*once, *again), kind="winner").caption


def test_a_barrier_has_one_row_without_a_size() -> None:
    rows = [measured(word, value, bytes=None) for word, value in (("tree", 1.0), ("linear", 3.0))]
    chart = only(of(*rows), kind="winner")
    assert [cell.text for (cell,) in chart.cells] == [f"tree 3.00{TIMES}"]
    draw(chart)


def test_a_lone_contender_is_no_map() -> None:
    with pytest.raises(OmbError, match="two configurations at one message size"):
        pictures(of(measured("ring", 1.0)), Request("winner"))
    rows = [measured("ring", 1.0), measured("ring", 1.0, bytes=64), measured("linear", 2.0)]
    chart = only(of(*rows), kind="winner")
    assert chart.cells[1][0].text == "ring alone"


def test_a_terminal_shows_the_same_words() -> None:
    rows = [
        measured(word, value, bytes=size)
        for size in (8, 65536)
        for word, value in (("ring", 1.0), ("recursive_doubling", 2.0))
    ]
    chart = only(of(*rows), kind="winner")
    shown = terminal.text(chart, 80, 24).splitlines()
    assert shown[0] == "allreduce: Latency, median: the lowest"
    assert shown[1:4] == [
        "        4 ranks",
        f"   8 B  ring 2.00{TIMES}",
        f"64 KiB  ring 2.00{TIMES}",
    ]


def test_a_figure_writes_every_cell() -> None:
    rows = [
        measured(word, value, bytes=size, ranks=ranks)
        for size in (8, 64)
        for ranks in (2, 4)
        for word, value in (("ring", 1.0), ("linear", 1.05 if size == 8 else 3.0))
    ]
    (axes,) = draw(only(of(*rows), kind="winner")).axes
    assert sorted(text.get_text() for text in axes.texts) == [
        *[f"3.00{TIMES}"] * 2,
        *["within noise"] * 2,
    ]
    assert sum(patch.get_hatch() is not None for patch in axes.patches) == 2


@given(st.lists(st.floats(0.1, 1e6), min_size=2, max_size=6, unique=True), st.booleans())
@examples(50)
def test_the_factor_is_that_of_the_first_two(values: list[float], lower: bool) -> None:
    unknown = float("nan")
    cell = best([Contender(f"{value}", value, unknown, unknown) for value in values], lower)
    assert cell is not None
    first, second = sorted(values, reverse=not lower)[:2]
    assert cell.winner == f"{first}"
    assert cell.factor == pytest.approx(max(first, second) / min(first, second))
    assert not cell.within_noise
