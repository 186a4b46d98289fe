"""MPI libraries of a machine: points of each, what starts them, and which are here."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps.libraries import Software, installation, installations, of_modules
from omb_py.sweeps.libraries_here import Candidate, Found, LibrariesHere, candidates, modules_in
from omb_py.sweeps.machine import Library, Machine
from omb_py.sweeps.points import launched_together, plan
from tests.helpers.refusals import refuses
from tests.sweeps.configs import machine, sweep

TWO = {"mpich": {"virtual_environment": "one"}, "openmpi": {"virtual_environment": "two"}}

MODULE = """() {
    if [ "$1" = use ]; then export USED="$USED:$2"; return; fi
    if [ "$1" = -t ]; then printf 'gcc/12\\nopenmpi/5.0(default)\\nmpich/5\\n' >&2; return; fi
    [ "$2" = openmpi/5.0 ] || { echo "Unable to locate a modulefile for '$2'" >&2; return 1; }
    export PATH="/soft/openmpi/bin:$PATH" OPENMPI_HOME=/soft/openmpi
}"""
"""A shell's function `module`, as Environment Modules and Lmod export theirs."""


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASH_FUNC_module%%", MODULE)


def test_points_of_a_library_have_its_name_as_label_and_share_launches_with_its_own() -> None:
    both = {"benchmarks": ["latency", "bw"], "libraries": "all"}
    points = plan(sweep(both, launches=2), machine(library=TWO)).points
    assert [point.library for point in points] == 4 * ["mpich", "openmpi"]
    for point in points:
        assert f"--label={point.library}" in point.arguments(())
        assert point.library in point.describe()
        assert point.library in point.place
    assert len({point.name for point in points}) == len(points)
    together = launched_together(points)
    assert {(one.library, one.launch) for one in together} == {("mpich", 1)}
    assert [one.benchmark for one in together] == ["latency", "bw"]


def test_name_of_a_point_without_a_library_is_as_it_was() -> None:
    (plain,) = plan(sweep(), machine()).points
    (same,) = plan(sweep(), machine(library=TWO)).points
    assert plain.name == same.name
    assert plain.library == ""


@pytest.mark.parametrize(
    ("libraries", "tables", "words"),
    [
        ("all", {}, "here [library.NAME] none info --libraries"),
        (["mpich", "intel"], TWO, "here [library.intel] mpich, openmpi info --libraries"),
    ],
)
def test_library_without_a_table_refused(libraries: object, tables: object, words: str) -> None:
    with refuses(UsageError, words):
        plan(sweep({"libraries": libraries}), machine(library=tables))


def own(**values: object) -> Machine:
    """A machine whose one library is this environment's, with other keys."""
    return machine(launcher="auto", library={"own": {"virtual_environment": sys.prefix, **values}})


@pytest.mark.any_library
@pytest.mark.usefixtures("mpi")
def test_installation_of_this_environment_has_its_software(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPI4PY_LIBMPI", "/nowhere/libmpi.so")
    found = installation(own(environment={"A": "1"}), "own")
    assert found.software.name == "own"
    assert found.software.mpi4py.startswith("mpi4py ")
    assert Path(found.file).is_file()
    assert found.machine.environment == {"A": "1"}
    assert found.taken_back == ("MPI4PY_LIBMPI",)
    assert "MPI4PY_LIBMPI" not in found.inherited


@pytest.mark.any_library
@pytest.mark.usefixtures("mpi")
def test_libraries_that_cannot_be_started_are_named_and_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "libmpi.so").write_text("no library")
    tables = {
        "own": {"virtual_environment": sys.prefix},
        "gone": {"virtual_environment": str(tmp_path / "none")},
        "missing": {"libmpi": str(tmp_path / "libmpi.so.12")},
        "empty": {"libmpi": str(tmp_path / "libmpi.so")},
    }
    where = machine(launcher="auto", library=tables)
    found, faults = installations(where, [*tables, *tables])
    assert [*found] == ["own"]
    assert "none/bin/python" in faults["gone"]
    assert "libmpi.so.12" in faults["missing"]
    assert "cannot be loaded" in faults["empty"]
    assert installations(where, ["gone"])[0] == {}


