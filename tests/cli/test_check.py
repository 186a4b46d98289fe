"""`omb-py check` as a user meets it: tables, documents, exit codes, a site's own references."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from omb_py.analysis.references import COLUMNS, shipped
from tests import ROOT
from tests.conftest import Finished
from tests.helpers.refusals import missing

Start = Callable[..., Finished]
OF_LATENCY = ("--where", "benchmark=latency", "--where", "placement=D")
RESULTS = str(ROOT / "results" / "families-mpich.csv")

TEXT = """
# OSU MPI-CUDA Latency Test v7.5
# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
256                     {small:.2f}
1048576                51.50
4194304               180.90
"""


NCCL = """\
$ mpirun -n 2 all_reduce_perf -b 1M -e 1M
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20
#                                                    out-of-place                 in-place
#    size    count  type redop root   time  algbw  busbw #wrong   time  algbw  busbw #wrong
#     (B) (elements)                  (us) (GB/s) (GB/s)          (us) (GB/s) (GB/s)
  1048576   262144 float   sum   -1  30.00  35.00  {bus}      0  20.00  52.00  52.00      0
"""


@pytest.fixture
def alps(tmp_path: Path) -> Callable[[float], str]:
    """A text of native OMB with a latency of 256 bytes."""

    def write(small: float) -> str:
        path = tmp_path / "latency.txt"
        path.write_text(TEXT.format(small=small))
        return str(path)

    return write


def copies(folder: Path, factors: tuple[float, ...]) -> str:
    """Runs of the reference results in a folder, each with its times multiplied."""
    folder.mkdir()
    lines = Path(RESULTS).read_text().splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("run,"))
    frame = pd.read_csv(io.StringIO("".join(lines[start:])), dtype={"root": str})
    frame = frame[frame["benchmark"].isin(["latency", "bw", "barrier", "allreduce"])]
    for number, factor in enumerate(factors):
        slower = frame.assign(run=frame["run"] + f"-{number}", mpi="MPICH 5.0.2", hosts=1)
        for name in frame:
            if name.endswith("_us"):
                slower[name] = frame[name] * factor
            elif name.endswith(("_MBps", "_per_s")):
                slower[name] = frame[name] / factor
        slower.to_csv(folder / f"{number}.csv", index=False)
    return str(folder)


def test_results_within_the_limits_pass(in_process: Start, alps: Callable[[float], str]) -> None:
    done = in_process("check", alps(4.1), "--expected", "alps-gh200", *OF_LATENCY)
    assert (done.code, done.err) == (0, "")
    assert "up to 4.31 µs" in done.out
    assert not missing("cscs-reframe-tests Note hosts", done.out)
    assert not missing("PASS: 2 of 2 values as expected from alps-gh200", done.out)


def test_reference_that_was_not_measured_cannot_pass(
    in_process: Start, alps: Callable[[float], str]
) -> None:
    done = in_process("check", alps(4.1), "--expected", "alps-gh200")
    assert done.code == 7
    said = "CANNOT TELL: 2 of 10 values 8 not measured (latency, 2 ranks, H, 256 B;"
    assert not missing(said, done.out)


def test_results_beyond_a_limit_exit_with_4(
    in_process: Start, alps: Callable[[float], str]
) -> None:
    done = in_process("check", alps(4.9), "--expected", "alps-gh200")
    assert done.code == 4
    assert not missing("FAIL: 256 B 4.90 4.31 FAIL: 1 of 10 values 8 not measured", done.out)


def test_results_without_a_reference_exit_with_7(in_process: Start) -> None:
    done = in_process("check", RESULTS, "--expected", "coreweave-gb200")
    assert done.code == 7
    assert not missing("CANNOT TELL: 0 of 3 values 3 not measured", done.out)


def test_tolerance_is_of_references_that_state_none(
    in_process: Start, alps: Callable[[float], str]
) -> None:
    words = ("check", alps(4.9), "--expected", "olivia-openmpi", *OF_LATENCY)
    assert in_process(*words).code == 4
    within = in_process(*words, "--tolerance", "20%")
    assert "CANNOT TELL: 3 of 4 values" in within.out


def test_documents_have_every_reference(in_process: Start, alps: Callable[[float], str]) -> None:
    words = ("check", alps(4.9), "--expected", "alps-gh200", "--format")
    done = in_process(*words, "csv")
    assert tuple(pd.read_csv(io.StringIO(done.out)).columns) == COLUMNS
    assert "FAIL: 1 of 10 values as expected from alps-gh200" in done.err
    document = json.loads(in_process(*words, "json").out)
    verdicts = [row["verdict"] for row in document["rows"]]
    assert verdicts == ["high", "pass", *["not measured"] * 8]
    assert len(document["failures"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["site.csv", "site.json"])
def test_own_references_pass_and_fail_a_slower_copy(
    in_process: Start, tmp_path: Path, name: str
) -> None:
    runs = copies(tmp_path / "runs", (0.98, 1.0, 1.01, 1.02, 0.99))
    done = in_process("check", runs, "--update", name)
    assert done.code == 0, done.err
    assert not missing(f"{name} references tolerances", done.out)
    assert in_process("check", runs, "--update", name).code == 2
    assert in_process("check", runs, "--update", name, "--force").code == 0
    again = in_process("check", runs, "--expected", name)
    assert again.code == 0, again.out
    assert "not measured" not in again.out
    slower = in_process("check", copies(tmp_path / "slow", (1.3,)), "--expected", name)
    assert slower.code == 4
    assert " 0 of " in slower.out.splitlines()[-1]


def test_update_of_a_partition_is_a_document_for_reframe(in_process: Start, tmp_path: Path) -> None:
    runs = copies(tmp_path / "runs", (0.98, 1.0, 1.02))
    words = ("--update", "references.json", "--system", "here:cpus")
    assert in_process("check", runs, *words).code == 0
    document = json.loads((tmp_path / "references.json").read_text())
    ((system, variables),) = document.items()
    assert system == "here:cpus"
    name, (value, low, high, unit) = next(iter(variables.items()))
    assert not missing("latency bytes= buffer=numpy binding= ranks=2", name)
    assert (low, unit) == (None, "us")
    assert value > 0
    assert high >= 0.05


def again(folder: Path, *values: float) -> tuple[str, ...]:
    """The options that measure again by a script that prints these latencies of 256 B in turn."""
    for number, value in enumerate(values):
        (folder / f"waiting-{number}").write_text(TEXT.format(small=value))
    script = 'set -- waiting-*; test "$0" = 256 && cat "$1" && rm "$1"'
    return ("--confirm", str(len(values)), "--again", f"sh -c {shlex.quote(script)} {{sizes}}")


@pytest.mark.slow
def test_failure_that_does_not_come_again_passes(
    in_process: Start, alps: Callable[[float], str], tmp_path: Path
) -> None:
    words = ("check", alps(40.9), "--expected", "alps-gh200", *OF_LATENCY)
    done = in_process(*words, *again(tmp_path, 3.9, 4.1))
    assert done.code == 0, done.err
    said = "NOT CONFIRMED: 256 B 40.9 µs, 3.90 µs, 4.10 µs, median 4.10 µs PASS: 2 of 2"
    assert not missing(said, done.out)
    assert "FAIL" not in done.out
    document = json.loads(in_process(*words, *again(tmp_path, 3.9, 4.1), "--format", "json").out)
    assert (document["failures"], len(document["not_confirmed"])) == ([], 1)
    row = document["rows"][0]
    assert (row["value"], row["runs"], row["verdict"]) == (4.1, 3, "pass")


@pytest.mark.slow
def test_failure_that_comes_again_exits_with_4(
    in_process: Start, alps: Callable[[float], str], tmp_path: Path
) -> None:
    words = ("check", alps(4.9), "--expected", "alps-gh200")
    done = in_process(*words, *again(tmp_path, 5.0, 3.9))
    assert done.code == 4
    assert not missing("FAIL: 256 B confirmed: 4.90 µs, 5.00 µs, median", done.out)


def test_results_that_name_no_command_fail_and_say_so(
    in_process: Start, alps: Callable[[float], str]
) -> None:
    done = in_process("check", alps(4.9), "--expected", "alps-gh200", "--confirm", "2")
    assert done.code == 4
    assert not missing("FAIL: 256 B not measured again command --again", done.out)


def test_failure_out_of_place_fails_though_its_line_has_a_passing_row_in_place(
    in_process: Start, tmp_path: Path
) -> None:
    (tmp_path / "site.csv").write_text(
        "benchmark,bytes,in_place,value,unit\n"
        "allreduce,1M,false,50,GB/s busbw\nallreduce,1M,true,50,GB/s busbw\n"
    )
    for name, bus in (("first.txt", 30.0), ("again.txt", 40.0)):
        (tmp_path / name).write_text(NCCL.format(bus=bus))
    words = ("check", "first.txt", "--expected", "site.csv", "--confirm", "1")
    done = in_process(*words, "--again", "cat again.txt")
    assert done.code == 4
    assert not missing(
        "FAIL: allreduce 1 MiB confirmed: 30.0 GB/s 40.0 GB/s bus, median 35.0", done.out
    )
    assert "FAIL: 1 of 2 values as expected from site" in done.out
    assert "not measured" not in done.out


def test_empty_command_of_a_confirmation_is_refused(
    in_process: Start, alps: Callable[[float], str]
) -> None:
    words = ("check", alps(4.9), "--expected", "alps-gh200", "--confirm", "2", "--again", "")
    done = in_process(*words)
    assert (done.code, done.out) == (2, "")
    assert "--again is empty" in done.err


@pytest.mark.slow
def test_confirmation_needs_no_launcher_around_it(
    in_process: Start, alps: Callable[[float], str]
) -> None:
    words = ("check", alps(4.9), "--expected", "alps-gh200", "--confirm", "2")
    done = in_process(*words, OMPI_COMM_WORLD_SIZE="2")
    assert done.code == 2
    assert not missing("--confirm without a launcher", done.err)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--expected --update"),
        (("--expected", "alps-gh200", "--update", "a.csv"), "--expected --update"),
        (("--expected", "nowhere"), f"nowhere {shipped()[0]} {shipped()[-1]}"),
        (("--update", "a.txt"), "a.txt .csv .json"),
        (("--update", "a.csv", "-o", "b.csv"), "--output --update"),
        (("--update", "a.csv"), "repeated launches"),
        (("--update", "a.csv", "--confirm", "2"), "--confirm --update"),
        (("--expected", "alps-gh200", "--again", "osu_latency"), "--again --confirm"),
        (("--expected", "alps-gh200", "--confirm", "0"), "--confirm"),
    ],
)
def test_command_lines_that_mean_nothing_are_refused(
    in_process: Start, alps: Callable[[float], str], words: tuple[str, ...], said: str
) -> None:
    done = in_process("check", alps(4.1), *words)
    assert done.code == 2
    assert not missing(said, done.err)


@pytest.mark.slow
def test_report_has_the_same_table(
    in_process: Start, tmp_path: Path, alps: Callable[[float], str]
) -> None:
    done = in_process("report", alps(4.9), "--expected", "alps-gh200", "-o", "page.html")
    assert done.code == 0, done.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Expected values" in page
    assert "up to 4.31 µs" in page
    assert "FAIL: 1 of 10 values as expected from alps-gh200" in page
