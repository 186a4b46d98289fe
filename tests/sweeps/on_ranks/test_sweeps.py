"""Sweeps that are killed, starved and refused end with exactly the rows that were planned."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

import omb_py
from omb_py.core.text.units import duration
from omb_py.sweeps import launchers, processes
from omb_py.tracing.recorder import library
from tests.conftest import OMB_PY, rows_of, run, succeeded
from tests.helpers.refusals import assert_names, assert_refused, missing
from tests.helpers.waiting import processes_with, wait_for
from tests.sweeps.sweeping import MACHINE, SmallSweep, experiment, kill

pytestmark = [pytest.mark.usefixtures("mpi"), pytest.mark.any_library]

NAME = 'name = "mine"\nretries = 1\n'
AS_WRITTEN = NAME + 'order = "as written"\n'
SIZES = 'sizes = "8:64"'
PLAIN = NAME + experiment()
PLANNED = Counter(
    ("allreduce", "native", ranks, size, "")
    for ranks, size in product("12", ("8", "16", "32", "64"))
)
LONG = NAME + experiment(options={"iterations": 1_000_000_000, "max_time": 0.1})

SHARED = NAME + experiment(
    benchmarks=["bcast", "reduce", "allreduce"], ranks=2, sizes="8:1M", options={"iterations": 100}
)
"""Its points share a launch."""
PLANNED_SHARED = Counter(
    (name, "native", "2", f"{8 << power}", "")
    for name in ("bcast", "reduce", "allreduce")
    for power in range(18)
)

HANGING = NAME + experiment(bindings="hanging", ranks=2, sizes=["4", "8"])
"""Its first row is there soon, and its second one only when nobody hangs."""
NOBODY_HANGS = {"OMB_TEST_RANK": "-1"}
PLANNED_HANGING = Counter(("allreduce", "hanging", "2", size, "") for size in ("4", "8"))

LAUNCHERS = ("mpiexec", "prterun")
"""What MPICH's and Open MPI's launchers are called when they run."""


@pytest.mark.long
@pytest.mark.every_library
def test_a_sweep_measures_what_is_planned_once(tmp_path: Path) -> None:
    sweep = SmallSweep(tmp_path, PLAIN)
    shown = sweep.run("--dry-run", "--commands")
    assert "2 points, 8 rows" in shown.out
    assert shown.out.count("--sizes 8,16,32,64") == 2
    assert not sweep.place.exists()
    done = sweep.run()
    assert (done.code, done.err) == (0, "")
    assert "8 rows, 0 of them there" in done.out
    assert "] allreduce numpy native 2 ranks on 1 node, 4 rows" in done.out
    assert done.out.splitlines()[-1] == "complete: omb-py report out"
    assert sweep.rows() == PLANNED
    before = sweep.lines()
    assert sweep.run().code == 0
    assert sweep.lines() == before
    assert not list((sweep.place / "scratch").iterdir())


@pytest.mark.long
def test_applications_are_swept_too(tmp_path: Path) -> None:
    options = {"rows": 64, "inner": 32, "columns": 32, "repeats": 1}
    text = experiment(benchmarks="matmul", ranks=[1, 2], options=options).replace(SIZES, "")
    sweep = SmallSweep(tmp_path, NAME + text)
    done = sweep.run()
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "complete: omb-py show out --speedup"
    tables = [rows_of(path) for path in sorted((sweep.place / "points").glob("*.csv"))]
    wholes = [row for table in tables for row in table if not row["part"]]
    assert sorted(row["ranks"] for row in wholes) == ["1", "2"]
    assert {row["check"] for row in wholes} == {"Pass"}
    assert "complete" in sweep.run().out


def test_launches_follow_the_shuffled_plan(tmp_path: Path) -> None:
    own = {"benchmarks": ["barrier", "allreduce", "bcast"], "ranks": 1, "sizes": "8"}
    sweep = SmallSweep(tmp_path, NAME + "launches = 2\n" + experiment(**own))
    shown = sweep.run("--dry-run", "--commands").out
    assert "2 rounds, each shuffled (seed 0)" in shown
    planned = re.findall(r"(barrier|allreduce|bcast) --buffer", shown)
    assert sorted(planned[:3]) == sorted(planned[3:]) == ["allreduce", "barrier", "bcast"]
    done = sweep.run()
    assert re.findall(r"^\[.* rows, .*\] (\w+) ", done.out, re.M) == planned
    assert 'order = "shuffled"\nseed = 0' in (sweep.place / "sweep.toml").read_text()
    assert len(list(sweep.place.glob("points/*-r2-*.csv"))) == 3


def test_a_command_line_that_was_shown_measures_the_same(tmp_path: Path) -> None:
    sweep = SmallSweep(tmp_path, PLAIN)
    shown = sweep.run("--dry-run", "--commands").out.splitlines()
    (sweep.place / "points").mkdir(parents=True)
    for line in [line for line in shown if " --sizes " in line]:
        subprocess.run(
            ["sh", "-c", line], check=True, cwd=tmp_path, env=sweep_environment(tmp_path)
        )
    assert sweep.rows() == PLANNED


def sweep_environment(folder: Path) -> dict[str, str]:
    """What launchers need in tests."""
    from tests.conftest import ENVIRONMENT

    return os.environ | ENVIRONMENT | {"TMPDIR": str(folder)}


@pytest.mark.usefixtures("long_time")
def test_a_sweep_may_grow(tmp_path: Path) -> None:
    SmallSweep(tmp_path, PLAIN).run()
    before = SmallSweep(tmp_path, PLAIN).lines()
    larger = SmallSweep(tmp_path, NAME + experiment(sizes="8:128", ranks=[1, 2, 3]))
    assert larger.run().code == 0
    assert before < larger.lines()
    assert set(larger.rows().values()) == {1}
    assert sum(larger.rows().values()) == 3 * 5


@pytest.mark.long
def test_tables_of_points_that_are_no_longer_planned_are_named(tmp_path: Path) -> None:
    two = MACHINE + "nodes = 2\n"
    text = NAME + experiment(ranks=1) + experiment(benchmarks="barrier", ranks=2, nodes=2)
    SmallSweep(tmp_path, NAME + experiment(ranks=1), two).run()
    words = "is of no point in this plan"
    # what is on another number of nodes is planned, though not for this start
    part = SmallSweep(tmp_path, text, two)
    (part.place / "points").joinpath("gone.csv").write_text("")
    assert part.run("--nodes", "1").out.count(words) == 1
    fewer = SmallSweep(tmp_path, NAME + experiment(benchmarks="bcast", ranks=1), two)
    assert fewer.run().out.count(words) == 2  # gone.csv, and allreduce


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize(
    ("text", "planned", "victims"),
    [
        (LONG, PLANNED, ()),
        (LONG, PLANNED, LAUNCHERS),
        (LONG, PLANNED, ("omb_py",)),
        (SHARED, PLANNED_SHARED, ()),
    ],
    ids=["sweep", "launcher", "rank", "sweep of a shared launch"],
)
def test_sweep_killed_at_any_moment_resumes(
    tmp_path: Path, text: str, planned: Counter[tuple[str, ...]], victims: tuple[str, ...]
) -> None:
    """The sweep itself, its launcher or a rank gets the kill that nobody can catch.

    pytest-randomly seeds the moments, and prints its seed.
    """
    sweep = SmallSweep(tmp_path, text)
    rows = random.randrange(planned.total())
    with sweep.running() as process:
        wait_for(lambda: sweep.rows().total() >= rows)
        time.sleep(random.uniform(0, 0.5))
        for victim in victims:
            kill_one(sweep, victim)
        time.sleep(random.uniform(0, 0.5) if victims else 0)
        kill(process)
    before = sweep.lines()
    succeeded(sweep.run())
    assert before <= sweep.lines()
    assert sweep.rows() == planned
    assert sweep.left_behind() == []


def kill_one(sweep: SmallSweep, word: str) -> None:
    """Kill one of the sweep's processes whose command line has a word in it, if there is one."""
    found = [*processes_with(word, f"OMB_PY_SWEEP_POINT={sweep.place}:")]
    if found:
        with suppress(ProcessLookupError):  # it may have ended meanwhile
            os.kill(random.choice(found), signal.SIGKILL)


