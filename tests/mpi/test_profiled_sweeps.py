"""Sweeps whose applications are profiled: by the recorder, and by a library that is loaded."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from omb_py.tracing.profile import store, tables
from omb_py.tracing.profile.profile import MPITRACE, OWN
from omb_py.tracing.recorder.library import compiler as mpi_compiler
from tests.conftest import OMB_PY, run, succeeded
from tests.helpers.refusals import assert_refused
from tests.mpi.sweeping import MACHINE, SmallSweep, experiment

pytestmark = pytest.mark.usefixtures("mpi")

LIBRARY = r"""
#include <mpi.h>
#include <stdio.h>
static long calls;
static double seconds;
int MPI_Barrier(MPI_Comm comm)
{
    double began = PMPI_Wtime();
    int result = PMPI_Barrier(comm);
    seconds += PMPI_Wtime() - began;
    calls++;
    return result;
}
int MPI_Finalize(void)
{
    int rank, ranks;
    char name[100];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(name, sizeof name, "mpi_profile.4711.%d", rank);
    FILE *file = fopen(name, "w");
    fprintf(file, "Data for MPI rank %d of %d:\n", rank, ranks);
    fprintf(file, "%-23s %15s %15s %15s\n", "MPI Routine", "#calls", "avg. bytes", "time(sec)");
    fprintf(file, "-----------------------------------------------------------------\n");
    fprintf(file, "%-23s %15ld %15.1f %15.3f\n", "MPI_Barrier", calls, 0.0, seconds);
    fprintf(file, "-----------------------------------------------------------------\n");
    fclose(file);
    return PMPI_Finalize();
}
"""
"""Counts barriers as mpitrace does, and writes its files."""

APPLICATION = experiment(
    benchmarks="transpose_sum",
    bindings="buffer",
    options={"size": 64, "repeats": 2, "no_references": True},
).replace('sizes = "8:64"\n', "")
NAME = 'name = "mine"\nretries = 0\n'
BOTH = NAME + APPLICATION + experiment(benchmarks="barrier", ranks=[2])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profiling library for this MPI."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "profiler.c").write_text(LIBRARY)
    built = folder / "libprofiler.so"
    words = [mpi_compiler(), "-shared", "-fPIC", "-o", str(built), str(folder / "profiler.c")]
    subprocess.run(words, check=True, capture_output=True)
    return built


def profiles(sweep: SmallSweep) -> list[Path]:
    """The folders of profiles, those of fewer ranks first."""
    return sorted((sweep.place / "profiles").iterdir())


def barriers(profile: Path) -> dict[int, int]:
    """Barriers of each rank, by the files that were kept."""
    members = store.load([str(profile)]).members
    return {
        member.rank: line.calls
        for member in members
        for routine, line in tables.routines([member]).items()
        if routine == "MPI_Barrier"
    }


def profilers(sweep: SmallSweep) -> dict[str, set[str]]:
    """What tables of points say of who profiled them, by benchmark."""
    found: dict[str, set[str]] = {}
    for path in sweep.place.glob("points/*.csv"):
        words = re.findall(r"^# profiler: (.*)$", path.read_text(), re.MULTILINE)
        found.setdefault(path.name.partition("-")[0], set()).update(words)
    return found


@pytest.mark.long
def test_the_recorder_profiles_applications_and_no_benchmarks(tmp_path: Path) -> None:
    sweep = SmallSweep(tmp_path, BOTH)
    done = succeeded(sweep.run("--profile"))
    one, two = profiles(sweep)
    assert [store.load([str(path)]).ranks for path in (one, two)] == [1, 2]
    found = store.load([str(two)])
    assert (found.origin, found.notes) == (OWN, ())
    assert "transpose_sum" in str(found.about["command"])
    assert set(barriers(two)) == {0, 1}
    shown = one.relative_to(tmp_path)
    assert f"profiles of 2 points in out/profiles: omb-py profile show {shown}" in done.out
    assert profilers(sweep) == {"transpose_sum": {"recorder"}, "barrier": set()}
    table = run([OMB_PY, "show", "out", "--speedup"], {}, tmp_path, 60)
    assert (table.code, table.err) == (0, "")
    other = sweep.run()
    assert_refused(other, 2, "another profile of the machine")


@pytest.mark.long
@pytest.mark.parametrize("how", ["MPITRACE", "machine"])
def test_library_profiles_only_applications(tmp_path: Path, library: Path, how: str) -> None:
    if how == "MPITRACE":
        sweep = SmallSweep(tmp_path, BOTH, environment={"MPITRACE": str(library)})
        done = sweep.run("--profile")
    else:
        sweep = SmallSweep(tmp_path, BOTH, f'{MACHINE}profile = "{library}"\n')
        done = sweep.run()
    assert done.code == 0, done.out
    _, two = profiles(sweep)
    assert sorted(path.name for path in two.iterdir()) == [
        "mpi_profile.4711.0",
        "mpi_profile.4711.1",
    ]
    assert store.load([str(two)]).origin == MPITRACE
    assert profilers(sweep) == {"transpose_sum": {str(library)}, "barrier": set()}
    found = barriers(two)
    assert set(found) == {0, 1}
    assert min(found.values()) > 0
    shown = run([OMB_PY, "profile", "show", str(two)], {}, tmp_path, 60)
    assert (shown.code, "MPI_Barrier" in shown.out) == (0, True)
    assert not list(sweep.place.glob("scratch/*/mpi_profile.*"))


@pytest.mark.parametrize("word", ["/nowhere/libmpitrace.so", "libmpitrace.so", "/a b/lib.so"])
def test_missing_recorder_library_refused(tmp_path: Path, word: str) -> None:
    sweep = SmallSweep(tmp_path, BOTH, environment={"MPITRACE": word})
    assert_refused(sweep.run("--profile"), 2, "MPITRACE")
    assert not sweep.place.exists() or not list(sweep.place.glob("points/*"))


@pytest.mark.long
def test_stopped_attempt_is_not_in_the_next_profile(tmp_path: Path) -> None:
    text = APPLICATION.replace("[1, 2]", "[2]").replace("size = 64", "size = 2000")
    text = text.replace("repeats = 2", "repeats = 300")
    sweep = SmallSweep(tmp_path, NAME + text, f'{MACHINE}profile = "recorder"\n')
    with sweep.running() as process:
        deadline = time.monotonic() + 30
        while not list(sweep.place.glob("scratch/*/profile/rank-000001.record")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) != 0
    (kept,) = profiles(sweep)
    assert not all(member.complete for member in store.load([str(kept)]).members)
    (kept / "rank-000009.record").write_bytes((kept / "rank-000001.record").read_bytes())
    succeeded(sweep.run())
    assert profiles(sweep) == [kept]
    found = store.load([str(kept)])
    assert [(member.rank, member.complete) for member in found.members] == [(0, True), (1, True)]
    assert found.notes == ()
