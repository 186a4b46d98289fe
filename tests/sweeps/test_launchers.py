"""Each launcher starts so many ranks on so many nodes, in its own words."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import catalog, commands, launchers
from omb_py.sweeps.launchers import LAUNCHERS, Placement
from omb_py.sweeps.libraries import Installation
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import plan
from omb_py.sweeps.toml import read
from tests.conftest import Run
from tests.helpers.refusals import refuses
from tests.sweeps.configs import machine, sweep

PLACE = Placement(nodes=2, ranks_per_node=4, cores=32, gpus=4, binding="depth")
FULL = {
    "mpich": "-n 8 -ppn 4 -bind-to core:8",
    "openmpi": "-n 8 --map-by ppr:4:node:pe=8 --bind-to core",
    "intel": "-n 8 -ppn 4",
    "pals": "-n 8 --ppn 4 --depth 8 --cpu-bind depth",
    "srun": "--nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1 --cpus-per-task=8 "
    "--cpu-bind=cores",
    "flux": "run -N 2 -n 8 -c 8 -g 1 -o cpu-affinity=per-task",
}
"""Words of those launchers whose manuals were read."""


SEVERAL_NODES = [name for name in LAUNCHERS if name != "torchrun"]


@pytest.mark.parametrize("name", SEVERAL_NODES)
def test_words_say_how_many_ranks_there_are_on_how_many_nodes(name: str) -> None:
    placements = [Placement(nodes, ranks) for nodes in (1, 2, 3, 8) for ranks in (1, 2, 4, 8)]
    assert len({tuple(LAUNCHERS[name].words(place)) for place in placements}) == len(placements)


@pytest.mark.parametrize("name", FULL)
def test_placement_has_the_words_of_each_launcher(name: str) -> None:
    assert " ".join(LAUNCHERS[name].words(PLACE)) == FULL[name]


@pytest.mark.parametrize("name", SEVERAL_NODES)
def test_a_choice_of_binding_is_a_choice(name: str) -> None:
    row = LAUNCHERS[name]
    said = {
        binding: (row.words(place), row.environment(place))
        for binding in launchers.BINDINGS
        for place in [replace(PLACE, binding=binding)]
    }
    assert said["default"] != said["depth"]
    assert said["none"] != said["core"]


def test_torchrun_leaves_placement_to_the_system() -> None:
    words = LAUNCHERS["torchrun"].words
    assert words(Placement(1, 4)) == ["--standalone", "--nproc-per-node=4", "--no-python"]
    with refuses(OmbError, "nodes = 1"):
        words(Placement(2, 4))
    with refuses(OmbError, 'binding = "default"'):
        words(Placement(1, 4, binding="core"))


def test_host_file_is_the_first_option() -> None:
    place = replace(PLACE, host_file="my hosts", binding="default")
    assert LAUNCHERS["mpich"].words(place)[:2] == ["-f", "my hosts"]
    assert LAUNCHERS["openmpi"].words(place)[:2] == ["--hostfile", "my hosts"]
    assert LAUNCHERS["pals"].words(place)[:2] == ["--hostfile", "my hosts"]


def test_host_file_limits_open_mpi_ranks() -> None:
    """It steps aside where there are more; other launchers take names alone."""
    assert {row.host_line("node1", PLACE).split()[0] for row in LAUNCHERS.values()} == {"node1"}
    lines = {name: LAUNCHERS[name].host_line("node1", PLACE) for name in FULL}
    assert lines.pop("openmpi") == "node1 slots=4"
    assert set(lines.values()) == {"node1"}
    oversubscribed = replace(PLACE, ranks_per_node=64, oversubscribe=True)
    assert LAUNCHERS["openmpi"].host_line("node1", oversubscribed) == "node1 slots=32"


def test_open_mpi_is_told_which_variables_to_pass_on() -> None:
    place = replace(PLACE, environment={"OMPI_MCA_btl": "self,tcp", "UCX_TLS": "a b;c"})
    words = LAUNCHERS["openmpi"].words(place)
    assert words[-2:] == ["-x", "UCX_TLS"]
    assert "OMPI_MCA_btl" not in words
    place = replace(place, environment={}, inherited=("OMPI_MCA_btl", "PYTHONPATH"))
    assert LAUNCHERS["openmpi"].words(place)[-2:] == ["-x", "PYTHONPATH"]
    assert "-x" not in LAUNCHERS["openmpi"].words(replace(place, nodes=1))


@pytest.mark.parametrize("name", ["polaris", "perlmutter"])
def test_gpu_support_only_for_devices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "on_device", lambda buffer: buffer == "cupy")
    where = read(catalog.find("machines", name), Machine)
    point = plan(sweep(), machine()).points[0]
    variable, found = "MPICH_GPU_SUPPORT_ENABLED", {}
    for buffer in ("numpy", "cupy"):
        environment = commands.environment(
            replace(point, buffer=buffer), Installation(where, "srun")
        )
        found[buffer] = environment.get(variable, "0")
    assert found == {"numpy": "0", "cupy": "1"}


def test_mpich_steps_aside_where_ranks_share_cores() -> None:
    oversubscribed = replace(PLACE, ranks_per_node=64)
    assert "MPIR_CVAR_CH4_PROGRESS_THROTTLE" in LAUNCHERS["mpich"].environment(oversubscribed)
    assert LAUNCHERS["mpich"].environment(PLACE) == {}


def program(folder: Path, name: str, says: str) -> None:
    """A program that prints what a launcher would."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