@pytest.mark.long
@pytest.mark.every_library
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_killed_sweep_takes_its_ranks_with_it(tmp_path: Path, processes: int) -> None:
    """While the launcher starts, too: MPICH's loses a signal that comes before its ranks."""
    text = NAME + experiment(ranks=[2], options={"iterations": 10_000_000})
    sweep = SmallSweep(tmp_path, text)
    with sweep.running() as process:
        wait_for(lambda: len(sweep.left_behind()) >= processes)
        kill(process)
        wait_for(lambda: not sweep.left_behind())


@pytest.mark.long
def test_what_a_killed_job_left_is_removed(tmp_path: Path) -> None:
    """Shared memory that the ranks had mapped when the sweep, its launcher and they were killed."""
    sweep = SmallSweep(tmp_path, NAME + experiment(ranks=2, options={"iterations": 10_000_000}))
    told: set[str] = set()

    def all_told() -> bool:
        records = list(sweep.place.glob("scratch/*/shared/*.mapped"))
        told.update(line for path in records for line in path.read_text().splitlines())
        return len(records) == 2

    def none_left() -> bool:
        if not sweep.left_behind():
            return True
        kill_one(sweep, "omb_py")
        return False

    with sweep.running() as process:
        wait_for(all_told)
        process.send_signal(signal.SIGSTOP)
        for launcher in LAUNCHERS:
            kill_one(sweep, launcher)
        wait_for(none_left)
        kill(process)
    files = {json.loads(line)[0] for line in told}
    assert any(os.path.exists(file) for file in files)
    succeeded(SmallSweep(tmp_path, NAME + experiment(ranks=1)).run())
    assert [file for file in files if os.path.exists(file)] == []
    assert list((sweep.place / "scratch").iterdir()) == []


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_stops_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with SmallSweep(tmp_path, HANGING, environment={"OMB_TEST_RANK": "1"}).running() as process:
        sweep = SmallSweep(tmp_path, HANGING, environment=NOBODY_HANGS)
        wait_for(sweep.rows)
        # schedulers and their daemons send more than one, the last to what is leaving
        deadline = time.monotonic() + 120
        while (code := process.poll()) is None:
            assert time.monotonic() < deadline
            process.send_signal(number)
            time.sleep(0.002)
    assert code == (130 if number is signal.SIGINT else 75)
    assert sweep.left_behind() == []
    assert sweep.run().code == 0
    assert sweep.rows() == PLANNED_HANGING


