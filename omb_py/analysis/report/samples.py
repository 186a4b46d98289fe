"""Single iterations for the page: their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.analysis.charts.samples import TITLES, sample_charts
from omb_py.analysis.samples import Series, measurements

KINDS = ("samples", "ecdf")
"""Figures of each measurement."""

MAX_MEASUREMENTS = 8
"""Measurements whose samples the page shows: each figure takes some 50 kB."""


@dataclass(frozen=True)
class SampleFigure:
    """A figure in words, and as the address of an image."""

    words: str
    address: str


@dataclass(frozen=True)
class SampleSection:
    """The figures of one measurement, and what is common to them."""

    title: str
    how: str
    figures: tuple[SampleFigure, ...]


def sample_sections(series: Sequence[Series]) -> list[SampleSection]:
    """A section for each measurement, at most `MAX_MEASUREMENTS`."""
    return [section(members) for members in measurements(series)[:MAX_MEASUREMENTS]]


def section(series: Sequence[Series]) -> SampleSection:
    """The section of one measurement; the first figure of each kind."""
    figures = []
    for kind in KINDS:
        chart = next(iter(sample_charts(series, kind).values()))
        figures.append(SampleFigure(TITLES[kind], chart.address()))
    title = str(series[0].shared["benchmark"])
    return SampleSection(title, chart.caption[0], tuple(figures))
