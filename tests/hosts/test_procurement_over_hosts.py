"""What centres ask of offers, filled in by one command on three hosts; the transport is named."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from omb_py.results.metadata import TCP
from omb_py.sweeps import catalog
from omb_py.sweeps.table import NAME
from tests.conftest import OMB_PY, run
from tests.hosts.jobs import OPEN_MPI, job
from tests.hosts.test_hosts import comments
from tests.hosts.virtual_hosts import Hosts

MACHINE = """\
name = "three"
launcher = "{launcher}"
host_file = "{host_file}"
nodes = 3
cores_per_node = 1
nics_per_node = 1
oversubscribe = true
"""
OTHER_FILES = ("HYDRA_HOST_FILE", "PRTE_MCA_prte_default_hostfile")


@pytest.mark.long
def test_procurement_sweep_fills_its_table_on_three_hosts(near: Hosts, tmp_path: Path) -> None:
    text = (catalog.folder() / "sweeps" / "procurement.toml").read_text()
    short = re.sub(r"max_time = \d+", "max_time = 0.5", text).replace('"25M"', '"1M"')
    short = re.sub(r"(?m)^sizes = 8$", "sizes = 8\noptions = { max_time = 0.5 }", short)
    (tmp_path / "procurement.toml").write_text(short.replace("64M", "1M"))
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{host.name}\n" for host in near.hosts))
    launcher = "openmpi" if OPEN_MPI else "mpich"
    (tmp_path / "three.toml").write_text(MACHINE.format(launcher=launcher, host_file=hosts))
    words = ["sweep", "./procurement.toml", "--machine", "./three.toml", "--folder", "asked"]
    environment = {k: v for k, v in near.environment.items() if k not in OTHER_FILES}
    done = run(near.first.inside([OMB_PY, *words], tmp_path), environment, tmp_path, timeout=240)
    assert done.code == 0, done.out + done.err
    rows = list(csv.DictReader((tmp_path / "asked" / NAME).read_text().splitlines()))
    assert {row["title"] for row in rows} == {
        *("NERSC-10, UKRI, LANL ATS", "NERSC-10, UKRI", "LANL ATS", "JUPITER")
    }
    assert all(float(row["value"]) > 0 for row in rows), done.out
    assert {row["part"] for row in rows} == {"", "near", "far"}
    assert "machine three has no GPUs" in done.out


@pytest.mark.every_library
def test_messages_between_hosts_have_their_transport_in_metadata(
    near: Hosts, tmp_path: Path
) -> None:
    done = job(near, 2, 1, "latency", "--sizes", "8", "-i", "5", "-o", "r.csv", folder=tmp_path)
    assert done.code == 0, done.err
    assert TCP in comments(tmp_path / "r.csv")["transport"]
    within = job(near, 2, 2, "latency", "--sizes", "8", "-i", "5", "-o", "w.csv", folder=tmp_path)
    assert within.code == 0, within.err
    assert TCP not in comments(tmp_path / "w.csv")["transport"]