@pytest.mark.usefixtures("long_time")
def test_it_stops_before_its_time_is_over(tmp_path: Path) -> None:
    sweep = SmallSweep(tmp_path, HANGING, environment={"OMB_TEST_RANK": "1"})
    for seconds in (2, 10, 50):  # on a busy machine the first row needs more of them
        done = sweep.run("--stop-after", f"{seconds}s")
        if sweep.rows():
            break
    assert done.code == 75
    assert "stopped because its time was over; " in done.out
    assert sweep.rows() < PLANNED_HANGING
    assert SmallSweep(tmp_path, HANGING, environment=NOBODY_HANGS).run().code == 0
    assert sweep.rows() == PLANNED_HANGING


@pytest.mark.long
def test_sweep_that_measures_no_row_in_its_time_fails(tmp_path: Path) -> None:
    sweep = SmallSweep(tmp_path, NAME + experiment(options={"iterations": 10**9}))
    done = sweep.run("--stop-after", "1s")
    assert done.code == 1
    assert not missing("stopped time nothing measured", done.out)


@pytest.mark.long
def test_failed_point_is_retried_and_reported(tmp_path: Path) -> None:
    faulty = experiment(benchmarks="latency", bindings=["raising", "flaky", "buffer"], ranks=2)
    text = NAME + faulty + 'environment = { OMB_TEST_RANK = "0" }\n'
    sweep = SmallSweep(tmp_path, text, environment={"OMB_TEST_FLAG": str(tmp_path / "flag")})
    done = sweep.run()
    assert done.code == 1
    assert done.out.count("RuntimeError: the network is on fire") == 3  # two attempts, one summary
    assert done.out.count("RuntimeError: not this time") == 1
    assert "1 point failed:" in done.out
    assert {row[1] for row in sweep.rows()} == {"flaky", "buffer"}
    assert set(sweep.rows().values()) == {1}
    (tmp_path / "mine.toml").write_text(text.replace('"raising", ', ""))
    done = succeeded(sweep.run())


