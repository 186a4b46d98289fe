"""What contrib/ has of the gate for node health checks, Kubernetes and Prometheus."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from omb_py.analysis.gate import output, verdicts
from omb_py.analysis.gate.points import Record
from tests import ROOT

CONTRIB = ROOT / "contrib"

NHC = """
HOSTNAME_S=$2
function die() {
    local RET="$1"; shift
    echo "ERROR:  Health check failed:  $*" >&2
    return "$RET"
}
function dbg() { :; }
function syslog() { :; }
source "$1"
shift 2
check_omb_py_gate "$@"
"""
"""NHC's functions as far as a check needs them: ``die`` reports, and the check returns."""

VERDICTS = """host,point,ratio,limit,turns,beyond,class,verdict
node1,pack,1.0,1.2,3,False,0,ok
node12,pack,2.5,1.2,3,True,0,SLOW
node13,,,,,,,ABSENT
node14#2,pack,2.5,1.2,3,True,0,SLOW
"""


@pytest.mark.parametrize(
    ("node", "hours", "stale", "words"),
    [
        ("node1", 0, "pass", ""),
        ("node12", 0, "pass", "omb-py gate found node12 SLOW"),
        ("node13", 0, "pass", "omb-py gate found node13 ABSENT"),
        ("node14", 0, "pass", "omb-py gate found node14 SLOW"),
        ("node12", 40, "pass", ""),
        ("node1", 40, "fail", "is older than 36 hours"),
    ],
)
def test_nhc_check_reads_a_recent_verdict(
    tmp_path: Path, node: str, hours: int, stale: str, words: str
) -> None:
    file = tmp_path / "gate.csv"
    file.write_text(VERDICTS)
    os.utime(file, (time.time() - 3600 * hours,) * 2)
    script = str(CONTRIB / "nhc" / "omb_py_gate.nhc")
    command = ["bash", "-c", NHC, "nhc", script, node, str(file)]
    own = {"OMB_PY_GATE_STALE": stale, "PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=20)
    assert done.returncode == bool(words)
    assert words in done.stderr


def job_set() -> dict[str, Any]:
    (found,) = yaml.safe_load_all((CONTRIB / "kubernetes" / "jobset.yaml").read_text())
    return dict(found)


def test_job_set_has_what_its_api_requires() -> None:
    """jobset.x-k8s.io/v1alpha2: replicatedJobs of a name and a template of batch/v1's Job."""
    document = job_set()
    assert (document["apiVersion"], document["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    name = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
    assert name.fullmatch(document["metadata"]["name"])
    (replicated,) = document["spec"]["replicatedJobs"]
    assert name.fullmatch(replicated["name"])
    job = replicated["template"]["spec"]
    assert job["completionMode"] == "Indexed"
    assert job["parallelism"] == job["completions"]
    pod = job["template"]["spec"]
    assert pod["restartPolicy"] in ("Never", "OnFailure")
    for one in (*pod["initContainers"], *pod["containers"]):
        assert name.fullmatch(one["name"])
        assert one["image"]
        assert {"name", "value"} == {key for entry in one["env"] for key in entry} or one["env"]


def test_job_set_starts_the_gate_on_all_of_its_pods() -> None:
    document = job_set()
    (replicated,) = document["spec"]["replicatedJobs"]
    job = replicated["template"]["spec"]
    (gate,) = job["template"]["spec"]["initContainers"]
    words = " ".join([*gate["command"], *gate["args"]])
    assert f"--nnodes={job['completions']}" in words
    assert "-m omb_py gate --binding torch" in words
    first = (
        f"{document['metadata']['name']}-{replicated['name']}-0-0.{document['metadata']['name']}"
    )
    assert f"--rdzv-endpoint={first}:" in words


LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (\S+)')


def test_metrics_are_those_of_a_textfile_collector() -> None:
    """One HELP and TYPE of each name before its samples, no timestamps, escaped labels."""
    noise = np.random.default_rng(1).normal(0, 0.01, (3, 40))
    records = [
        Record('pack "8\\', (f"node{host}",), value + (host == 7), "", False, "node")
        for turn in noise
        for host, value in enumerate(turn)
    ]
    text = output.prometheus(verdicts.gated(records))
    lines = text.splitlines()
    assert text.endswith("# EOF\n")
    names, samples = [], {}
    for line in lines[:-1]:
        if line.startswith("# HELP"):
            names.append(line.split()[2])
        elif line.startswith("# TYPE"):
            assert line == f"# TYPE {names[-1]} gauge"
        else:
            found = LINE.fullmatch(line)
            assert found is not None, line
            assert found[1] == names[-1]
            assert (found[1], found[2]) not in samples
            samples[found[1], found[2]] = float(found[3])
    assert len(names) == len(set(names))
    assert samples["omb_py_gate_host_failed", 'host="node7"'] == 1
    assert samples["omb_py_gate_exit_code", None] == 4
