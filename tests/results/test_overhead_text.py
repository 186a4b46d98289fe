"""The text of `omb-py overhead`: rows that explain themselves, and a busy machine."""

from __future__ import annotations

import io

import pytest

from omb_py.benchmarks import find_benchmark
from omb_py.core.options import Options
from omb_py.measure.overhead import busy
from omb_py.results.row import OverheadRow
from omb_py.results.text import OverheadWriter


def text(median: float, base: float, ratio: float, low: float | None, high: float | None) -> str:
    """The text of one size, of a binding and its base."""
    values: dict[str, object] = {"bytes": 8, "base": "native", "thread_level": "single"}
    values |= {"base_us": base}
    native = values | {"binding": "native", "median_us": base, "ratio": 1.0, "added_us": 0.0}
    other = values | {"binding": "buffer", "median_us": median, "added_us": median - base}
    other |= {"ratio": ratio, "ratio_low": low, "ratio_high": high}
    stream = io.StringIO()
    writer = OverheadWriter(stream, find_benchmark("latency"), Options())
    writer.start({"ranks": "2"})
    writer.section(None)
    for row in (native, other):
        writer.row(OverheadRow(**row))
    writer.finish()
    return stream.getvalue()


def test_the_text_says_that_ratios_are_within_rounds() -> None:
    assert "Added and Ratio: medians of the differences and ratios within each round" in text(
        0.466, 0.141, 3.31, 3.234, 3.317
    )


def test_a_row_whose_medians_have_another_quotient_says_so() -> None:
    lines = text(8.74, 1.41, 0.904, 0.8, 1.1).splitlines()
    (place,) = [i for i, line in enumerate(lines) if line.startswith("8         buffer")]
    assert lines[place + 1].startswith("#   buffer: the quotient of the medians is 6.20")
    without_interval = text(8.74, 1.41, 0.904, None, None)
    assert "the quotient of the medians is 6.20" in without_interval


@pytest.mark.parametrize("ratio", [3.31, 3.25])
def test_a_row_that_agrees_needs_no_word(ratio: float) -> None:
    assert "quotient" not in text(0.466, 0.141, ratio, ratio - 0.05, ratio + 0.05)


def test_a_busy_machine_is_said() -> None:
    assert busy([]) is None
    assert busy([0.01, 0.02, 3.0]) is None
    sentence = busy([0.05, 0.3, 0.4])
    assert sentence is not None
    assert "differ by 30%" in sentence
    assert "the machine was busy" in sentence