def launches(sweep: SmallSweep) -> list[str]:
    """The launchers' command lines, as the logs have them."""
    logs = (path.read_text() for path in sorted(sweep.place.glob("logs/*-r*.output")))
    return [line for text in logs for line in text.splitlines() if line.startswith("$ ")]


@pytest.mark.long
def test_points_on_the_same_ranks_share_a_launch(tmp_path: Path) -> None:
    text = NAME + experiment(benchmarks=["allreduce", "barrier", "latency"], ranks=[2, 3])
    sweep = SmallSweep(tmp_path, text)
    succeeded(sweep.run())
    assert len(launches(sweep)) == 2
    assert len(list(sweep.place.glob("points/*.csv"))) == 5
    assert omb_py.load(sweep.place).problems == ()
    each = SmallSweep(tmp_path / "each", text)
    assert each.run("--launch-each").code == 0
    assert len(launches(each)) == 5
    assert each.rows() == sweep.rows()


@pytest.mark.long
def test_point_that_kills_a_launch_is_tried_alone(tmp_path: Path) -> None:
    faulty = experiment(benchmarks="latency", bindings=["killed", "buffer", "native"], ranks=2)
    text = f'{NAME}order = "as written"\n{faulty}environment = {{ OMB_TEST_RANK = "0" }}\n'
    sweep = SmallSweep(tmp_path, text)
    done = sweep.run()
    assert done.code == 1
    assert {row[1] for row in sweep.rows()} == {"buffer", "native"}
    ended = r"^\[.*\] latency numpy (\w+) 2 ranks.*? node( failed)?"
    order = re.findall(ended, done.out, re.M)
    assert order == [("killed", " failed"), ("buffer", ""), ("native", ""), ("killed", " failed")]
    assert sweep.left_behind() == []


@pytest.mark.long
def test_a_point_that_hangs_is_ended(tmp_path: Path) -> None:
    measured = {
        ("hanging", "2", "4"),  # measured before it hung
        ("buffer", "2", "4"),
        ("buffer", "2", "8"),
    }
    for seconds in (2, 10, 50):  # on a busy machine the others need more of them
        text = f'name = "mine"\nretries = 0\ntime_limit = "{seconds}s"\n' + experiment(
            benchmarks="latency", bindings=["hanging", "buffer"], ranks=2, sizes=["4", "8"]
        )
        sweep = SmallSweep(
            tmp_path / f"{seconds}", text + 'environment = { OMB_TEST_RANK = "1" }\n'
        )
        done = sweep.run(timeout=240)
        if {row[1:4] for row in sweep.rows()} == measured:
            break
    assert done.code == 1
    assert "timed out" in done.out
    assert not missing(f"not at its end {duration(seconds)} (time_limit)", done.out)
    assert {row[1:4] for row in sweep.rows()} == measured
    assert sweep.left_behind() == []


@pytest.mark.long
def test_what_cannot_be_measured_is_said_once_and_exit_code_3(tmp_path: Path) -> None:
    text = experiment(benchmarks="reduce_scatter", bindings=["pickle", "buffer"], ranks=2)
    on_gpus = experiment(buffers=["cupy", "dpnp"], ranks=2)
    sweep = SmallSweep(tmp_path, NAME + text + on_gpus)
    left_out = "machine here has no CUDA or ROCM devices (gpus_per_node = 0)"
    assert left_out in sweep.run("--dry-run").out
    done = sweep.run()
    assert done.code == 3
    assert left_out in done.out
    assert not missing("1 point could not be measured", done.out)
    assert not missing("complete, omb-py report out", done.out)
    again = sweep.run()
    assert again.code == 3
    assert "rows in" not in again.out


