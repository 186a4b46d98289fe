"""The application for Ramble measures what it says, and its expressions find the figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from omb_py.benchmarks import all_benchmarks
from tests import ROOT
from tests.conftest import BIN, run, succeeded
from tests.helpers.figures_of_merit import Figure, extract
from tests.helpers.reading import objects
from tests.packages.recipes import Recipe, ramble_application

APPLICATION = ROOT / "contrib" / "ramble" / "repos" / "omb_py" / "applications" / "omb-py"
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
    return ramble_application(APPLICATION / "application.py")


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
