"""ReFrame's tests of native OMB pass with omb-py's programs, and those in contrib/ with omb-py."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli.programs import command as programs
from omb_py.measure.gate_turns import copied_size
from tests import ROOT
from tests.conftest import ENVIRONMENT, MPIEXEC, own_temporary_folder

pytestmark = [pytest.mark.usefixtures("mpi"), pytest.mark.any_library]

LIBRARY = ROOT / "contrib" / "reframe"

SITE = """
site_configuration = {
    "systems": [
        {
            "name": "here",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "cpus",
                    "scheduler": "local",
                    "launcher": "mpiexec",
                    "environs": ["builtin"],
                    "processor": {"num_cpus": 2},
                }
            ],
        }
    ],
    "general": [{"resolve_module_conflicts": False, "report_file": "report.json"}],
}
"""


def reframe(folder: Path, checks: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Run tests one after another: the exit code, and what the report says of each of them."""
    (folder / "site.py").write_text(SITE)
    environment = {
        "PATH": f"{folder}:{Path(MPIEXEC).parent}:{os.environ['PATH']}",
        "RFM_AUTODETECT_METHODS": "py::socket.gethostname",
        "HOME": str(folder),
    }
    command = [
        str(Path(sys.executable).with_name("reframe")),
        "-C",
        "site.py",
        "-c",
        str(checks),
        "-r",
    ]
    command += ["--exec-policy", "serial", "--prefix", str(folder / "runs"), *words]
    with own_temporary_folder() as own:
        done = subprocess.run(
            command,
            cwd=folder,
            env=own | ENVIRONMENT | environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    report = folder / "report.json"
    assert report.exists(), done.stdout + done.stderr
    return done.returncode, json.loads(report.read_text())["runs"][0]["testcases"]


def failures(cases: list[dict[str, Any]]) -> dict[str, str]:
    """Why tests failed, by name."""
    return {case["name"]: str(case["fail_reason"]) for case in cases if case["result"] != "pass"}


@pytest.mark.long
@pytest.mark.parametrize("tests", ["OfReFrame", "OfEessi"])
def test_tests_of_native_omb_pass(tmp_path: Path, tests: str) -> None:
    programs.main([str(tmp_path)], standalone_mode=False)
    code, cases = reframe(tmp_path, Path(__file__).with_name("osu_checks.py"), "-n", tests)
    assert failures(cases) == {}
    assert (code, len(cases)) == (0, 4)


FEW = ("-S", "omb_py.num_iters=10", "-S", "omb_py.num_warmup_iters=2")


@pytest.mark.long
def test_tests_of_omb_py_pass_and_are_compared_with_references(tmp_path: Path) -> None:
    checks = shutil.copytree(LIBRARY, tmp_path / "checks")
    known = {
        "latency bytes=8 buffer=numpy binding=buffer": [1e-6, None, 0.1, "us"],
        "allreduce buffer=numpy binding=buffer": [1e6, None, 0.1, "us"],
        "allreduce buffer=numpy binding=native": [1e-6, None, 0.1, "us"],
    }
    (checks / "references.json").write_text(json.dumps({"here:cpus": known}))
    code, cases = reframe(
        tmp_path, checks / "omb_py_checks.py", *FEW, "-n", "benchmark=.*binding=buffer"
    )
    assert len(cases) == 4
    failed = failures(cases)
    assert code == 1
    ((name, reason),) = failed.items()
    assert "benchmark=latency" in name
    assert "1e-06" in reason
    for case in cases:
        assert next(iter(case["perfvalues"].values()))[0] > 0


@pytest.mark.long
def test_one_launch_has_a_value_of_each_benchmark(tmp_path: Path) -> None:
    words = ("-S", "omb_py_suite.num_iters=10", "-n", "omb_py_suite")
    code, cases = reframe(tmp_path, LIBRARY / "omb_py_checks.py", *words)
    assert failures(cases) == {}
    assert (code, len(cases)) == (0, 2)
    for case in cases:
        names = {name.rpartition(":")[2] for name in case["perfvalues"]}
        assert names == {"latency", "bw", "allreduce", "alltoall"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("expected", "reason"),
    [(1e9, ""), (1e-3, "FAIL: 0 of 1 host fine"), (None, "CANNOT TELL: 0 of 1 host fine")],
)
def test_gate_fails_by_its_verdict(tmp_path: Path, expected: float | None, reason: str) -> None:
    """A single host is compared with expected values only."""
    point = {f"pack bytes={copied_size(1)} split=node": [expected, None, 0.1, "us"]}
    (tmp_path / "site.json").write_text(json.dumps({"here": point}))
    options = "--time,10s,--timeout,60"
    options += f",--expected,{tmp_path}/site.json" if expected else ""
    words = ("-S", "omb_py_gate.num_tasks=1", "-S", f"omb_py_gate.gate_options={options}")
    code, cases = reframe(tmp_path, LIBRARY / "omb_py_checks.py", *words, "-n", "omb_py_gate")
    assert code == bool(reason)
    assert [reason in text for text in failures(cases).values()] == [True] * bool(reason)


OWN = """
import reframe as rfm
from omb_py_checks import omb_py_benchmark

@rfm.simple_test
class mine(omb_py_benchmark):
    benchmark = "latency"
    buffer = "numpy"
    binding = "corrupting"
    num_iters = 10
"""


def test_wrong_data_fail_a_test_which_may_be_of_ones_own(tmp_path: Path) -> None:
    checks = shutil.copytree(LIBRARY, tmp_path / "checks")
    (checks / "mine.py").write_text(OWN)
    code, cases = reframe(tmp_path, checks / "mine.py")
    (reason,) = failures(cases).values()
    assert code == 1
    assert "omb-py ended with exit code 1" in reason
    (said,) = (tmp_path / "runs" / "stage").rglob("rfm_job.err")
    assert "omb-py: wrong data in latency" in said.read_text()