@pytest.mark.long
def test_wrong_options_of_a_point_fail_without_a_retry(tmp_path: Path) -> None:
    wrong = {"iterations": 20, "num_pairs": [1, 2]}
    text = experiment(benchmarks="mbw_mr", ranks=2, sizes=["8"], options=wrong)
    sweep = SmallSweep(tmp_path, NAME + text)
    done = sweep.run()
    assert done.code == 1
    assert not missing("1 point failed: -p: 2 ranks make at most 1 pairs", done.out)
    assert done.out.count("refused,") == 1
    assert "could not be measured" not in done.out


@pytest.mark.long
def test_two_sweeps_in_one_folder_share_the_work(tmp_path: Path) -> None:
    sweep = SmallSweep(tmp_path, LONG)
    with sweep.running() as first:
        wait_for(lambda: (sweep.place / "logs").exists())
        second = sweep.run()
        assert first.wait(120) in (0, 75)
    assert second.code in (0, 75)
    assert sweep.run().code == 0
    assert sweep.rows() == PLANNED


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few pages that can be made larger."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=48k", "none", str(folder)]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.long
def test_a_full_disk_loses_nothing(small_disk: Path) -> None:
    sweep = SmallSweep(small_disk, PLAIN)
    done = sweep.run()
    assert done.code == 1
    assert "Traceback" not in done.err + done.out
    assert "No space left on device" in done.err + done.out
    before = sweep.lines()
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    assert sweep.run().code == 0
    assert before <= sweep.lines()
    assert sweep.rows() == PLANNED


@pytest.mark.long
def test_full_disk_ends_the_sweep(small_disk: Path) -> None:
    """The log has no room for what the ranks say, and the next point would fail as well."""
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    text = AS_WRITTEN + experiment(bindings=["filling", "buffer"], ranks=1, sizes=["4", "8"])
    sweep = SmallSweep(small_disk, text, environment={"OMB_TEST_RANK": "0"})
    done = sweep.run()
    assert_refused(done, 1, "omb-py: cannot write out: No space left on device;")
    assert sweep.rows().total() == 1
    healthy = SmallSweep(small_disk, text, environment=NOBODY_HANGS)
    done = succeeded(healthy.run())
    assert healthy.rows().total() == 4


@pytest.mark.long
def test_a_folder_is_one_sweep_s_on_one_machine(tmp_path: Path) -> None:
    SmallSweep(tmp_path, PLAIN).run()
    other = SmallSweep(tmp_path, PLAIN.replace('"mine"', '"other"', 1)).run()
    assert_refused(other, 2, "out another sweep: --folder")
    machine = 'name = "here"\noversubscribe = true\nbinding = "none"\n'
    other = SmallSweep(tmp_path, PLAIN, machine).run()
    assert_refused(other, 2, "another binding of the machine")


@pytest.mark.long
@pytest.mark.every_library
def test_a_launcher_of_another_mpi_is_found_out(tmp_path: Path) -> None:
    """Ranks that find themselves alone do not measure as if they were wanted so."""
    fake = tmp_path / "mpiexec"
    fake.write_text(
        '#!/bin/sh\nwhile [ "$1" != "-m" ]; do last=$1; shift; done\nexec "$last" "$@"\n'
    )
    fake.chmod(0o755)
    machine = 'name = "here"\nlauncher = "pals"\noversubscribe = true\n'
    path = f"{tmp_path}:{os.environ['PATH']}"
    sweep = SmallSweep(tmp_path, PLAIN, machine, {"PATH": path})
    done = sweep.run()
    assert done.code == 1
    assert not missing("2 ranks started MPI 1", done.out)
    assert {row[2] for row in sweep.rows()} == {"1"}


