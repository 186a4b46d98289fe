"""Spack's recipe has what pyproject.toml says, and its stand-alone tests pass on real ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests import ROOT
from tests.conftest import BIN
from tests.packages import project
from tests.packages.recipes import Recipe, installed, spack_package

RECIPE = ROOT / "contrib" / "spack" / "packages" / "py-omb-python" / "package.py"
EXTRAS = {"+sweep": "sweep", "+analysis": "analysis", "+cuda": "cu12"}
"""Each variant's extra of pyproject.toml."""
NOT_IN_SPACK = {"numba-cuda"}
TESTS = ("test_latency", "test_allreduce", "test_native")


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return spack_package(RECIPE)


def test_it_is_the_same_before_spack_1(recipe: Recipe) -> None:
    assert spack_package(RECIPE, before_1=True).directives == recipe.directives


def in_spack(text: str) -> str:
    """A requirement as Spack's."""
    requirement = Requirement(text)
    name = requirement.name.removesuffix("-cuda12x")
    lowest = [one.version for one in requirement.specifier if one.operator == ">="]
    return f"py-{name}" + (f"@{lowest[0]}:" if lowest else "")


def test_it_depends_on_what_the_project_requires(recipe: Recipe) -> None:
    wanted = {("", in_spack(text), "") for text in project()["dependencies"]}
    for variant, extra in EXTRAS.items():
        for text in project()["optional-dependencies"][extra]:
            if Requirement(text).name not in NOT_IN_SPACK:
                wanted.add((variant, in_spack(text), ""))
    wanted.add(("", f"python@{project()['requires-python'].removeprefix('>=')}:", ""))
    found = set()
    for one in recipe.named("depends_on"):
        (spec,) = one.arguments
        if one.options["type"] == ("build", "run") and "cuda_arch" not in spec:
            variants = [text for text in one.when if text in EXTRAS]
            others = [text for text in one.when if text not in EXTRAS]
            found.add(("".join(variants), spec, "".join(others)))
    assert found == wanted


def test_versions_that_the_project_excludes_are_in_conflict(recipe: Recipe) -> None:
    excluded = {
        f"^{in_spack(text).partition('@')[0]}@{one.version}"
        for extra in EXTRAS.values()
        for text in project()["optional-dependencies"][extra]
        for one in Requirement(text).specifier
        if one.operator == "!="
    }
    assert excluded
    assert excluded <= {one.arguments[0] for one in recipe.named("conflicts")}


@pytest.mark.parametrize("name", TESTS)
def test_the_stand_alone_tests_pass(recipe: Recipe, mpi: str, name: str) -> None:
    package: Any = recipe.namespace["PyOmbPython"]
    assert tuple(one for one in vars(package) if one.startswith("test_")) == TESTS
    one = installed(package, prefix=BIN.parent, mpi=Path(mpi), satisfied={"+sweep"})
    getattr(one, name)()
