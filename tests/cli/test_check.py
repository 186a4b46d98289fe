"""`omb-py check` as a user meets it: tables, documents, exit codes, a site's own references."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from omb_py.analysis.references_check import COLUMNS
from tests import RESULTS
from tests.conftest import Run, succeeded
from tests.helpers.refusals import missing

Alps = Callable[[float], str]
"""Writes a text of native OMB with a latency of 256 bytes, and returns its path."""

HOSTS = ("--assume", "hosts=2")
OF_LATENCY = (*HOSTS, "--where", "benchmark=latency", "--where", "placement=D")
REFERENCE = str(RESULTS / "families-mpich.csv")

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
def alps(tmp_path: Path) -> Alps:
    """A text of native OMB with a latency of 256 bytes."""

    def write(small: float) -> str:
        path = tmp_path / "latency.txt"
        path.write_text(TEXT.format(small=small))
        return str(path)

    return write


def copies(folder: Path, factors: tuple[float, ...]) -> str:
    """Runs of the reference results in a folder, each with its times multiplied."""
    folder.mkdir()
    lines = Path(REFERENCE).read_text().splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("run,"))
    frame = pd.read_csv(io.StringIO("".join(lines[start:])), dtype={"root": str})
    frame = frame[frame["benchmark"].isin(["latency", "bw", "barrier", "allreduce"])]
    for number, factor in enumerate(factors):
        slower = frame.assign(run=frame["run"] + f"-{number}", mpi="MPICH 5.0.2", hosts=1)
        for name in frame:
            if name.endswith("_us"):
                slower[name] = frame[name] * factor
            elif name.endswith(("_MBps", "_GBps", "_per_s")):
                slower[name] = frame[name] / factor
        slower.to_csv(folder / f"{number}.csv", index=False)
    return str(folder)


def test_results_within_the_limits_pass(in_process: Run, alps: Alps) -> None:
    done = in_process("check", alps(4.1), "--expected", "alps-gh200", *OF_LATENCY)
    assert (done.code, done.err) == (0, "")
    assert "up to 4.31 µs" in done.out
    assert not missing("cscs-reframe-tests CUDA_VISIBLE_DEVICES=0", done.out)
    assert not missing("PASS: 2 of 2 values as expected from alps-gh200", done.out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("time", "words", "code", "said"),
    [
        (
            *(9.9, OF_LATENCY[len(HOSTS) :], 7),
            "not compared Note hosts --assume hosts=VALUE CANNOT TELL: 0 of 2 values 2 cannot be",
        ),
        (4.1, HOSTS, 7, "CANNOT TELL: 2 of 10 values 8 not measured (latency, 2 ranks, H, 256 B;"),
        (4.9, HOSTS, 4, "FAIL: 256 B 4.90 4.31 FAIL: 1 of 10 values 8 not measured"),
        (4.9, (*HOSTS, "--confirm", "2"), 4, "FAIL: 256 B not measured again command --again"),
    ],
    ids=["no hosts stated", "reference not measured", "beyond a limit", "no command to repeat"],
)
def test_results_that_do_not_pass_have_a_code_and_a_reason(
    in_process: Run, alps: Alps, time: float, words: tuple[str, ...], code: int, said: str
) -> None:
    done = in_process("check", alps(time), "--expected", "alps-gh200", *words)
    assert done.code == code
    assert not missing(said, done.out)


@pytest.mark.slow
def test_figures_without_limits_are_shown_and_not_judged(in_process: Run, alps: Alps) -> None:
    words = ("check", alps(400.9), "--expected", "olivia-openmpi", *OF_LATENCY)
    done = in_process(*words)
    assert done.code == 7
    said = "256 B 4.14 401 96.836 no limit --tolerance P% CANNOT TELL: there is no value to judge"
    assert not missing(said, done.out)
    assert "FAIL" not in done.out
    document = json.loads(in_process(*words, "--format", "json").out)
    assert (document["tolerance"], document["failures"], document["missing"]) == (None, [], [])
    assert document["summary"] == ["CANNOT TELL: there is no value to judge"]
    verdicts = {row["bytes"]: row["verdict"] for row in document["rows"]}
    assert verdicts == {1: "not measured", **dict.fromkeys((256, 1 << 20, 4 << 20), "no limit")}


@pytest.mark.slow
def test_file_without_limits_is_judged_with_the_default_and_says_so(
    in_process: Run, alps: Alps, tmp_path: Path
) -> None:
    (tmp_path / "site.csv").write_text("benchmark,bytes,value,unit\nlatency,256,4,us\n")
    for time, code, tolerance in ((4.5, 0, ()), (4.7, 4, ()), (4.7, 0, ("--tolerance", "20%"))):
        done = in_process("check", alps(time), "--expected", "site.csv", *tolerance)
        assert done.code == code
        assert ("1 reference without limits: judged with 15%" in done.out) == (not tolerance)


@pytest.mark.slow
def test_machine_on_one_host_is_not_compared_with_figures_between_two(in_process: Run) -> None:
    table = str(RESULTS / "two-core-vm.csv")
    words = ("check", table, "--where", "mpi=MPICH 5.0.2", "--expected", "fugaku")
    for tolerance in ((), ("--tolerance", "99%")):
        done = in_process(*words, *tolerance)
        assert done.code == 7
        assert not missing("references of 2 hosts were not compared: other hosts", done.out)


@pytest.mark.slow
@pytest.mark.parametrize(("bus", "code"), [(120.0, 4), (132.9, 4), (133.1, 0)])
def test_limits_of_alps_are_those_of_cscs(
    in_process: Run, tmp_path: Path, bus: float, code: int
) -> None:
    time = 1.75 * (1 << 30) / bus / 1e3
    half = f"{time:.1f}  {bus / 1.75:.2f}  {bus:.2f}      0"
    above = NCCL[: NCCL.index("  1048576")].replace("1048576", "1073741824")
    row = f"  1073741824   268435456  float   sum   -1  {half}  {half}\n"
    (tmp_path / "reduce.txt").write_text(above + row)
    where = ("--assume", "ranks=8", *HOSTS, "--where", "benchmark=allreduce")
    done = in_process("check", "reduce.txt", "--expected", "alps-mi300", *where)
    assert done.code == code, done.out
    assert "133 GB/s bus to 147 GB/s bus" in done.out


@pytest.mark.slow
def test_results_without_a_reference_exit_with_7(in_process: Run) -> None:
    done = in_process("check", REFERENCE, "--expected", "coreweave-gb200")
    assert done.code == 7
    assert not missing("3 references CANNOT TELL: there is no value to judge", done.out)


@pytest.mark.slow
def test_tolerance_is_of_references_that_state_none(in_process: Run, alps: Alps) -> None:
    words = ("check", alps(4.9), "--expected", "olivia-openmpi", *OF_LATENCY)
    assert in_process(*words).code == 7
    assert in_process(*words, "--tolerance", "15%").code == 4
    within = in_process(*words, "--tolerance", "20%")
    assert "CANNOT TELL: 3 of 4 values" in within.out


@pytest.mark.slow
def test_documents_have_every_reference(in_process: Run, alps: Alps) -> None:
    words = ("check", alps(4.9), "--expected", "alps-gh200", *HOSTS, "--format")
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
    in_process: Run, tmp_path: Path, name: str
) -> None:
    runs = copies(tmp_path / "runs", (0.98, 1.0, 1.01, 1.02, 0.99))
    done = succeeded(in_process("check", runs, "--update", name))
    assert not missing(f"{name} references tolerances", done.out)
    assert in_process("check", runs, "--update", name).code == 2
    assert in_process("check", runs, "--update", name, "--force").code == 0
    again = succeeded(in_process("check", runs, name))
    assert "not measured" not in again.out
    slower = in_process("check", copies(tmp_path / "slow", (1.3,)), "--expected", name)
    assert slower.code == 4
    assert " 0 of " in slower.out.splitlines()[-1]


def test_update_of_a_partition_is_a_document_for_reframe(in_process: Run, tmp_path: Path) -> None:
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


@pytest.mark.long
def test_failure_that_does_not_come_again_passes(
    in_process: Run, alps: Alps, tmp_path: Path
) -> None:
    words = ("check", alps(40.9), "--expected", "alps-gh200", *OF_LATENCY)
    done = succeeded(in_process(*words, *again(tmp_path, 3.9, 4.1)))
    said = "NOT CONFIRMED: 256 B 40.9 µs, 3.90 µs, 4.10 µs, median 4.10 µs PASS: 2 of 2"
    assert not missing(said, done.out)
    assert "FAIL" not in done.out
    document = json.loads(in_process(*words, *again(tmp_path, 3.9, 4.1), "--format", "json").out)
    assert (document["failures"], len(document["not_confirmed"])) == ([], 1)
    row = document["rows"][0]
    assert (row["value"], row["runs"], row["verdict"]) == (4.1, 3, "pass")


@pytest.mark.slow
def test_failure_that_comes_again_exits_with_4(in_process: Run, alps: Alps, tmp_path: Path) -> None:
    words = ("check", alps(4.9), "--expected", "alps-gh200", *HOSTS)
    done = in_process(*words, *again(tmp_path, 5.0, 3.9))
    assert done.code == 4
    assert not missing("FAIL: 256 B confirmed: 4.90 µs, 5.00 µs, median", done.out)


@pytest.mark.slow
def test_failure_out_of_place_fails_though_its_line_has_a_passing_row_in_place(
    in_process: Run, tmp_path: Path
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


@pytest.mark.slow
def test_confirmation_needs_no_launcher_around_it(in_process: Run, alps: Alps) -> None:
    words = ("check", alps(4.9), "--expected", "alps-gh200", "--confirm", "2")
    done = in_process(*words, OMPI_COMM_WORLD_SIZE="2")
    assert done.code == 2
    assert not missing("--confirm without a launcher", done.err)


@pytest.mark.slow
def test_report_chooses_one_of_several_systems(in_process: Run, tmp_path: Path) -> None:
    limits = {"latency": [9.0, None, 0.1, "us"]}
    (tmp_path / "site.json").write_text(json.dumps({"a:cpu": limits, "a:gpu": limits}))
    lines = Path(REFERENCE).read_text().splitlines(keepends=True)
    (tmp_path / "latency.csv").write_text("".join(lines[:18]))
    words = ("report", "latency.csv", "--expected", "site.json", "-o", "page.html")
    assert not missing("choose with --system a:cpu", in_process(*words).err)
    assert in_process(*words, "--system", "a:gpu").code == 0
    assert "as expected from a:gpu" in (tmp_path / "page.html").read_text(encoding="utf-8")
    done = in_process("report", "latency.csv", "--system", "a:gpu")
    assert (done.code, done.out) == (2, "")
    assert not missing("--system --expected", done.err)


@pytest.mark.long
def test_report_has_the_same_table(in_process: Run, tmp_path: Path, alps: Alps) -> None:
    done = in_process("report", alps(4.9), "--expected", "alps-gh200", *HOSTS, "-o", "page.html")
    assert done.code == 0, done.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Expected values" in page
    assert "up to 4.31 µs" in page
    assert "FAIL: 1 of 10 values as expected from alps-gh200" in page