def alone(folder: Path, patch: pytest.MonkeyPatch, says: str) -> None:
    """Make an mpiexec that says this the only one there is."""
    program(folder, "mpiexec", says)
    patch.setattr("sys.executable", str(folder / "python"))
    patch.setenv("PATH", f"{folder}:/bin:/usr/bin")


@pytest.mark.parametrize(
    ("says", "name"),
    [
        ("HYDRA build details:", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.19", "intel"),
        ("mpiexec (Open MPI) 5.0.11", "openmpi"),
        ("mpirun (Open MPI) 4.1.6", "openmpi"),
        ("prterun (PRRTE) 3.0.7", "openmpi"),
        ("PALS version 1.3.4", "pals"),
    ],
)
def test_launcher_is_known_by_what_mpiexec_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, name: str
) -> None:
    program(tmp_path, "mpiexec", says)
    program(tmp_path, "python", "")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert launchers.detect() == name


def test_no_launcher_and_an_unknown_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with refuses(OmbError, f"no mpiexec {tmp_path}/mpiexec PATH: load"):
        launchers.detect()
    program(tmp_path, "mpiexec", "MPT 2.30")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with refuses(OmbError, f"{tmp_path}/mpiexec whose set launcher"):
        launchers.detect()


OTHERS = [("openmpi", "HYDRA build details:"), ("mpich", "mpiexec (Open MPI) 5.0.11")]
OTHERS += [("pals", "mpirun (Open MPI) 4.1.6"), ("intel", "PALS version 1.3.4")]


@pytest.mark.parametrize(("name", "says"), OTHERS)
def test_a_launcher_that_is_another_s_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    alone(tmp_path, monkeypatch, says)
    found = launchers.detect()
    other, wanted = launchers.TITLES[found], launchers.TITLES[name]
    words = f'machine here launcher = "{name}" {tmp_path}/mpiexec {other}: "{found}" {wanted}'
    with refuses(UsageError, words):
        launchers.select(name, "here")
    assert launchers.select("auto", "here") == launchers.detect()
    program(tmp_path, "srun", "slurm 24.05.8")
    assert launchers.select("srun", "here") == "srun"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mpich", "Intel(R) MPI Library"),  # both are Hydra
        ("intel", "HYDRA build details:"),
        ("openmpi", "mpirun (IBM Spectrum MPI) 10.4"),  # who knows
        ("pals", "PALS version 1.3.4"),
    ],
)
def test_a_launcher_that_may_be_right_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    alone(tmp_path, monkeypatch, says)
    assert launchers.select(name, "here") == name


def test_thetagpu_passes_on_variables_that_are_set_only(monkeypatch: pytest.MonkeyPatch) -> None:
    thetagpu = read(catalog.find("machines", "thetagpu"), Machine)
    point = replace(plan(sweep(), machine()).points[0], nodes=2)
    for value in (None, "/soft/lib"):
        monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
        if value is not None:
            monkeypatch.setenv("LD_LIBRARY_PATH", value)
        words = LAUNCHERS["openmpi"].command(commands.placement(point, thetagpu), installed=False)
        passed = {word for option, word in pairwise(words) if option == "-x"}
        assert "PATH" in passed
        assert ("LD_LIBRARY_PATH" in passed) == (value is not None)


RANCH = """
name = "ranch"
cores_per_node = 4
nodes = 4
launcher = "flux"
"""
FEW = """
name = "few"
[[experiments]]
benchmarks = "allreduce"
bindings = "buffer"
ranks_per_node = 2
nodes = 2
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "words", "notes"),
    [
        ("flux", " flux run -N 2 -n 4", []),
        ("pals", " mpiexec -n 4 --ppn 2", ['omb-py: note: here, machine ranch says launcher = "']),
    ],
)
def test_commands_are_shown_without_the_launcher(
    tmp_path: Path, omb_py: Run, launcher: str, words: str, notes: list[str]
) -> None:
    (tmp_path / "few.toml").write_text(FEW)
    (tmp_path / "ranch.toml").write_text(RANCH.replace("flux", launcher))
    program(tmp_path, "mpiexec", "HYDRA build details:")
    arguments = ("sweep", "few.toml", "--machine", "ranch.toml", "--dry-run", "--commands")
    done = omb_py(*arguments, PATH=f"{tmp_path}:/bin")
    assert done.code == 0, done.err
    assert words in done.out
    assert [line[: len(start)] for line, start in zip(done.sentences, notes, strict=True)] == notes
