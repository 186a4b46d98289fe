"""Figures of single iterations show the samples of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from omb_py.analysis.plots import terminal
from omb_py.analysis.plots.figures import draw
from omb_py.analysis.plots.samples import (
    MOST_SAMPLES,
    SAMPLE_KINDS,
    SamplePanel,
    cumulated,
    running_median,
    sample_plots,
    some,
)
from omb_py.analysis.plots.style import FORMATS, Page, image
from omb_py.analysis.samples.series import load
from omb_py.cli import plot as command
from omb_py.core.errors import OmbError, UsageError
from omb_py.results.samples import is_samples
from tests.analysis.samples.synthetic import lognormal, series, write
from tests.conftest import Finished

CHANCE = np.random.default_rng(5)
MEMBERS = [series(lognormal(CHANCE, 300), size, rank) for size in (1, 1024) for rank in range(2)]


def test_the_command_knows_every_kind() -> None:
    assert command.SAMPLE_KINDS == SAMPLE_KINDS


@pytest.mark.parametrize("kind", SAMPLE_KINDS)
def test_every_kind_is_drawn_in_files_and_in_the_terminal(kind: str) -> None:
    (plot,) = sample_plots(MEMBERS, kind).values()
    assert plot.name == f"latency-{kind}"
    figure = draw(plot, page=Page(8.5))
    for form in FORMATS:
        assert len(image(figure, form)) > 1000
    words = " ".join(text.get_text() for text in figure.texts)
    assert "300 samples a rank" in " ".join(words.split())
    text = terminal.text(plot, 80, 20)
    assert max(map(len, text.splitlines())) <= 80
    assert "1 KiB" in text


def test_all_samples_are_points_at_their_starts() -> None:
    (plot,) = sample_plots(MEMBERS, "samples", [1024]).values()
    (axes,) = draw(plot).axes
    for line, one in zip(axes.get_lines(), MEMBERS[2:], strict=True):
        assert np.array_equal(line.get_xdata(), one.starts)
        assert np.array_equal(line.get_ydata(), one.samples)


def test_of_very_many_samples_the_extremes_are_drawn() -> None:
    one = series(lognormal(CHANCE, 50_000))
    starts, samples = some(one)
    assert len(samples) <= MOST_SAMPLES
    assert samples.min() == one.samples.min()
    assert samples.max() == one.samples.max()
    assert (np.diff(starts) > 0).all()


def test_a_distribution_counts_the_samples_of_all_ranks() -> None:
    values, shares = cumulated(SamplePanel("", tuple(MEMBERS[:2])))
    both = np.concatenate([one.samples for one in MEMBERS[:2]])
    assert shares[-1] == pytest.approx(99, abs=0.2)
    middle = len(values) // 2
    assert shares[middle] == pytest.approx(100 * np.mean(both <= values[middle]))


def test_a_running_median_follows_a_step() -> None:
    one = series(np.repeat([2.0, 3.0], 500) + 0.01 * CHANCE.random(1000))
    _, medians, low, high = running_median(one)
    assert (low <= medians).all()
    assert (medians <= high).all()
    assert medians[:15] == pytest.approx(2.005, abs=0.01)
    assert medians[-15:] == pytest.approx(3.005, abs=0.01)


def test_the_command_draws_a_folder(in_process: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs" / "a.parquet", *MEMBERS)
    assert is_samples(tmp_path / "runs" / "a.parquet")
    job = in_process("plot", "runs", "--kind", "ecdf", "--figure", "out/", "--format", "svg")
    assert job.code == 0, job.err
    assert (tmp_path / "out" / "latency-ecdf.svg").exists()
    job = in_process("plot", "runs/a.parquet", "--where", "bytes=1K", "--kind", "violin", "-Gtty")
    assert "1 KiB" in job.out
    assert "1 B" not in job.out


def test_what_holds_no_samples_is_named(
    in_process: Callable[..., Finished], tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("bytes,latency_us\n1,2\n")
    job = in_process("plot", "rows.csv", "--kind", "drift")
    assert "rows.csv holds no samples" in job.err
    write(tmp_path / "run.npy", *MEMBERS)
    job = in_process("plot", "run.npy")
    assert "run.npy holds samples, not rows" in job.err
    with pytest.raises(UsageError, match="3 bytes"):
        sample_plots(MEMBERS, "ecdf", [3])
    with pytest.raises(OmbError, match="no sample to draw"):
        sample_plots([], "ecdf")


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_series_are_read_as_they_were_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    write(path, *MEMBERS)
    found = load([path])
    assert [(one.size, one.rank) for one in found] == [(1, 0), (1, 1), (1024, 0), (1024, 1)]
    for one, other in zip(found, MEMBERS, strict=True):
        assert np.array_equal(one.samples, other.samples)
        assert one.starts == pytest.approx(other.starts, abs=1e-12)