@pytest.mark.long
def test_a_launcher_that_the_machine_does_not_name_runs_nothing(tmp_path: Path) -> None:
    here = launchers.detect()
    other = "mpich" if here == "openmpi" else "openmpi"
    machine = f'name = "here"\nlauncher = "{other}"\noversubscribe = true\n'
    sweep = SmallSweep(tmp_path, PLAIN, machine)
    done = sweep.run()
    assert_refused(done, 2, f'machine here launcher = "{other}"')
    assert f'set launcher = "{here}" or "auto"' in done.err
    (tmp_path / "here.toml").write_text(MACHINE)
    assert sweep.run().code == 0


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("scheduler", ["none", "pbs"])
def test_points_that_need_more_nodes_are_left_out(tmp_path: Path, scheduler: str) -> None:
    """A job got fewer nodes than the machine has: two chunks of PBS may share one."""
    (tmp_path / "nodes").write_text(f"{os.uname().nodename}\n" * 2)
    machine = f'{MACHINE}nodes = 4\nscheduler = "{scheduler}"\n'
    machine += f'host_file = "{tmp_path}/nodes"\n' if scheduler == "none" else ""
    environment = {"PBS_NODEFILE": str(tmp_path / "nodes")}
    text = NAME + experiment(ranks=4, nodes=[1, 2, 4], benchmarks="allreduce")
    sweep = SmallSweep(tmp_path, text, machine, environment)
    advice = {
        "none": f"2 and 4 nodes needed, {tmp_path}/nodes names 1 node: add hosts to it",
        "pbs": "2 and 4 nodes needed, this job has 1 node: ask for more by omb-py job submit "
        "./mine.toml --machine ./here.toml --folder out --one-job",
    }[scheduler]
    assert f"left out 2 points: {advice}" in " ".join(sweep.run("--dry-run").out.split())
    done = sweep.run()
    assert (done.code, done.err) == (75, ""), done.out
    assert f"\nleft out 2 points: {advice}\n" in done.out
    assert_names(done.out.splitlines()[-1], f"8 rows of 2 points missing: {advice} out")
    assert len(sweep.rows()) == 4
    assert sweep.run().code == 1


def test_what_is_missing_is_one_sentence(tmp_path: Path) -> None:
    machine = 'name = "here"\nlauncher = "flux"\noversubscribe = true\n'
    done = SmallSweep(tmp_path, PLAIN, machine).run()
    assert_refused(done, 1, f"no flux {os.uname().nodename}, PATH: load")


@pytest.mark.usefixtures("long_time")
def test_without_an_mpi_library_no_point_is_given_up(tmp_path: Path) -> None:
    """A job in which a module is not loaded must not spoil the sweep for the next."""
    missing = {"MPI4PY_LIBMPI": "/no/such/libmpi.so"}
    done = SmallSweep(tmp_path, PLAIN, environment=missing).run()
    assert_refused(done, 1, "nothing measured mpi4py MPI library: load")
    assert "/no/such/libmpi.so" in done.err
    sweep = SmallSweep(tmp_path, PLAIN)
    assert sweep.run().code == 0
    assert sweep.rows() == PLANNED


@pytest.mark.long
@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="a device is here")
def test_what_is_missing_is_looked_for_again_by_the_next_start(tmp_path: Path) -> None:
    text = NAME + experiment(buffers="numba", bindings="buffer", ranks=2)
    sweep = SmallSweep(tmp_path, text, f"{MACHINE}gpus_per_node = 1\n")
    for start in (1, 2):
        done = sweep.run()
        assert done.code == 1, done.out
        assert not missing("no CUDA driver same command again", done.out)
        assert "complete" not in done.out
        (log,) = sweep.place.glob("logs/*numba*.output")
        assert log.read_text().count("\n$ ") + 1 == start
    assert re.search(r"allreduce .* 1 +4 +0\n", sweep.run("--dry-run").out)
    assert sweep.rows() == {}


@pytest.mark.long
def test_rows_of_two_libraries_need_consent(tmp_path: Path) -> None:
    sweep = SmallSweep(tmp_path, NAME + experiment(ranks=1))
    assert sweep.run().code == 0
    software = sweep.place / "software.json"
    (known,) = json.loads(software.read_text())
    assert known["library"].startswith(("MPICH 5", "Open MPI 5", "Intel MPI 20"))
    software.write_text(json.dumps([known | {"library": "Other MPI 1.0"}]))
    more = SmallSweep(tmp_path, NAME + experiment())
    assert_refused(more.run(), 2, f"{known['library']} instead of Other MPI 1.0")
    assert len(more.rows()) == 4
    assert more.run("--mix").code == 0
    assert more.rows() == PLANNED


