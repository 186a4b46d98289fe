"""The configurations that come with omb-py can be used as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.core.errors import UsageError
from omb_py.sweeps import catalog
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.launchers import AUTO, LAUNCHERS
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import plan
from omb_py.sweeps.toml import read
from tests.helpers.refusals import refuses

SWEEPS = sorted(path.stem for path in (catalog.folder() / "sweeps").glob("*.toml"))
MACHINES = sorted(path.stem for path in (catalog.folder() / "machines").glob("*.toml"))


def test_what_is_promised_is_here() -> None:
    sweeps = {"quick", "full", "scaling", "buffers", "paper", "algorithms", "applications"}
    assert sweeps <= set(SWEEPS)
    promised = {"local", "thetagpu", "polaris", "aurora", "generic-pbs", "generic-slurm"}
    assert promised <= set(MACHINES)


@pytest.mark.slow
@pytest.mark.product(strength=1)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_sweep_has_points_on_every_machine(sweep: str, machine: str) -> None:
    where = read(catalog.find("machines", machine), Machine)
    what = read(catalog.find("sweeps", sweep), Sweep)
    assert (what.name, where.name) == (sweep, machine)
    if where.nodes == 1 and sweep == "paper":
        assert {point.nodes for point in plan(what, where).points} == {1}
    points = plan(what, where).points
    assert points
    if where.launcher != AUTO:
        assert where.launcher in LAUNCHERS


def test_a_name_a_path_and_neither(tmp_path: Path) -> None:
    assert catalog.find("sweeps", "quick").name == "quick.toml"
    with refuses(UsageError, "unknown sweep 'quik'; 'quick'"):
        catalog.find("sweeps", "quik")
    with refuses(UsageError, "there is no file"):
        catalog.find("machines", "./quick.toml")