@pytest.mark.usefixtures("modules")
def test_modules_set_the_variables_of_a_library() -> None:
    found = of_modules(["/soft/more files"], ["openmpi/5.0"])
    assert found["OPENMPI_HOME"] == "/soft/openmpi"
    assert found["USED"] == ":/soft/more files"
    assert found["PATH"].split(os.pathsep)[0] == "/soft/openmpi/bin"
    assert "HOME" not in found
    assert not any("%%" in name for name in found)


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("name", ["openmpi/6", "$(touch ran)", "'; touch ran; '", "a`touch ran`"])
def test_module_that_cannot_be_loaded_refused_and_nothing_of_its_name_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with refuses(OmbError, f"{name} cannot be loaded: Unable to locate"):
        of_modules([], [name])
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("modules")
def test_modules_of_mpi_libraries_are_candidates() -> None:
    found = [one.table.modules for one in candidates([]) if one.source.startswith("module ")]
    assert found == [("openmpi/5.0",), ("mpich/5",)]


@pytest.mark.parametrize(
    "name",
    "mpich mpich/5 cray-mpich/8.1.28 openmpi/gcc/5.0 ompi hpcx-ompi impi/2021 intel-oneapi-mpi/2021"
    " mpi/openmpi/5 mvapich2/2.3 mvapich-plus/4 psmpi/5 spectrum-mpi/10".split(),
)
def test_name_of_a_module_of_an_mpi_library_is_known(name: str) -> None:
    assert modules_in({"OMB_PY_MODULES": f"{name}(default)\ngcc/12\nmpi4py/4\nmpifileutils"}) == [
        name
    ]


def environment(path: Path) -> Path:
    """An environment with mpi4py, as far as a search sees it."""
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to(sys.executable)
    (path / "lib" / "python3.11" / "site-packages" / "mpi4py").mkdir(parents=True)
    return path


def test_named_folders_are_looked_at_first_for_environments_or_files(tmp_path: Path) -> None:
    for name in ("b", "a"):
        environment(tmp_path / "venvs" / name)
    library = tmp_path / "soft" / "mpi" / "lib" / "libmpi.so.12"
    library.parent.mkdir(parents=True)
    library.write_text("")
    (library.parent / "libmpifort.so").write_text("")
    found = [*candidates([tmp_path / "venvs", tmp_path / "soft"])][:3]
    assert found[0].table == Library(libmpi=str(library))
    names = [str(tmp_path / "venvs" / name) for name in "ab"]
    assert [one.table.virtual_environment for one in found[1:]] == names
    assert isinstance(found[0], Candidate)


def test_tables_of_what_is_here_are_toml_of_a_machine() -> None:
    table = Library(virtual_environment='/a "b"\\c', modules=("x", "y"), bin="/bin")
    one = Found("mpich-5.0", "environment", table, Software(library="MPICH 5.0"), "/a/libmpi.so")
    text = "\n".join(['name = "mine"', *LibrariesHere((one,), ("b: gone",)).lines])
    assert Machine.model_validate(tomllib.loads(text)).library == {"mpich-5.0": table}
    assert "# MPICH 5.0" in text
    assert "# not among them: b: gone" in text


INSTALLED = {
    "Environment Modules": "/usr/share/modules/init/bash",
    "Lmod": "/usr/share/lmod/lmod/init/bash",
}


@pytest.mark.parametrize("name", INSTALLED)
def test_modules_of_a_real_system_set_the_variables_of_a_library(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path(INSTALLED[name]).is_file():
        pytest.skip(f"{name} is not installed")
    file = tmp_path / "openmpi" / "5.0"
    file.parent.mkdir()
    file.write_text("#%Module1.0\nprepend-path PATH /soft/openmpi/bin\nsetenv OF_MODULE yes\n")
    monkeypatch.setenv("MODULEPATH", str(tmp_path))
    assert of_modules([], ["openmpi/5.0"])["OF_MODULE"] == "yes"
    found = [one.table.modules for one in candidates([]) if one.source.startswith("module ")]
    assert ("openmpi/5.0",) in found
    with refuses(OmbError, "openmpi/6 cannot be loaded"):
        of_modules([], ["openmpi/6"])


@pytest.mark.usefixtures("modules")
def test_module_without_a_launcher_refused_though_a_folder_has_a_program_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("bash", "env"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "mpiexec").write_text("#!/bin/sh\n")
    (tmp_path / "mpiexec").chmod(0o755)
    where = machine(launcher="auto", library={"site": {"modules": ["openmpi/5.0"]}})
    with refuses(OmbError, "there is no mpiexec not on the PATH"):
        installation(where, "site")
