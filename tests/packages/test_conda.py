"""The recipe for conda-forge has what pyproject.toml says."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from omb_py.core import VERSION
from tests import ROOT
from tests.packages import project

EXTRAS = ("sweep", "analysis")


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    """The recipe, its variables put in as rattler-build does."""
    text = (ROOT / "contrib" / "conda-forge" / "recipe.yaml").read_text(encoding="utf-8")
    context = yaml.safe_load(text)["context"]
    filled = re.sub(r"\${{ (\w+) }}", lambda found: context.get(found[1], found[1]), text)
    return dict(yaml.safe_load(filled))


def in_conda(text: str) -> str:
    """A requirement as conda's; noarch packages have no markers."""
    requirement = Requirement(text)
    return f"{requirement.name} {requirement.specifier}"


def test_it_requires_what_the_project_requires(recipe: dict[str, Any]) -> None:
    python = project()["requires-python"]
    wanted = [f"python {python}", *map(in_conda, project()["dependencies"])]
    assert recipe["requirements"]["run"] == wanted
    assert f"python {python.removeprefix('>=')}.*" in recipe["requirements"]["host"]


def test_it_keeps_extras_to_versions_that_the_project_takes(recipe: dict[str, Any]) -> None:
    extras = project()["optional-dependencies"]
    wanted = {in_conda(text) for extra in EXTRAS for text in extras[extra]}
    assert set(recipe["requirements"]["run_constraints"]) == wanted


def test_version_licence_and_command_are_the_project_s(recipe: dict[str, Any]) -> None:
    assert recipe["package"] == {"name": project()["name"], "version": VERSION}
    assert recipe["about"]["summary"] == project()["description"]
    assert recipe["about"]["license"] == project()["license"]
    assert recipe["about"]["license_file"] == project()["license-files"]
    ((name, function),) = project()["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {function}"]
