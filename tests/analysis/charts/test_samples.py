"""Charts of single iterations show the samples of the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from omb_py.analysis.charts.samples import (
    MOST_SAMPLES,
    SAMPLE_KINDS,
    cumulated,
    sample_charts,
    some,
)
from omb_py.analysis.charts.spec import FORMATS, Page
from omb_py.analysis.samples import load
from omb_py.cli import plot as command
from omb_py.core.errors import UsageError
from omb_py.results.samples import is_samples
from tests.analysis.synthetic_samples import lognormal, series, write
from tests.conftest import Run
from tests.helpers.refusals import ANY_CODE, assert_refused, refuses

CHANCE = np.random.default_rng(5)
MEMBERS = [series(lognormal(CHANCE, 300), size, rank) for size in (1, 1024) for rank in range(2)]
SAMPLES = pd.concat(MEMBERS, ignore_index=True)


def test_the_command_knows_every_kind() -> None:
    assert command.SAMPLE_KINDS == SAMPLE_KINDS


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAMPLE_KINDS)
def test_every_kind_is_drawn(kind: str) -> None:
    (chart,) = sample_charts(SAMPLES, kind)
    assert chart.name == f"latency-{kind}"
    assert all(len(chart.image(form, Page(8.5))) > 1000 for form in FORMATS)
    assert "300 samples a rank" in chart.caption
    assert list(dict.fromkeys(chart.data["title"])) == ["1 B", "1 KiB"]


def test_all_samples_are_points_at_their_iterations() -> None:
    (chart,) = sample_charts(SAMPLES, "samples", [1024])
    for rank, one in enumerate(MEMBERS[2:]):
        drawn = chart.data[chart.data["rank"] == rank]
        assert np.array_equal(drawn["x"], one["iteration"])
        assert np.array_equal(drawn["y"], one["sample_us"])


def test_of_very_many_samples_the_extremes_are_drawn() -> None:
    one = series(lognormal(CHANCE, 50_000))
    drawn = some(one)
    assert len(drawn) <= MOST_SAMPLES
    assert drawn["y"].min() == one["sample_us"].min()
    assert drawn["y"].max() == one["sample_us"].max()
    assert (np.diff(drawn["x"]) > 0).all()


def test_a_distribution_counts_the_samples_of_all_ranks() -> None:
    both = pd.concat(MEMBERS[:2])["sample_us"]
    found = cumulated(pd.concat(MEMBERS[:2]))
    assert found["y"].iloc[-1] == pytest.approx(99, abs=0.2)
    middle = found.iloc[len(found) // 2]
    assert middle["y"] == pytest.approx(100 * np.mean(both <= middle["x"]))


def test_the_command_draws_a_folder(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs" / "a.npy", *MEMBERS)
    assert is_samples(tmp_path / "runs" / "a.npy")
    job = in_process("plot", "runs", "--kind", "ecdf", "--output", "out/", "--format", "svg")
    assert job.code == 0, job.err
    assert (tmp_path / "out" / "latency-ecdf.svg").exists()
    job = in_process("plot", "runs/a.npy", "--kind", "samples", "--format", "text")
    assert_refused(job, ANY_CODE, "a terminal shows lines")


def test_what_holds_no_samples_is_named(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("bytes,latency_us\n1,2\n")
    job = in_process("plot", "rows.csv", "--kind", "samples")
    assert "rows.csv holds no samples" in job.err
    write(tmp_path / "run.npy", *MEMBERS)
    job = in_process("plot", "run.npy")
    assert "run.npy holds samples, not rows" in job.err
    with refuses(UsageError, "3 bytes"):
        list(sample_charts(SAMPLES, "ecdf", [3]))


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "run.npy"
    write(path, *MEMBERS)
    numbers = ["bytes", "rank", "iteration", "sample_us"]
    pd.testing.assert_frame_equal(load([path])[numbers], SAMPLES[numbers], check_dtype=False)
