"""Workflows of the code host: what they run exists, and they agree with each other and the project.

`actionlint` checks their syntax where `make lint` finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.packages import project

WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, workflow in WORKFLOWS.items():
        for job, content in workflow["jobs"].items():
            yield f"{name} {job}", content


def steps() -> Iterator[dict[str, Any]]:
    for _, job in jobs():
        yield from job.get("steps", [])


def test_programs_that_steps_run_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {
        name for names in re.findall(r"^([\w -]+):", makefile, re.M) for name in names.split()
    }
    run = "\n".join(step["run"] for step in steps() if "run" in step)
    wanted = re.findall(r"\bmake ((?:[a-z][\w-]*\b ?)+)", run.replace("${{ matrix.mpi }}", "mpich"))
    assert wanted
    assert {name for names in wanted for name in names.split()} <= targets
    assert all((ROOT / name).is_file() for name in re.findall(r"\.ci/\w+", run))


def test_an_action_has_one_version_everywhere() -> None:
    used = {step["uses"] for step in steps() if "uses" in step}
    assert len({name.partition("@")[0] for name in used}) == len(used)


def test_each_python_of_the_classifiers_is_tested() -> None:
    version = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    classified = [
        match[1] for text in project()["classifiers"] if (match := version.fullmatch(text))
    ]
    assert WORKFLOWS["check.yml"]["jobs"]["units"]["strategy"]["matrix"]["python"] == classified


@pytest.mark.parametrize(
    ("name", "job"), list(jobs()), ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_job_ends_in_time_and_starts_after_what_it_needs(name: str, job: dict[str, Any]) -> None:
    needs = job.get("needs", [])
    known = WORKFLOWS[name.split()[0]]["jobs"]
    assert set([needs] if isinstance(needs, str) else needs) <= set(known)
    assert "timeout-minutes" in job or Path(job["uses"]).is_relative_to(".github/workflows")


def test_nothing_is_published_untested() -> None:
    known = WORKFLOWS["release.yml"]["jobs"]
    assert known["test"]["uses"] == "./.github/workflows/check.yml"
    assert {"test", "build"} <= set(known["publish"]["needs"])
    for name, job in known.items():
        if "write" in job.get("permissions", {}).values() and name != "publish":
            assert "publish" in job["needs"], name