@pytest.mark.long
def test_one_cause_of_all_points_stops_the_sweep(tmp_path: Path) -> None:
    failing = MACHINE + 'launcher_options = ["--no-such-option"]\n'
    sweep = SmallSweep(tmp_path, f"{NAME}launches = 3\n{experiment()}", failing)
    done = sweep.run()
    assert done.code == 1, done.out
    (sentence,) = done.sentences
    assert "the first 3 points failed alike" in sentence
    commands = [path.read_text().count("$ ") for path in sweep.place.glob("logs/allreduce*.output")]
    assert commands == [2, 2, 2]


@pytest.mark.long
def test_row_of_a_suspended_job_is_measured_again(tmp_path: Path) -> None:
    options = {"iterations": 1_000_000_000, "max_time": 1.0}
    sweep = SmallSweep(tmp_path, NAME + experiment(ranks=2, options=options))
    with sweep.running() as process:
        wait_for(lambda: sweep.rows().total() == 1)
        (table,) = sweep.place.glob("points/*.csv")
        job = [process.pid, *processes.processes_with(f"{sweep.place}:{table.stem}")]
        for number, seconds in ((signal.SIGSTOP, 5.0), (signal.SIGCONT, 0.0)):
            for one in job:
                os.kill(one, number)
            assert not missing("launch runs since s so far allreduce", sweep.run("--dry-run").out)
            time.sleep(seconds)
        assert process.wait(60) == 0
    (state,) = sweep.place.glob("state/*.state")
    attempts = json.loads(state.read_text())["attempts"]
    assert {one["outcome"] for one in attempts[:-1]} == {"suspended"}
    assert (attempts[-1]["outcome"], sum(one["rows"] for one in attempts)) == ("done", 4)
    assert [row["bytes"] for row in rows_of(table)] == ["8", "16", "32", "64"]
    assert all(float(row["sample_max_us"]) < 4e6 for row in rows_of(table))


