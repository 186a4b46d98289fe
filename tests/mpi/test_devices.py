"""Messages on a device, with MPI libraries that know none: refused, or staged; placed; counted.

The device is a stand-in (`tests/fakes/cuda_driver`); MPI libraries, launchers and ranks are real.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perf.launchers import OMB_PY
from tests.conftest import Finished, Run, rows_of, run, succeeded
from tests.helpers.battery import Battery, Line, completed, each_line, line, passes, refused
from tests.helpers.devices import jobs_on, libraries, own_launcher, with_driver
from tests.helpers.refusals import assert_refused
from tests.mpi.lines import ONE_SIDED, TWO_SIDED, having, lines

QUICK = ("-i", "4", "-x", "1", "-u", "1")
CHECKED = "-c -i 4 -x 1 -u 1"
STAGED = f"--buffer raw --staging {CHECKED}"
UNCHECKED = "--buffer raw --staging --sizes 8,65536 -i 20 -x 2"
SEVERAL = f"-b multiple -W 4 --sizes 1,4096 {CHECKED}"


@pytest.fixture
def job(mpi: str, driver: Path, tmp_path: Path) -> Run:
    return jobs_on(driver, tmp_path, {})


def metadata(path: Path) -> dict[str, str]:
    lines = [line[2:] for line in path.read_text().splitlines() if line.startswith("# ")]
    return dict(line.split(": ", 1) for line in lines)


def without_sharing(job: Finished) -> list[str]:
    return [line for line in job.sentences if "share one device" not in line]


@pytest.mark.long
@pytest.mark.parametrize("name", libraries())
def test_unaware_library_gets_no_device_memory(job: Run, name: str) -> None:
    refused = job(2, "latency", "--buffer", name, "-m", "0:64")
    assert refused.code == 8
    (sentence,) = without_sharing(refused)
    asked = (
        r"MPIX_\w+ says no",
        "it has no function that tells, and of memory kinds only mpi, system",
    )
    assert re.search(rf"does not take memory on a device \(({'|'.join(asked)})", sentence)
    assert "--staging" in sentence
    assert "Traceback" not in refused.err


def test_insisting_shows_that_the_stand_in_is_no_host_memory(job: Run) -> None:
    insist = ("--sizes", "8", "--gpu-aware", "yes", "-c", *QUICK)
    crashed = job(2, "latency", "--buffer", "raw", *insist)
    assert crashed.code != 0
    assert "Pass" not in crashed.out


@pytest.mark.long
@pytest.mark.product
@each_line(
    *lines(TWO_SIDED, STAGED, "--sizes 8,60,20000"),
    *lines(TWO_SIDED, f"{STAGED} --binding native", "--sizes 8,60,20000"),
    *lines(having("in_place"), f"{STAGED} -l", "--sizes 48,1200", ranks=3),
    *lines(having("root"), f"{STAGED} -k rotate", "--sizes 48,1200", ranks=3),
)
def test_staged_data_is_right(staged: Battery, line: Line) -> None:
    record = passes(staged(line), broken=True)
    banner = record.out.strip().splitlines()[0]
    assert "MPI-CUDA" in banner
    words = banner.partition("(")[2].rstrip(")").split(", ")
    assert {f"binding {line.binding}", "staged"} <= set(words)
    assert {row["staged"] for row in record.rows} == {True}


@pytest.mark.product(strength=1)
@each_line(lines(ONE_SIDED, STAGED))
def test_a_window_on_a_device_is_not_staged(staged: Battery, line: Line) -> None:
    refused(staged(line), "which cannot be staged")


@each_line(
    line(2, f"latency {STAGED} --binding {binding} --sizes 0") for binding in ("buffer", "native")
)
def test_an_empty_message_is_not_copied(staged: Battery, line: Line) -> None:
    record = staged(line)
    assert (record.code, record.error) == (0, "")


@each_line(
    line(2, f"bw --buffer {name} --binding {binding} --staging {SEVERAL}")
    for name in libraries()
    for binding in ("buffer", "array", "prebound", "persistent", "native")
)
def test_every_library_and_form_is_staged(staged: Battery, line: Line) -> None:
    passes(staged(line), rows=2)


def test_one_flipped_byte_is_found_on_the_device(job: Run) -> None:
    faulty = {"OMB_TEST_RANK": "1", "OMB_TEST_OFFSET": "-1"}
    arguments = ("--buffer", "raw", "--staging", "--binding", "corrupting", "-c")
    done = job(2, "latency", *arguments, "--sizes", "64,128", *QUICK, **faulty)
    assert done.code == 1
    assert done.rows == [["64", done.rows[0][1], "Fail"]]
    assert "rank 1, offset 63 of 64 bytes" in done.err


@pytest.mark.parametrize(
    ("line", "places"),
    [
        (line(2, f"{name} {places} --buffer raw {staging} {CHECKED} --sizes 8,3000"), places)
        for name in ("latency", "bw", "mbw_mr")
        for places, staging in (("D H", "--staging"), ("H D", "--staging"), ("H H", ""))
    ],
    ids=str,
)
def test_each_end_has_its_own_place(staged: Battery, line: Line, places: str) -> None:
    record = passes(staged(line), rows=2)
    assert places in record.out
    assert {row["placement"] for row in record.rows} == {places}
    assert {row["staged"] for row in record.rows} == {True if "D" in places else None}


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (line(2, f"latency {place} --buffer {name} {CHECKED} --sizes 8,3000"), place)
        for name in libraries()
        for place in ("MD MH", "MH MH", "--managed")
    ],
    ids=str,
)
def test_any_mpi_library_takes_managed_memory(staged: Battery, line: Line, place: str) -> None:
    record = passes(staged(line), rows=2)
    expected = "M" if place == "--managed" else place
    assert {row["placement"] for row in record.rows} == {expected}


@pytest.mark.long
def test_ranks_of_a_node_take_its_devices_in_turn(job: Run, tmp_path: Path) -> None:
    arguments = ("allreduce", "--buffer", "raw", "--staging", "--sizes", "8", *QUICK, "--output")
    done = succeeded(job(4, *arguments, "two.csv", OMB_FAKE_DEVICES="2"))
    assert "2 ranks share one device" in done.err
    said = metadata(tmp_path / "two.csv")
    # Open MPI may number local ranks otherwise than ranks of the world
    assert sorted(said["devices"].partition(":")[2].split(",")) == sorted(
        ["0=50505050", "1=51515151"] * 2
    )
    assert said["device_chosen"] == "before MPI"
    assert said["device"] == "0: Fake device 0 (host memory), 16.0 GiB"
    done = job(3, *arguments, "four.csv", OMB_FAKE_DEVICES="4")
    assert "share one device" not in done.err
    said = metadata(tmp_path / "four.csv")
    assert len(set(said["devices"].partition(":")[2].split(","))) == 3
    done = job(3, *arguments, "named.csv", "--device", "3,1", OMB_FAKE_DEVICES="4")
    said = metadata(tmp_path / "named.csv")
    assert sorted(said["devices"].partition(":")[2].split(",")) == sorted(
        ["3=53535353", "1=51515151", "3=53535353"]
    )


def test_launcher_without_local_rank_keeps_devices(mpi: str, driver: Path, tmp_path: Path) -> None:
    hidden = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_LOCAL_RANK", "SLURM_LOCALID")
    own = own_launcher()
    unset = [word for name in hidden for word in ("-u", name)]
    measure = ("latency", "--buffer", "raw", "--staging", "--sizes", "8", "--output", "rows.csv")
    settings = with_driver(own, driver) | {"OMB_FAKE_DEVICES": "2"}
    done = run(
        own.run(2, "env", *unset, *OMB_PY, *measure, program=()), settings, tmp_path, timeout=60
    )
    assert done.code == 0, done.err
    assert "set OMB_PY_LOCAL_RANK" in done.err
    said = metadata(tmp_path / "rows.csv")
    assert said["devices"].partition(":")[2] == "0=50505050,1=51515151"
    assert said["device_chosen"] == "after MPI"


def test_a_size_too_large_for_the_device_is_left_out(job: Run) -> None:
    small = {"OMB_FAKE_MEMORY": str(300 << 10)}
    sizes = ("--sizes", "1024,262144,2048")
    done = job(2, "latency", "--buffer", "raw", "--staging", *sizes, *QUICK, **small)
    assert done.code == 3
    assert [row[0] for row in done.rows] == ["1024", "2048"]
    (sentence,) = without_sharing(done)
    assert "left out messages of 262144 bytes" in sentence
    assert "on device 0" in sentence


@each_line(
    line(2, f"latency {STAGED} --stream-sync --sizes 8 --binding {binding}")
    for binding in ("buffer", "native")
)
def test_stream_synchronisation_is_timed(staged: Battery, line: Line) -> None:
    record = passes(staged(line))
    assert "with stream sync" in record.out
    assert {row["stream_sync"] for row in record.rows} == {True}


@each_line(
    line(2, f"latency --buffer raw --staging --cold --sizes 8 -i 5 -x 1 --binding {binding}")
    for binding in ("buffer", "native")
)
def test_the_cache_of_a_device_is_flushed(staged: Battery, line: Line) -> None:
    record = completed(staged(line))
    assert {row["cold"] for row in record.rows} == {True}


def test_overheads_of_staged_messages(job: Run, tmp_path: Path) -> None:
    arguments = ("--buffer", "raw", "--staging", "--sizes", "8", "--rounds", "6", "-i", "60")
    chosen = ("--bindings", "native,prebound,buffer", "--output", "rows.csv")
    succeeded(job(2, "overhead", "latency", *arguments, *chosen))
    rows = rows_of(tmp_path / "rows.csv")
    assert {row["staged"] for row in rows} == {"True"}
    assert {row["split"] for row in rows} >= {"looking the array up"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (line(2, "latency --buffer raw --device 1"), "no device 1; last of 1"),
        (line(2, "latency --buffer raw --device one"), "'one' device numbers"),
        (line(2, "latency --buffer numpy --staging"), "--staging device"),
        (line(2, "bcast --device 0"), "--device messages device"),
        (line(2, "bcast --stream-sync"), "--stream-sync device"),
        (line(2, "bcast --managed"), "buffer numpy host M"),
        (line(2, "latency H D --managed"), "managed MD MH"),
        (line(2, "latency --buffer raw --staging --binding pickle"), "pickle addresses MPI"),
        (line(2, "put_latency --buffer raw --gpu-aware yes --staging"), "staged"),
    ],
    ids=str,
)
def test_impossible_on_a_device_refused(staged: Battery, line: Line, words: str) -> None:
    refused(staged(line), words)


def test_a_machine_without_a_device_is_refused(job: Run) -> None:
    done = job(2, "latency", "--buffer", "raw", "-i", "1", OMB_FAKE_DEVICES="0")
    assert_refused(done, 8, "no device")
    assert len(without_sharing(done)) == 1


def test_without_a_driver_the_fix_is_named(mpiexec: Run) -> None:
    done = mpiexec(2, "latency", "--buffer", "raw")
    if done.code == 0:
        pytest.skip("this machine has a driver")
    (sentence,) = done.sentences
    assert "no CUDA driver here (libcuda.so.1 cannot be loaded)" in sentence


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("cupy", "cupy", "cu13"), ("pycuda", "pycuda", "pycuda")]
    + [(name, "torch", "torch") for name in ("torch", "torch_cpu")],
)
def test_missing_library_names_its_extra(mpiexec: Run, name: str, package: str, extra: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    done = mpiexec(2, "latency", "--buffer", name)
    (sentence,) = done.sentences
    assert f"needs the Python package {package}" in sentence
    assert f"[{extra}]'" in sentence


def test_numba_s_simulator_stands_in_where_mpi_takes_its_arrays(job: Run) -> None:
    arguments = ("--buffer", "simulated", "--gpu-aware", "yes", "-c", "--sizes", "1,8,1000")
    done = succeeded(job(2, "latency", *arguments, *QUICK, NUMBA_ENABLE_CUDASIM="1"))
    assert [row[-1] for row in done.rows] == ["Pass"] * 3


@pytest.mark.parametrize(
    ("line", "target"),
    [
        (line(2, f"iallreduce -r {target} {UNCHECKED} --binding {binding}"), target)
        for target in ("gpu", "both")
        for binding in ("buffer", "native")
    ],
    ids=str,
)
def test_device_computes_during_a_collective(staged: Battery, line: Line, target: str) -> None:
    record = completed(staged(line))
    assert len(record.measured) == 2
    for row in record.measured:
        assert row["compute_target"] == target
        assert row["compute_us"] > 0
        assert 0 <= row["overlap_percent"] <= 100
