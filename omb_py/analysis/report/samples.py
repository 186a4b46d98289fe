"""Single iterations for the page: their figures, and what is odd about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.analysis.plots.samples import TITLES, draw, sample_plots
from omb_py.analysis.plots.style import address, apply_style
from omb_py.analysis.samples.diagnostics import findings
from omb_py.analysis.samples.series import Series, measurements

KINDS = ("samples", "drift", "ecdf")
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
    """The figures of one measurement, what is common to them, and sentences about its samples."""

    title: str
    how: str
    figures: tuple[SampleFigure, ...]
    sentences: tuple[str, ...]


def sample_sections(series: Sequence[Series]) -> list[SampleSection]:
    """A section for each measurement, at most `MAX_MEASUREMENTS`."""
    return [section(members) for members in measurements(series)[:MAX_MEASUREMENTS]]


def section(series: Sequence[Series]) -> SampleSection:
    """The section of one measurement; the first figure of each kind."""
    figures = []
    for kind in KINDS:
        plot = next(iter(sample_plots(series, kind).values()))
        with apply_style():
            figures.append(SampleFigure(TITLES[kind], address(draw(plot))))
    return SampleSection(plot.title, plot.caption[0], tuple(figures), tuple(findings(series)))