DEAD_NODE = """\
#!/bin/sh
case "$*" in *--ntasks=2*) echo "srun: error: $$: no route to node"; {ends} ;; esac
while [ "${{1#--}}" != "$1" ]; do shift; done
exec "$@"
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("ends", "words"), [("exit 1", ""), ("exec sleep 60", "had not met after 4.0 s (time_limit)")]
)
def test_dead_node_costs_three_launches_and_is_named(tmp_path: Path, ends: str, words: str) -> None:
    (tmp_path / "srun").write_text(DEAD_NODE.format(ends=ends))
    (tmp_path / "srun").chmod(0o755)
    (tmp_path / "hosts").write_text("localhost\nnode2.invalid\n")
    benchmarks = ["allreduce", "bcast", "barrier", "gather", "reduce"]
    text = NAME.replace("1", "0") + 'time_limit = "4s"\n' + experiment(ranks=1)
    text += experiment(benchmarks=benchmarks, ranks=2, nodes=2)
    path = f"{tmp_path}:{os.environ['PATH']}"
    machine = 'name = "here"\nlauncher = "srun"\nnodes = 2\nhost_file = "hosts"\n'
    sweep = SmallSweep(tmp_path, text, machine, {"PATH": path})
    done = sweep.run()
    assert done.code == 75, done.out
    (line,) = [line for line in done.out.splitlines() if line.startswith("left out")]
    assert_names(line, f"5 points on 2 nodes x 1 rank {words} no route answer from node2.invalid")
    assert done.out.count(" failed, 0 rows") + done.out.count(" timed out, 0 rows") == 3
    shown = sweep.run("--dry-run").out
    assert re.search(r"^4 of 21 rows, 3 points failed; about .* left$", shown, re.M), shown
    assert re.search(r"^3 points failed:\n  .*2 ranks on 2 nodes", shown, re.M), shown
    assert sweep.run().code == 1, "nothing was added"


def test_a_sweep_without_one_row_fails(tmp_path: Path) -> None:
    text = experiment(benchmarks="reduce_scatter", bindings="pickle", ranks=2)
    sweep = SmallSweep(tmp_path, NAME + text)
    for _ in range(2):
        done = sweep.run()
        assert done.code == 1, done.out
        assert "reduces objects only with" in done.out
        assert "nothing was measured" in done.out
        assert "omb-py report" not in done.out


@pytest.mark.long
@pytest.mark.every_library
def test_algorithms_of_the_library_are_measured(tmp_path: Path) -> None:
    words = ["default", "ring", "recursive_doubling", "chain", "segmented_ring"]
    text = experiment(benchmarks="allreduce", ranks=2, coll_algorithms=words, sizes="4:64")
    sweep = SmallSweep(tmp_path, NAME + text)
    done = sweep.run()
    assert done.code == 3
    assert not missing("no library algorithm chain allreduce", done.out)
    rows = [row for path in sweep.place.glob("points/*.csv") for row in rows_of(path)]
    measured = Counter(row["library_algorithm"] for row in rows)
    assert measured["ring"] in (4, 5)  # Open MPI's needs an element for each rank
    assert measured["recursive_doubling"] == 5
    logs = "".join(path.read_text() for path in sweep.place.glob("logs/*ring*"))
    if "Open MPI" not in logs and "prterun" not in logs:
        assert "has no algorithm 'segmented_ring'" in done.out
        assert measured["segmented_ring"] == 0


ONE = """
name = "one"
description = "one point"
time_limit = "1m"
[[experiments]]
benchmarks = ["bcast"]
ranks = 2
nodes = 1
bindings = ["buffer"]
sizes = "8:16"
"""


@pytest.mark.long
def test_a_sweep_without_a_machine_is_measured_here_with_a_line_for_each_point(
    mpi: str, tmp_path: Path
) -> None:
    (tmp_path / "one.toml").write_text(ONE)
    environment = {"PATH": f"{Path(mpi).parent}:{os.environ['PATH']}"}
    done = run([OMB_PY, "sweep", "./one.toml"], environment, tmp_path, timeout=60)
    assert (done.code, done.err) == (0, "")
    begin, launch, point, end = done.out.splitlines()
    assert begin.startswith("sweep one on local: 1 point, 2 rows, 0 of them there; ")
    assert launch == "measuring bcast numpy buffer 2 ranks on 1 node"
    assert re.fullmatch(
        r"\[1/1 points, 2/2 rows, .* s\] bcast numpy buffer 2 ranks on 1 node, 2 rows in .* s",
        point,
    )
    assert end == "complete: omb-py report sweeps/one-local"


TRACE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern int PMPI_Finalize(void);
int MPI_Finalize(void) {
    char name[1000];
    snprintf(name, sizeof name, "%s/%d", getenv("OMB_TEST_TRACES"), (int)getpid());
    FILE *file = fopen(name, "w");
    if (file) fclose(file);
    return PMPI_Finalize();
}
"""


def traced(folder: Path, compiler: str) -> tuple[SmallSweep, Path]:
    """A sweep with a profiling library that a compiler made, and the folder of its traces."""
    library, traces = folder / "libtrace.so", folder / "traces"
    traces.mkdir()
    (folder / "trace.c").write_text(TRACE)
    words = [compiler, "-shared", "-fPIC", "-o", str(library), str(folder / "trace.c")]
    subprocess.run(words, check=True)
    machine = f'name = "here"\noversubscribe = true\npreload = "{library}"\n'
    text = NAME + experiment(benchmarks="allreduce", ranks=[1, 3])
    return SmallSweep(folder, text, machine, {"OMB_TEST_TRACES": str(traces)}), traces


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_profiling_library_is_loaded_into_every_rank(tmp_path: Path) -> None:
    sweep, traces = traced(tmp_path, library.compiler())
    assert "exit code" not in succeeded(sweep.run()).out
    assert len(list(traces.iterdir())) == 4


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_job_that_fails_after_its_last_row_is_complete_and_named(tmp_path: Path) -> None:
    """The library lacks its PMPI_Finalize: it is not linked with MPI."""
    sweep, _ = traced(tmp_path, "cc")
    result = succeeded(sweep.run())
    assert result.out.count("exit code 127 after its last row: ") == 2
    assert "symbol lookup error" in result.out
