"""A cluster is recognised by what its scheduler's commands print, as they are documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.sweeps.answers import clock_seconds
from omb_py.sweeps.detection import Cluster, detect, gpus_of_slurm
from tests.sweeps.job_scripts import Sandbox

PBSNODES = """\
x1
     Mom = x1
     ntype = PBS
     state = free
     pcpus = 128
     resources_available.arch = linux
     resources_available.host = x1
     resources_available.ncpus = 0
     resources_available.ngpus = 0

x1[0]
     state = free
     resources_available.host = x1
     resources_available.ncpus = 64
     resources_available.ngpus = 2

x1[1]
     state = free
     resources_available.host = x1
     resources_available.ncpus = 64
     resources_available.ngpus = 2

x2
     state = job-exclusive
     resources_available.host = x2
     resources_available.ncpus = 128
     resources_available.ngpus = 4
     comment = ncpus = 3

login
     state = free
     resources_available.ncpus = 16

x3
     state = state-unknown,down
     resources_available.ncpus = 128
     resources_available.ngpus = 4
"""
TORQUE = """\
n1
     state = free
     power_state = Running
     np = 8
     properties = fast
     ntype = cluster
     status = opsys=linux,ncpus=16,state=free
     gpus = 2

n2
     state = job-exclusive
     np = 8
     gpus = 2

n3
     state = offline
     np = 8
"""
BHOSTS = """\
HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV
h1                 ok              -     42      0      0      0      0      0
h2                 closed_Full     -     42     42     42      0      0      0
h3                 unavail         -     42      0      0      0      0      0
batch1             ok              -      8      0      0      0      0      0
"""
SINFO = """\
n1|128|2|32|gpu:a100:4(S:0-1)|idle|gpu*|1-2|1-00:00:00
n2|128|2|32|gpu:a100:4(S:0-1)|mixed|gpu*|1-2|1-00:00:00
n3|128|2|32|gpu:a100:4(S:0-1)|allocated|gpu*|1-2|1-00:00:00
n4|128|2|32|gpu:a100:4(S:0-1)|down*|gpu*|1-2|1-00:00:00
n5|16|1|16|(null)|idle|gpu*|1-2|1-00:00:00
n6|16|1|16|(null)|idle|long|1-infinite|infinite
"""

CASES = [
    pytest.param(
        {"qstat": "echo pbs_version = 2022.1.1", "pbsnodes": f"cat <<'END'\n{PBSNODES}END"},
        Cluster("pbs", "by pbsnodes", nodes=2, cores=128, gpus=4, others=1),
        id="PBS, with nodes in parts",
    ),
    pytest.param(
        {"qstat": "echo 'Version: 6.1.2' >&2", "pbsnodes": f"cat <<'END'\n{TORQUE}END"},
        Cluster("torque", "by pbsnodes", nodes=2, cores=8, gpus=2),
        id="Torque",
    ),
    pytest.param(
        {"qstat": "echo 'version: 2.5.12'; exit 0", "pbsnodes": "exit 1"},
        Cluster("torque", "by pbsnodes"),
        id="Torque that does not tell its nodes",
    ),
    pytest.param(
        {"qstat": "echo 'version: qstat.py $Revision: 406 $, Cobalt $Version$'"},
        Cluster("cobalt", "by qstat"),
        id="Cobalt",
    ),
    pytest.param(
        {"qstat": "exit 2", "cqstat": ""}, Cluster("cobalt", "by cqstat"), id="an old Cobalt"
    ),
    pytest.param(
        {"qstat": "echo 'Version: 6.1.2'", "cqstat": "", "pbsnodes": "exit 1"},
        Cluster("torque", "by pbsnodes"),
        id="Torque beside a cqstat",
    ),
    pytest.param(
        {"lsid": "echo IBM Spectrum LSF 10.1.0.13", "bhosts": f"cat <<'END'\n{BHOSTS}END"},
        Cluster("lsf", "by bhosts", nodes=2, cores=42, others=1),
        id="LSF",
    ),
    pytest.param(
        {"flux": "echo 4 128 16"},
        Cluster("flux", "by flux resource list", nodes=4, cores=32, gpus=4),
        id="Flux",
    ),
    pytest.param(
        {"sinfo": f"cat <<'END'\n{SINFO}END", "qstat": "echo Version: 6", "qsub": ""},
        Cluster(
            *("slurm", "by sinfo", 2, 64, 4),
            others=1,
            queue="gpu",
            walltime=86400.0,
        ),
        id="Slurm, which has a qsub too",
    ),
]


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A PATH on which there is no scheduler yet."""
    made = Sandbox(tmp_path)
    made.enter(monkeypatch, schedulers=False)
    return made


@pytest.mark.parametrize(("programs", "found"), CASES)
def test_a_scheduler_is_detected_with_its_nodes(
    sandbox: Sandbox, programs: dict[str, str], found: Cluster
) -> None:
    for name, then in programs.items():
        sandbox.stand_in(name, then)
    assert detect() == found
    assert detect(found.scheduler) == found


def test_a_scheduler_that_is_not_here_tells_nothing(sandbox: Sandbox) -> None:
    sandbox.stand_in("flux", "echo 'flux: unable to connect' >&2; exit 1")
    sandbox.stand_in("sinfo", "exit 1")
    assert detect().scheduler == "none"
    for scheduler in ("pbs", "slurm", "lsf", "flux", "torque", "cobalt"):
        assert detect(scheduler) == Cluster(scheduler, "")


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("(null)", 0),
        ("gpu:4", 4),
        ("gpu:a100:4(S:0-1)", 4),
        ("gpu:a100:2,gpu:v100:1,nic:3", 3),
        ("craynetwork:4", 0),
        ("shard:gpu:8", 0),
    ],
)
def test_gpus_among_resources_of_slurm(text: str, gpus: int) -> None:
    assert gpus_of_slurm(text) == gpus


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1-00:00:00", 86400), ("2:00:00", 7200), ("30:00", 1800), ("infinite", None), ("n/a", None)],
)
def test_time_limits_of_slurm(text: str, seconds: float | None) -> None:
    assert clock_seconds(text) == seconds
