"""The gate where sites use it on Slurm: a prolog, a health check, and a nightly job."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from omb_py.measure.gate_turns import copied_size
from tests import ROOT
from tests.conftest import BIN, ENVIRONMENT, run
from tests.schedulers import slurm_cluster
from tests.schedulers.batch import Slurm, output, submit, wait_for_end, wait_until
from tests.schedulers.fixtures import with_the_suite

pytestmark = [
    pytest.mark.any_library,
    pytest.mark.slow,
    pytest.mark.skipif(bool(slurm_cluster.missing_programs()), reason="no Slurm here"),
]

CONTRIB = ROOT / "contrib" / "slurm"
PROLOG = CONTRIB / "omb-py-gate-prolog"


def references(folder: Path, microseconds: float) -> Path:
    """Expected values of one node, its copies in at most so many times."""
    point = f"pack bytes={copied_size(1)} split=node"
    path = folder / "node.json"
    path.write_text(json.dumps({"here": {point: [microseconds, None, 0.5, "us"]}}))
    return path


def configured(folder: Path, microseconds: float) -> Path:
    """The file by which the prolog finds omb-py and its values."""
    path = folder / "omb-py-gate"
    lines = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": ENVIRONMENT.get("PYTHONPATH", str(ROOT)),
        "OMB_PY_GATE_EXPECTED": str(references(folder, microseconds)),
        "OMB_PY_GATE_TIME": "15",
        "OMB_PY_GATE_LOG": str(folder / "log"),
    }
    path.write_text("".join(f"export {name}='{value}'\n" for name, value in lines.items()))
    return path


@pytest.mark.long
@pytest.mark.parametrize(
    ("microseconds", "said"),
    [(1e9, ""), (1e-3, "scontrol update NodeName=n7 State=DRAIN Reason='omb-py gate: ")],
)
def test_prolog_prints_what_to_drain(tmp_path: Path, microseconds: float, said: str) -> None:
    own = {
        "OMB_PY_GATE_CONFIG": str(configured(tmp_path, microseconds)),
        "OMB_PY_GATE_STRICT": "1",
        "SLURMD_NODENAME": "n7",
        "SLURM_NTASKS": "64",
    }
    done = run([str(PROLOG)], own | {"PATH": os.environ["PATH"]}, tmp_path, timeout=60)
    assert done.out.startswith(said), done.err
    assert done.code == (4 if said else 0)
    assert (tmp_path / "log").exists() == bool(said)


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """A cluster whose nodes are checked before each job and between jobs."""
    wrapper = tmp_path / "check.sh"
    config = configured(tmp_path, 1e-3)
    wrapper.write_text(f"#!/bin/sh\nOMB_PY_GATE_CONFIG={config} exec {PROLOG}\n")
    wrapper.chmod(0o755)
    more = f"Prolog={wrapper}\nPrologFlags=Alloc\nHealthCheckProgram={wrapper}\n"
    more += "HealthCheckInterval=3600\nBatchStartTimeout=60\n"
    monkeypatch.setattr(slurm_cluster, "CONFIGURATION", slurm_cluster.CONFIGURATION + more)
    with slurm_cluster.cluster(tmp_path / "cluster") as environment:
        yield with_the_suite(environment)


@pytest.mark.long
def test_slurm_runs_the_checks_and_the_nightly_job(checked: Slurm, tmp_path: Path) -> None:
    night = str(CONTRIB / "omb-py-gate-nightly.sh")
    own = {"OMB_PY_GATE_FOLDER": str(tmp_path / "nights"), "OMB_PY_GATE_OPTIONS": "--time 15s"}
    job = submit(checked, tmp_path, "sbatch", "--nodes=2", night, **own)
    wait_for_end(checked, job, 200)
    log = tmp_path / "log"
    wait_until(log.exists, 60, lambda: output(tmp_path, job))
    for node in slurm_cluster.NODES:
        assert f"scontrol update NodeName={node} State=DRAIN" in log.read_text()
    states = checked.run("sinfo", "--noheader", "--Node", "--format=%T").split()
    assert set(states) <= {"idle", "completing"}
    said = output(tmp_path, job)
    assert "series of 1 run" in said, said
    (kept,) = (tmp_path / "nights").glob("20*/gate.csv")
    assert "# turn: complete" in kept.read_text()
