"""The application for Ramble measures what it says, and its expressions find the figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from omb_py.benchmarks import all_benchmarks
from omb_py.core import VERSION
from omb_py.results.columns import Row
from tests import ROOT
from tests.conftest import BIN, run, succeeded
from tests.helpers.figures_of_merit import Figure, extract
from tests.helpers.reading import objects
from tests.helpers.recipes import Recipe, ramble_application
from tests.packages import project

FOLDER = ROOT / "contrib" / "ramble"
REPOSITORY = FOLDER / "repos" / "omb_py"
WORKLOADS = {
    "latency": {"Latency", "P50 of Iterations", "P99 of Iterations"},
    "mbw_mr": {"Bandwidth", "Message Rate"},
    "iallreduce": {"Latency", "Overall", "Compute", "Overlap"},
    "barrier": {"Latency", "Latency of the Slowest Rank"},
    "init": {"Latency", "Latency of the Fastest Rank"},
}
"""Workloads, one of each kind, and figures that they have."""


@pytest.fixture(scope="module")
def application() -> Recipe:
    return ramble_application(REPOSITORY / "applications" / "omb-py" / "application.py")


def variables(application: Recipe, workload: str) -> dict[str, str]:
    """The defaults of a workload's variables."""
    return {
        one.arguments[0]: one.options["default"]
        for one in application.named("workload_variable")
        if workload in one.options["workloads"]
    }


def figures(application: Recipe) -> list[Figure]:
    """The application's figures of merit, each of the message size."""
    contexts = {
        one.arguments[0]: one.options["regex"]
        for one in application.named("figure_of_merit_context")
    }
    return [
        Figure(
            one.arguments[0],
            one.options["fom_regex"],
            one.options["group_name"],
            *(contexts[name] for name in one.options.get("contexts", ())),
        )
        for one in application.named("figure_of_merit")
    ]


def command(application: Recipe, workload: str, given: dict[str, str]) -> list[str]:
    """The words of a workload's command, its variables expanded as Ramble expands them."""
    (executable,) = application.named("executable")
    values = variables(application, workload) | {"workload_name": workload} | given
    text = executable.arguments[1]
    while "{" in text:
        text = text.format_map(values)
    return str(text).split()


def test_workloads_are_the_benchmarks_of_native_omb(application: Recipe) -> None:
    names = [one.arguments[0] for one in application.named("workload")]
    assert sorted(names) == sorted(one.name for one in all_benchmarks() if one.native)
    assert {one.options["executable"] for one in application.named("workload")} == {"measure"}


def test_figures_are_columns_of_the_rows(application: Recipe) -> None:
    columns = [column for column, _ in application.namespace["FIGURES"].values()]
    assert [name for name in columns if name not in Row.columns] == []


def test_pip_installs_a_wheel_and_not_the_project_of_that_name_on_pypi(application: Recipe) -> None:
    (found,) = application.named("software_spec")
    assert found.when == ("package_manager_family=pip",)
    ramble = yaml.safe_load((FOLDER / "ramble.yaml").read_text())["ramble"]
    wheel = ramble["variables"]["omb_py_wheel"]
    assert Path(wheel).name == f"omb_python-{VERSION}-py3-none-manylinux_2_17_x86_64.whl"
    for spec in (found.options["pkg_spec"], ramble["software"]["packages"]["omb-py"]["pkg_spec"]):
        requirement = Requirement(spec.replace("{omb_py_wheel}", wheel))
        assert (requirement.name, requirement.url) == ("omb-python", f"file://{wheel}")
        assert requirement.extras <= set(project()["optional-dependencies"])


def test_the_workspace_names_what_the_application_has(application: Recipe) -> None:
    ramble = yaml.safe_load((FOLDER / "ramble.yaml").read_text())["ramble"]
    ((name, one),) = ramble["applications"].items()
    assert name == application.namespace["OmbPy"].name
    known = {one.arguments[0] for one in application.named("workload")}
    assert set(one["workloads"]) <= known
    for workload, settings in one["workloads"].items():
        for experiment in settings["experiments"].values():
            own = set(experiment["variables"]) - {"processes_per_node"}
            assert own <= set(variables(application, workload))
    assert ramble["software"]["environments"][name]["packages"] == list(
        ramble["software"]["packages"]
    )
    assert yaml.safe_load((REPOSITORY / "repo.yaml").read_text())["repo"]["namespace"] == "omb_py"


@pytest.mark.long
@pytest.mark.parametrize("workload", WORKLOADS)
def test_figures_are_found(application: Recipe, mpi: str, tmp_path: Path, workload: str) -> None:
    quick = "" if workload == "init" else "-i 20 -x 2"
    given = {"experiment_run_dir": str(tmp_path), "additional_args": quick}
    if "message_sizes" in variables(application, workload):
        given["message_sizes"] = "4:8"
    _, *words = command(application, workload, given)
    succeeded(run([mpi, "-n", "2", str(BIN / "omb-py"), *words], {}, tmp_path, timeout=120))
    text = (tmp_path / "rows.json").read_text()
    (criterion,) = application.named("success_criteria")
    assert any(re.match(criterion.options["match"], line) for line in text.splitlines())
    found = extract(text, figures(application))
    sizes = ("4", "8") if "message_sizes" in given else ("",)
    assert {size for size, _ in found} <= {"", *sizes}
    rows: list[dict[str, Any]] = [row for row in objects(text) if "benchmark" in row]
    for row, size in zip(rows, sizes, strict=True):
        for name in WORKLOADS[workload]:
            column, _ = application.namespace["FIGURES"][name]
            assert float(found[size, name]) == row[column]
    assert found["", "Version"]
    assert found["", "MPI Library"]


def test_a_file_that_stops_early_is_no_success(application: Recipe) -> None:
    (criterion,) = application.named("success_criteria")
    assert not re.match(criterion.options["match"], '{"benchmark": "latency", "percentiles": {}},')
