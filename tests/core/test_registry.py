"""The three axes grow without an edit: a module, a table row or an entry point is enough."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omb_py.apps import APPLICATIONS
from omb_py.benchmarks import BENCHMARK_MODULES, all_benchmarks, find_benchmark
from omb_py.bindings import BINDINGS
from omb_py.buffers import BUFFERS
from omb_py.core.errors import UsageError
from omb_py.core.registry import Registry
from omb_py.results.readers import READERS
from tests import ROOT
from tests.conftest import Run
from tests.helpers.refusals import assert_refused


@pytest.mark.parametrize("axis", [BUFFERS, BINDINGS, BENCHMARK_MODULES, APPLICATIONS, READERS])
def test_modules_are_members(axis: Registry) -> None:
    modules = list(ROOT.joinpath(*axis.package.split(".")).glob("[!_]*.py"))
    assert axis.builtin() == sorted(path.stem for path in modules)
    for path in modules:
        assert re.search(rf"^{axis.attribute}\b.* = ", path.read_text(), re.MULTILINE), path


def test_an_unknown_name_lists_the_known_ones() -> None:
    names = ", ".join(BUFFERS.names())
    assert "numpy, " in names
    with pytest.raises(UsageError, match=f"unknown buffer 'cuda': choose from {names}$"):
        BUFFERS.load("cuda")


@pytest.mark.parametrize("name", ["", ".", "../x", "__init__", "a.b", "os;rm"])
def test_a_name_is_nothing_but_a_name(name: str) -> None:
    with pytest.raises(UsageError):
        BUFFERS.load(name)


@pytest.mark.parametrize(
    ("axis", "name"),
    [(BUFFERS, "device"), (BUFFERS, "plugins"), (BINDINGS, "machine"), (BINDINGS, "transports")],
)
def test_a_folder_of_the_package_is_no_member(axis: Registry, name: str) -> None:
    with pytest.raises(UsageError, match=f"unknown {axis.kind} '{name}': choose from"):
        axis.load(name)


def test_benchmarks_have_names_of_their_own() -> None:
    names = [benchmark.name for benchmark in all_benchmarks()]
    assert len(set(names)) == len(names)
    for name in names:
        assert find_benchmark(name.replace("_", "-")).name == name
        assert find_benchmark(f"osu_{name}").name == name


@pytest.mark.parametrize("binding", ["buffer", "pickle", "native"])
def test_a_buffer_from_outside_the_package(mpiexec: Run, tmp_path: Path, binding: str) -> None:
    job = mpiexec(
        *(2, "alltoall", "--sizes", "8,4096", "-i", "2", "-c", "--buffer", "mapped"),
        *("--binding", binding, "--output", "rows.csv"),
    )
    assert job.code == 0, job.err
    assert all("Pass" in row for row in job.rows)
    assert "# mapped: 1.0" in (tmp_path / "rows.csv").read_text()


def test_a_binding_from_outside_the_package(mpiexec: Run) -> None:
    job = mpiexec(
        *(2, "bw", "--sizes", "8", "-i", "2", "-c", "--binding", "corrupting"),
        OMB_TEST_RANK="7",
        OMB_TEST_OFFSET="0",
    )
    assert job.code == 0, job.err
    assert "binding corrupting" in job.out


def test_a_library_that_is_not_installed_is_named(mpiexec: Run, tmp_path: Path) -> None:
    folder = tmp_path / "half-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: half\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[omb_py.buffers]\nhalf = half:BUFFER\n")
    (tmp_path / "half.py").write_text("import a_library_that_nobody_has\n")
    job = mpiexec(2, "latency", "--buffer", "half", PYTHONPATH=str(tmp_path))
    assert_refused(job, 8, "buffer half package a_library_that_nobody_has")
