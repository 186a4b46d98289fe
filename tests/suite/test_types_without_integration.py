"""make lint runs without the group `integration`: mypy must need none of its packages."""

from __future__ import annotations

import ast
import sys
import tomllib
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = ("lint", "docs", "test")  # as in the Makefile's .checked-with
EXTRAS = ("mpich", "openmpi", "sweep", "analysis", "apps")


def modules_imported() -> dict[str, str]:
    """A file for each name of a package that mypy's files import."""
    files: dict[str, str] = {}
    for name in PYPROJECT["tool"]["mypy"]["files"]:
        paths = [ROOT / name] if name.endswith(".py") else sorted((ROOT / name).rglob("*.py"))
        for path in paths:
            for node in ast.walk(ast.parse(path.read_text())):
                for module in modules_of(node):
                    files.setdefault(module.split(".")[0], str(path.relative_to(ROOT)))
    return files


def modules_of(node: ast.AST) -> list[str]:
    """Modules that a statement imports, without relative ones."""
    match node:
        case ast.Import(names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
    return []


def distributions(requirements: list[str]) -> set[str]:
    """Distributions that requirements bring, with what these need in turn."""
    waiting = [(Requirement(one), "") for one in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        for extra in {"", *requirement.extras} - {one for known, one in seen if known == name}:
            seen.add((name, extra))
            waiting += [(Requirement(one), extra) for one in needs(name)]
    return {name for name, _ in seen}


def needs(name: str) -> list[str]:
    """The requirements of an installed distribution; none if it is not, as the other MPI's."""
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def installed_for_lint() -> set[str]:
    """Distributions of an environment in which make lint is all that ran."""
    project = PYPROJECT["project"]
    named: list[str] = [*project["dependencies"]]
    for extra in EXTRAS:
        named += project["optional-dependencies"][extra]
    for group in GROUPS:
        named += PYPROJECT["dependency-groups"][group]
    return distributions(named)


@pytest.mark.long
def test_mypy_needs_no_package_of_the_group_integration() -> None:
    """Such a package is an override of mypy's: an import without it is no error."""
    pytest.importorskip("mypy")  # make test-lowest has no group `lint`
    overrides = PYPROJECT["tool"]["mypy"]["overrides"][0]["module"]
    at_lint, owners = installed_for_lint(), metadata.packages_distributions()
    ours = {"omb_py", "tests", "perf", "docs", "hatch_build"}
    ours |= {path.stem for path in (ROOT / "tests" / "plugin").glob("*.py")}
    needed = {
        name: file
        for name, file in modules_imported().items()
        if name not in ours | sys.stdlib_module_names
        and not at_lint & {canonicalize_name(one) for one in owners.get(name, [])}
        and not any(fnmatch(f"{name}.", pattern) for pattern in overrides)
    }
    assert not needed, "add them to tool.mypy.overrides of pyproject.toml"
