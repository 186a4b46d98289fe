"""An option that a command does not use in its present mode is refused, never ignored."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import Run, succeeded
from tests.helpers.refusals import assert_refused

RESULTS = ROOT / "results"
APPLICATIONS = RESULTS / "applications-mpich.csv"
TABLE = RESULTS / "two-core-vm.csv"
OVERHEAD = RESULTS / "overhead-mpich.csv"
PAIRS = ROOT / "tests/data/pairs/one-slow-card.csv"

MODES = {
    f"show {APPLICATIONS} --speedup": (
        "--statistic mean",
        "--rows 1",
        "--name foo",
        "--assume ranks=3",
        "--base x",
        "--columns time_s",
    ),
    f"show {TABLE} --across binding": ("--columns bytes", "--rows 1"),
    f"show {TABLE}": ("--statistic mean",),
    f"plot {APPLICATIONS} --kind speedup": (
        "--sizes 8",
        "--statistic mean",
        "--name foo",
        "--assume ranks=3",
    ),
    f"plot {APPLICATIONS} --kind phases": ("--lines nosuch", "--value p99"),
    f"plot {OVERHEAD} --kind overhead": (
        "--lines binding",
        "--value p99",
        "--statistic mean",
        "--name foo",
    ),
    f"plot {PAIRS} --kind pairs": ("--lines binding", "--value p99", "--statistic mean"),
    f"plot {TABLE} --format text": ("--width 8cm", "--theme dark", "--force"),
    f"check {TABLE} --update new.csv": (
        "--confirm 2",
        "--again x",
        "--launcher x",
        "--timeout 5",
        "--keep runs",
        "--tolerance 5%",
        "--format json",
    ),
    f"check {TABLE} --expected fugaku": ("--launcher x", "--timeout 5", "--keep runs"),
    f"compare {TABLE} {TABLE}": (
        "--bindings native",
        "--ranks 2",
        "--precision 5%",
        "--max-time 5",
        "--rounds 3",
        "--launcher x",
        "--timeout 5",
        "--keep runs",
    ),
    f"compare {TABLE} {TABLE} --summary": ("--format json",),
    "compare --native /bin/true latency": ("--assume ranks=3",),
    f"model {PAIRS} --network net.toml": ("--format json", "--output model.csv"),
    f"simulate --check {TABLE} --network net.toml": (
        "--ranks 4",
        "--ranks-per-node 2",
        "--placement packed",
        "--sizes 8",
        "--library mpich",
        "--coll-algorithm all",
        "--p2p-algorithm all",
        "--root 0",
        "--window 2",
        "--sync clock",
    ),
    "simulate latency --ranks 2": ("--library mpich", "--coll-algorithm all"),
    "simulate barrier --ranks 2": ("--sizes 8",),
    "sweep quick": ("--commands",),
}
"""Options that a mode does not use."""


@pytest.mark.parametrize(
    ("mode", "option"), [(mode, option) for mode, unused in MODES.items() for option in unused]
)
def test_option_that_the_mode_does_not_use_refused(
    in_process: Run, tmp_path: Path, mode: str, option: str
) -> None:
    done = in_process(*shlex.split(mode), *option.split())
    assert_refused(done, 2, option.split()[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (
            f"show {APPLICATIONS} --speedup --across application --columns time_s",
            "time_s by application",
        ),
        (
            f"plot {APPLICATIONS} --kind speedup --where application=kmeans --format text",
            "kmeans: Speed-up",
        ),
    ],
)
def test_option_that_the_mode_uses_is_obeyed(in_process: Run, words: str, found: str) -> None:
    assert found in succeeded(in_process(*shlex.split(words))).out
