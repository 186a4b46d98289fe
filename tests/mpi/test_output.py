"""Files of results, from real ranks: whole at any time, added to, readable by anybody."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, suppress
from mmap import PAGESIZE
from pathlib import Path

import pandas as pd
import pytest

from omb_py.results.columns import Row
from tests.conftest import OMB_PY, Finished, Run, own_temporary_folder, rows_of, succeeded
from tests.helpers.reading import objects
from tests.helpers.refusals import ANY_CODE, assert_refused
from tests.helpers.waiting import processes_with, wait_for

QUICK = ("-i", "5", "-x", "1", "--sizes", "1,8")


@pytest.mark.long
def test_pandas_reads_the_table(mpiexec: Run, tmp_path: Path) -> None:
    for arguments in (("latency",), ("bw",), ("mbw_mr", "-V"), ("bcast", "-z25,99.9", "-c")):
        assert mpiexec(2, *arguments, *QUICK, "-q", "--output", "results/rows.csv").code == 0
    assert mpiexec(2, "barrier", "-i", "5", "--output", "results/rows.csv").code == 0
    table = pd.read_csv(tmp_path / "results" / "rows.csv", comment="#")
    assert tuple(table.columns) == Row.columns
    assert table.groupby("benchmark").size().to_dict() == {
        "latency": 2,
        "bw": 2,
        "mbw_mr": 16,
        "bcast": 2,
        "barrier": 1,
    }
    bandwidths = table[table.benchmark == "bw"]
    assert (bandwidths.bandwidth_MBps > 0).all()
    assert bandwidths.latency_us.isna().all()
    assert set(table[table.benchmark == "bcast"].validation) == {"Pass"}
    assert table.run.nunique() == 5


@pytest.mark.any_library
def test_metadata_tells_how_to_repeat_the_run(mpiexec: Run, tmp_path: Path) -> None:
    mpiexec(2, "latency", *QUICK, "--thread-level", "multiple", "--output", "rows.csv")
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    metadata = dict(line[2:].split(": ", 1) for line in lines if line.startswith("#"))
    assert metadata["command"].startswith("omb-py latency -i 5 -x 1 --sizes 1,8")
    assert metadata["thread_level"] == "multiple"
    assert metadata["ranks"] == "2"
    assert metadata["hosts"].endswith(":2")
    assert metadata["mpi_library"]
    assert Path(metadata["mpi_library_path"]).is_file()
    assert metadata["mpi_abi"] in ("own", "standard 1.0")
    assert "OMPI_MCA_btl=self,sm" in metadata["environment"]
    assert str(tmp_path) not in metadata["environment"]


@pytest.mark.any_library
def test_json_has_an_object_a_line_and_is_added_to(mpiexec: Run, tmp_path: Path) -> None:
    for _ in range(2):
        assert mpiexec(2, "latency", *QUICK, "-q", "-z", "--output", "rows.json").code == 0
    items = objects((tmp_path / "rows.json").read_text())
    assert ["metadata" in item for item in items] == [True, False, False, True] * 2
    assert [name for name in Row.columns if name in items[1]] == list(items[1])
    assert None not in items[1].values()
    assert set(items[1]["percentiles"]) == {"p50", "p90", "p99"}


@pytest.mark.any_library
def test_force_starts_anew(mpiexec: Run, tmp_path: Path) -> None:
    for _ in range(2):
        mpiexec(2, "latency", *QUICK, "--output", "rows.csv", "--force")
    assert len(pd.read_csv(tmp_path / "rows.csv", comment="#")) == 2


@pytest.mark.long
@pytest.mark.any_library
@pytest.mark.parametrize(("name", "content"), [("a.csv", "x,y\n1,2"), ("b.json", '{"x": 1}')])
def test_other_file_is_left_alone(mpiexec: Run, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert_refused(mpiexec(2, "latency", *QUICK, "--output", name), ANY_CODE, "--force")
    assert (tmp_path / name).read_text() == content


@pytest.mark.slow
@pytest.mark.any_library
@pytest.mark.parametrize("layout", [pytest.param("csv", marks=pytest.mark.smoke), "json"])
def test_standard_output_in_other_formats(mpiexec: Run, layout: str) -> None:
    out = mpiexec(2, "allreduce", *QUICK, "-c", "--format", layout).out
    assert "Pass" in out
    if layout == "csv":
        table, _, metadata = out.rpartition("# run: ")
        assert table.splitlines()[-1].count(",") == len(Row.columns) - 1
        assert "# launch_seconds: " in metadata
    else:
        *_, row, end = objects(out)
        assert row["bytes"] == 8
        costs = {"launch_seconds", "iterating_seconds"}
        assert set(end["metadata"]) - {"other_processes"} == {"run", "transport"} | costs
        launch, iterating = (float(end["metadata"][name]) for name in sorted(costs, reverse=True))
        assert launch > 0.05
        assert 0 < iterating < launch


@pytest.mark.any_library
@pytest.mark.parametrize(
    "words",
    [
        ("overhead", "latency", "--sizes", "8", "--rounds", "6"),
        ("pairs", "--sizes", "8"),
        ("allreduce", "--sizes", "8", "--congestor", "alltoall"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_seconds_of_iterations_are_kept_for_every_kind_of_run(
    mpiexec: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    options = ("-i", "5", "-x", "1", "--output", "rows.csv")
    succeeded(mpiexec(4 if "--congestor" in words else 2, *words, *options))
    lines = [line.split() for line in (tmp_path / "rows.csv").read_text().splitlines()]
    found = {line[1]: float(line[2]) for line in lines if "_seconds:" in " ".join(line[1:2])}
    assert 0 < found["iterating_seconds:"] < found["launch_seconds:"]


@pytest.mark.any_library
def test_seconds_of_iterations_contain_all_passes_of_an_overlap(
    mpiexec: Run, tmp_path: Path
) -> None:
    words = ("--sizes", "1048576", "-i", "50", "-x", "0", "--output", "rows.csv")
    succeeded(mpiexec(2, "iallreduce", *words))
    text = (tmp_path / "rows.csv").read_text()
    (iterating,) = (float(one.split()[-1]) for one in text.splitlines() if "iterating_s" in one)
    (row,) = rows_of(tmp_path / "rows.csv")
    each = sum(float(row[name]) for name in ("latency_us", "compute_us", "overall_us"))
    assert iterating > 0.8 * 50 * each / 1e6


@pytest.mark.usefixtures("long_time")
def test_eight_jobs_at_once_keep_all_their_rows(mpi: str, tmp_path: Path) -> None:
    output = tmp_path / "many.json"
    command = [mpi, "-n", "2", OMB_PY, "allreduce", "-i", "2", "-x", "0", "-q"]
    with ExitStack() as folders:
        jobs = [
            subprocess.Popen(
                [*command, "--output", str(output)],
                env=folders.enter_context(own_temporary_folder()),
                stdin=subprocess.DEVNULL,
            )
            for _ in range(8)
        ]
        assert [job.wait(120) for job in jobs] == [0] * 8
    items = objects(output.read_text())
    runs = [item["metadata"]["run"] for item in items if "metadata" in item]
    assert len(set(runs)) == 8
    for run in runs:
        sizes = [item["bytes"] for item in items if item.get("run") == run]
        assert sizes == [1 << power for power in range(2, 21)]


def wait_for_rows(path: Path, rows: int) -> None:
    """Wait until a file of results is there with so many rows, each with its type of MPI."""
    wait_for(lambda: path.exists() and path.stat().st_size)
    wait_for(lambda: path.read_text().count("MPI_CHAR") >= rows)


@pytest.mark.long
def test_a_file_that_is_removed_during_a_run_is_written_again(mpi: str, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    command = [mpi, "-n", "2", OMB_PY, "latency", "-i", "1", "-x", "0", "-q"]
    sizes = ",".join(str(size) for size in range(1, 1000))
    with own_temporary_folder() as environment:
        job = subprocess.Popen(
            [*command, "--sizes", sizes, "--output", str(output)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for_rows(output, 5)
        output.unlink()
        _, errors = job.communicate(timeout=240)
    assert job.returncode == 0, errors
    assert "rows.csv" not in errors
    sizes_read = list(pd.read_csv(output, comment="#").bytes)
    assert sizes_read == list(range(sizes_read[0], 1000))
    assert output.read_text().startswith("# run: ")


@pytest.mark.any_library
def test_a_name_that_is_no_text_is_written_as_escapes(mpi: str, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/rows-\xff.csv"
    command = [mpi, "-n", "2", OMB_PY, "latency", *QUICK, "--output", os.fsdecode(name)]
    with own_temporary_folder() as environment:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert Finished(0, done.stdout, done.stderr, 0).sentences == []
    with open(name, encoding="ascii") as file:
        assert "rows-\\udcff.csv" in file.read()


@pytest.mark.product(strength=1)
@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_killed_has_whole_rows(
    mpi: str, mpiexec: Run, tmp_path: Path, suffix: str, rows: int
) -> None:
    """Killed after the heading and so many rows, of which others are then under way."""
    output = tmp_path / f"rows.{suffix}"
    sizes = ",".join(str(size) for size in range(1, 3000))
    command = [mpi, "-n", "2", OMB_PY, "latency", "-i", "1", "-x", "0"]
    with own_temporary_folder() as environment:
        job = subprocess.Popen(
            [*command, "--sizes", sizes, "-q", "--output", str(output)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for_rows(output, rows)
        for process in processes_with(str(output)):
            with suppress(ProcessLookupError):  # the death of one may have ended the next
                os.kill(process, signal.SIGKILL)
        job.wait(timeout=60)
    torn = output.stat().st_size % PAGESIZE == 0
    if torn:  # the kernel ends a write that SIGKILL meets at the end of a page
        mpiexec(2, "latency", "-i", "1", "-x", "0", "--sizes", "1", "--output", str(output))
    if suffix == "csv":
        assert output.read_bytes().endswith(b"\n")
        table = pd.read_csv(output, comment="#")
        assert table.layout.notna().all()
        sizes_read = list(table.bytes)
    else:
        sizes_read = [item["bytes"] for item in objects(output.read_text()) if "bytes" in item]
    if torn:
        assert sizes_read.pop() == 1
    assert len(sizes_read) >= rows - torn
    assert sizes_read == list(range(1, len(sizes_read) + 1))
