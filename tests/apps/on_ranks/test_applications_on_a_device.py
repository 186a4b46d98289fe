"""Applications on device memory: staged through the host, on stand-ins for the driver and CuPy.

This shows that kernels keep the arrays of the device apart from those of the host, call nothing
that CuPy lacks, and copy what MPI moves; never what a device does with it.
"""

from __future__ import annotations

import pytest

from tests.apps.on_ranks.test_applications import QUICK, SMALL, problems
from tests.helpers.battery import Battery, Line, completed, each_line, line
from tests.helpers.refusals import missing

ON_DEVICE = f"{QUICK} --buffer cupy"


RESIDUAL = "train --model resnet20 --samples 12 --batch 8 --epochs 1"
PIPELINES = [
    f"{RESIDUAL} --strategy hybrid --schedule 1f1b",
    f"{RESIDUAL} --strategy hybrid --sample-time 0.1",
    f"train --model mobilenet --samples 4 --batch 4 --epochs 1 {QUICK}",
]


@pytest.mark.product(strength=1)
@each_line(
    (
        line(ranks, f"{problem} {ON_DEVICE} --staging")
        for ranks in (1, 2, 4)
        for name in SMALL
        for problem in problems(name)
    ),
    (line(4, f"{problem} {ON_DEVICE} --staging") for problem in PIPELINES),
)
def test_the_host_is_kept_apart(on_cupy: Battery, line: Line) -> None:
    record = completed(on_cupy(line))
    (whole,) = record.measured
    assert whole["check"] == "Pass"


@each_line(line(2, f"matmul {ON_DEVICE}"))
def test_unaware_library_without_staging_refused(on_cupy: Battery, line: Line) -> None:
    record = on_cupy(line)
    assert record.code == 8
    assert not missing("memory device", record.error)
