"""Logs as people keep them: labelled, damaged, indented, of old versions, of runs that ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.analysis.table import load
from omb_py.core.errors import OmbError
from omb_py.results.readers import Found, source_of
from tests import RESULTS, ROOT
from tests.helpers.reading import read, read_file

LOGS = ROOT / "tests" / "data" / "logs"
OMB = (ROOT / "tests" / "data" / "omb" / "osu_latency.txt").read_text()
IMB = (ROOT / "tests" / "data" / "imb" / "mpi1.txt").read_text()
NCCL = (ROOT / "tests" / "data" / "nccl-tests" / "all_reduce_2.13.txt").read_text()
OURS = "".join((RESULTS / "families-mpich.csv").read_text().splitlines(keepends=True)[:40])


def found(name: str) -> Found:
    return read_file(LOGS / name)


def numbers(part: Found, column: str = "latency_us") -> list[tuple[int, float]]:
    return [(row["bytes"], row[column]) for row in part.rows]


def without_run(part: Found) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "run"} for row in part.rows]


def error_of(path: Path) -> str:
    with pytest.raises(OmbError) as error:
        load(path)
    return str(error.value)


LABELS = [
    *("3:", "3: ", "  3: ", "[3] ", "[node-1.a:0] ", "nid001234: ", "worker-0: ", "worker-1  | "),
    *("[1,0]<stdout>:", "[1,0]<stdout>: ", "<stdout>:[1,0]:", "[prterun-n1-12@1,0]<stdout>: "),
    *("[1,0][node1:14462]<stdout>: ", "[Thu Nov 26 00:49:34 2026][1,0]<stdout>:"),
    *("Thu Nov 26 00:49:34 2026[1,0]<stdout>:", "Thu Nov 26 00:49:34 2026<stdout>:"),
    *("> ", ">", "> > "),
    *("2026-11-26T00:49:34.451443912Z ", "2026-11-26T00:49:34.45+01:00 stdout F "),
    *("2025-02-12 18:03:27,068 - INFO - utils - ", "2025-02-12 18:03:27,068 INFO ", "INFO:root:"),
    *("[2026-11-26 00:00:01] ", "00:49:34 ", "Nov 26 00:49:34 node1 osu_latency[123]: "),
    *("[pod/launcher-abc/main] ", "[pod/a/b] 2026-11-26T00:49:34.451443912Z ", "0: 00:49:34 "),
]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("text", [OMB, IMB, NCCL, OURS], ids=["omb", "imb", "nccl", "csv"])
def test_a_label_before_each_line_changes_no_row(text: str, label: str) -> None:
    lines = text.splitlines(keepends=True)
    labelled = "".join(label + line for line in lines)
    plain = read("all_reduce_perf.log", text.encode())
    part = read("all_reduce_perf.log", labelled.encode())
    assert without_run(part) == without_run(plain)
    assert [table.columns for table in part.tables] == [table.columns for table in plain.tables]
    assert [problem.line for problem in part.problems] == [one.line for one in plain.problems]


def test_labels_differ_in_numbers_days_and_months() -> None:
    lines = OMB.splitlines(keepends=True)
    times = [f"[{day} 00:0{i % 10}:0{i % 6} 2026][1,{i % 12}]: " for i, day in enumerate(DAYS)]
    labelled = "".join(times[i % len(times)] + line for i, line in enumerate(lines))
    assert without_run(read("job.log", labelled.encode())) == without_run(
        read("job.log", OMB.encode())
    )


DAYS = ["Mon Nov 30", "Tue Dec  1", "Wed Dec  2"]


@pytest.mark.parametrize(
    "text", ["nprocs: 2, min: 1 ms\n", "12: 5\n# Size\n", "a,b: 3\n# run: 2\n", "foo # bar: x\n"]
)
def test_lines_of_an_unlabelled_file_stay_as_they_are(text: str) -> None:
    assert source_of("a.log", text.encode()).content == text.encode()


@pytest.mark.parametrize(
    "name", ["timestamp.out", "timestamp-tag.out", "tag-detailed.out", "kubectl-timestamps.log"]
)
def test_labelled_logs_have_their_rows(name: str) -> None:
    part = found(name)
    assert {row["benchmark"] for row in part.rows} == {"latency"}
    assert numbers(part) == [(1, 0.51), (2, 0.48), (4, 0.49)]
    assert not part.problems


@pytest.mark.parametrize("before", ["foo bar> ", "// ", "> quoted by "])
def test_a_title_behind_something_unknown_is_named(before: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("".join(before + line for line in OMB.splitlines(keepends=True)))
    text = f"job.log:2: '{before}# OSU MPI Latency Test v7.4', which is no title that is known"
    assert text in error_of(path)


def test_rows_below_a_damaged_title_are_left_out() -> None:
    part = found("garbled-banner.txt")
    assert numbers(part) == [(1, 0.26), (2, 0.27), (4, 0.28)]
    (problem,) = part.problems
    assert (problem.line, problem.end, problem.rows) == (9, 11, 3)
    assert str(problem).startswith(f"{LOGS / 'garbled-banner.txt'}:9-11: ")


TABLE = "# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
HEADING = "# Size       Avg Latency(us)\n"
ROWS = "4                       3.05\n8                       3.09\n"


@pytest.mark.parametrize(
    ("second", "line", "word"),
    [
        (HEADING + ROWS.replace("4 ", "16"), 7, "second heading"),
        (f"# Datatype: MPI_CHAR.\n{HEADING}{ROWS}", 8, "second heading"),
        (f"# Size      Bandwidth (MB/s)\n{ROWS}", 7, "not those of osu_allreduce"),
        (f"# Size           Overall(us)\n{ROWS}", 7, "not those of osu_allreduce"),
        (f"# OSU MPI Bcast La\n{HEADING}{ROWS}", 8, "no title"),
        (f"OSU MPI Broadcast Latency Test v7.4\n{HEADING}{ROWS}", 8, "no title"),
        (f"$ srun osu_bcast\n{HEADING}{ROWS}", 8, "osu_bcast is named"),
        (f"# Size       Avg Waiting(us)\n{ROWS}", 7, "not known"),
    ],
)
def test_rows_of_another_benchmark_are_separate(second: str, line: int, word: str) -> None:
    part = read("job.log", (TABLE + HEADING + ROWS + second).encode())
    assert numbers(part) == [(4, 3.05), (8, 3.09)]
    (problem,) = part.problems
    assert (problem.line, problem.rows) == (line, 2)
    assert word in problem.text


def test_a_message_of_the_program_ends_no_table() -> None:
    text = TABLE + HEADING + ROWS.replace("8 ", "osu_allreduce: a warning\n8 ")
    assert numbers(read("job.log", text.encode())) == [(4, 3.05), (8, 3.09)]


def test_a_heading_for_each_element_type_is_of_one_benchmark() -> None:
    text = TABLE + HEADING + ROWS + "# Datatype: MPI_INT.\n" + HEADING + ROWS
    part = read("job.log", text.encode())
    assert [row["mpi_type"] for row in part.rows] == ["MPI_CHAR"] * 2 + ["MPI_INT"] * 2
    assert not part.problems


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        (HEADING + ROWS, 2, "no title"),
        (TABLE + ROWS, 3, "no heading"),
        (TABLE + HEADING.replace("# ", "") + ROWS, 4, "no heading"),
        (TABLE + "# Message size   Latency\n" + ROWS, 4, "no heading"),
        (TABLE.replace("# OSU", "OSU") + HEADING + ROWS, 4, "no title"),
    ],
)
def test_rows_without_title_or_heading_are_named(text: str, line: int, word: str) -> None:
    part = read("job.log", (text + OMB).encode())
    assert {row["benchmark"] for row in part.rows} == {"latency"}
    (problem,) = part.problems
    assert (problem.line, problem.rows) == (line, 2)
    assert word in problem.text


@pytest.mark.parametrize("blanks", [" ", "    ", "\t"])
def test_indented_rows_are_read(blanks: str) -> None:
    rows = "".join(blanks + line for line in ROWS.splitlines(keepends=True))
    for text in (TABLE + HEADING + rows, blanks + TABLE + blanks + HEADING + rows):
        part = read("job.log", text.encode())
        assert numbers(part) == [(4, 3.05), (8, 3.09)]
        assert not part.problems


def test_headings_with_two_hashes_are_headings() -> None:
    part = found("heading-twice-hashed.txt")
    latency = [row for row in part.rows if row["benchmark"] == "latency"]
    assert [(row["bytes"], row["latency_us"]) for row in latency] == [(0, 0.24), (1, 0.26)]
    rates = [row for row in part.rows if row["benchmark"] == "mbw_mr"]
    assert {(row["pairs"], row["window"]) for row in rates} == {(24, 64)}
    assert [row["bandwidth_MBps"] for row in rates] == [169.15, 341.44]
    assert [row["messages_per_s"] for row in rates] == [169152814.02, 170719764.60]


def test_a_heading_of_omb_5_without_hash_is_a_heading() -> None:
    first, second = found("omb5-ibarrier.txt").rows
    assert (first["benchmark"], second["benchmark"]) == ("ibarrier", "barrier")
    times = ("overall_us", "compute_us", "latency_us", "overlap_percent")
    assert [first[name] for name in times] == [8.85, 5.04, 4.02, 5.04]
    assert second["latency_us"] == 1.88
    assert first["ranks"] == second["ranks"] == 8


@pytest.mark.parametrize(
    ("name", "column", "values"),
    [
        ("get-latency", "latency_us", [(0, 5.31), (1, 6.66), (2, 6.44)]),
        ("get-bw", "bandwidth_MBps", [(1, 0.75), (2, 1.56), (4, 3.12)]),
    ],
)
def test_titles_of_omb_4_are_known(name: str, column: str, values: list[tuple[int, float]]) -> None:
    part = found(f"omb42-{name}.log")
    assert numbers(part, column) == values
    assert {row["benchmark"] for row in part.rows} == {name.replace("-", "_")}
    assert {(row["ranks"], row["suite"]) for row in part.rows} == {(2, "OSU 4.2")}


@pytest.mark.parametrize(
    ("title", "benchmark", "sync"),
    [
        ("One Sided MPI_Put Bi-directional Bandwidth", "put_bibw", None),
        ("One Sided MPI_Get Passive Bandwidth", "get_bw", "lock"),
        ("One Sided MPI_Put Passive latency", "put_latency", "lock"),
        ("MPI One Sided MPI_Accumulate Latency", "acc_latency", None),
        ("MPI One Sided MPI_Fetch_and_op with Flush Latency", "fop_latency", "flush"),
    ],
)
def test_old_titles_name_the_synchronization(title: str, benchmark: str, sync: str | None) -> None:
    unit = "Bi-Bandwidth (MB/s)" if benchmark == "put_bibw" else "Latency (us)"
    unit = "Bandwidth (MB/s)" if benchmark == "get_bw" else unit
    text = f"# OSU {title} Test v3.1.1\n# Size    {unit:>20}\n8         {'0.45':>20}\n"
    (row,) = read("job.log", text.encode()).rows
    assert (row["benchmark"], row.get("window_sync"), row["window_kind"]) == (
        benchmark,
        sync,
        "create",
    )


def test_a_row_with_all_columns_below_a_short_heading_is_read() -> None:
    row = "4                       3.05              2.95              3.15        1000\n"
    (one,) = read("job.log", (TABLE + HEADING + row).encode()).rows
    assert (one["latency_us"], one["latency_min_us"], one["latency_max_us"]) == (3.05, 2.95, 3.15)
    assert one["iterations"] == 1000


def test_a_crashed_run_is_named() -> None:
    text = error_of(LOGS / "crashed-after-banner.out")
    assert "crashed-after-banner.out:3: osu_latency of OSU 5.8 printed no row" in text


IMB_START = IMB[: IMB.index("#bytes")]
NCCL_START = (
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20\n"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OMB[: OMB.index("# Size")], "osu_latency of OSU 7.4 printed no row"),
        (IMB_START, "PingPong of IMB"),
        (IMB_START[: IMB_START.index("# Benchmarking")], "IMB 2021"),
        (f"./all_reduce_perf\n{NCCL_START}node1: Test NCCL failure", "all_reduce_perf of nccl"),
        (f"./all_reduce_perf\n{NCCL[: NCCL.index('(us)')]}", "all_reduce_perf of nccl"),
    ],
    ids=["omb", "imb_table", "imb", "nccl", "nccl_header"],
)
def test_a_run_without_a_row_is_named(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(text)
    assert words in error_of(path)
    path.write_text(text + "\nslurmstepd: error: *** JOB 1 CANCELLED\n" + OMB)
    assert any(words in problem.text for problem in load(path).problems)
    assert len(load(path).rows) == 4


def test_allreduce_alone_has_a_bus_factor_above_one() -> None:
    part = found("nccl-table-alone-sum.txt")
    assert {(row["benchmark"], row["ranks"]) for row in part.rows} == {("allreduce", 16)}
    assert len(part.rows) == 8
    first = part.rows[0]
    assert (first["bytes"], first["latency_us"], first["busbw_GBps"]) == (16 << 20, 1191.8, 26.39)


def test_a_file_s_name_tells_the_program_of_nccl_tests(tmp_path: Path) -> None:
    part = found("nccl_allgather.log")
    assert {(row["benchmark"], row["ranks"]) for row in part.rows} == {("allgather", 8)}
    assert len(part.rows) == 10
    assert [problem.line for problem in part.problems] == [16]
    content = (LOGS / "nccl_allgather.log").read_bytes()
    for name in ("NCCL-AllGather-8.txt", "all_gather_perf.out", "all-gather.log"):
        assert len(read(name, content).rows) == 10
    path = tmp_path / "job.log"
    path.write_bytes(content)
    assert "job.log:14:" in error_of(path)
    assert "--assume benchmark=" in error_of(path)
    assert len(load(path, {"benchmark": "allgather"}).rows) == 10
    assert len(load(tmp_path, {"benchmark": {"j*": "all_gather"}}).rows) == 10


def test_indented_tables_of_nccl_tests_are_read() -> None:
    part = found("nccl-indented.md")
    assert {(row["benchmark"], row["ranks"]) for row in part.rows} == {("allreduce", 4)}
    sizes = [8, 128, 2048, 32768, 524288, 8388608, 134217728]
    assert [row["bytes"] for row in part.rows if row["in_place"]] == sizes
    assert part.rows[-2]["latency_us"] == 2704.4
    assert not part.problems


def test_rows_of_two_copies_of_nccl_tests_are_left_out() -> None:
    lines = NCCL.splitlines(keepends=True)
    twice = "".join(line * 2 for line in lines)
    part = read("all_reduce.log", twice.encode())
    assert not part.rows
    assert any("copies of a program" in one.text for one in part.problems)


OTHERS = {
    "mpi4py's demo programs": "# MPI Latency Test\n# Size [B]        Latency [us]\n0   1.52\n",
    "nvbandwidth": "nvbandwidth Version: v0.5\n\nRunning host_to_device_memcpy_ce.\n",
    "JSON (option -j)": '{\n\t"nvbandwidth" : {\n\t\t"git_version" : "v0.8",\n',
    "the text that rccl-tests prints": '{"name":"AllReduce", "gpus":4, "size":1024, "inPlace":0, ',
    "rccl-tests' option -x": 'numCycle,collective,gpus,size,type,redop\n0,"Broadcast",4,1024,\n',
    "CSV and JSON of rccl-tests": "collective, ranks, rankspernode, gpusperrank, size, type\n",
}


@pytest.mark.parametrize("words", OTHERS)
def test_formats_that_are_not_read_name_what_is(words: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(OTHERS[words])
    error = error_of(path)
    assert words in error
    assert "not read" in error
    path.write_text(OTHERS[words] + OMB)
    results = load(path)
    assert len(results.rows) == 4
    assert words in str(results.problems[0])


def test_no_bytes_have_no_bandwidth_and_no_note() -> None:
    assert load(ROOT / "tests" / "data" / "imb" / "band.txt").problems == ()


def test_a_run_without_a_row_quotes_the_line_that_says_why(tmp_path: Path) -> None:
    text = error_of(LOGS / "heading-glued.txt")
    assert "heading-glued.txt:4: osu_put_bibw of OSU 5.6.2 printed no row: '# Size" in text
    assert "Error: ucp_atomic_cswap64 failed: -1'" in text
    path = tmp_path / "job.log"
    path.write_text(f"{TABLE}[n1] *** a warning\n{'x' * 200} slurmstepd: error: oom-kill\n")
    assert error_of(path).endswith("xx slurmstepd: error'; " + f"{path} has no whole row")
    path.write_text(TABLE + "# Size       Avg Waiting(us)\nFatal error in MPI_Init\n")
    assert "osu_allreduce of OSU 7.4 printed no row: 'Fatal error in MPI_Init'" in error_of(path)
    path.write_text(f"{TABLE}MPI_ABORT was invoked on rank 1\n")
    assert "printed no row: 'MPI_ABORT was invoked on rank 1'" in error_of(path)


@pytest.mark.parametrize("text", [OMB, IMB, NCCL], ids=["omb", "imb", "nccl"])
def test_colours_of_a_terminal_change_no_row(text: str) -> None:
    colored = "".join(f"\x1b[1;32m{line}\x1b[0m\n" for line in text.splitlines())
    part, plain = (read("all_reduce_perf.log", one.encode()) for one in (colored, text))
    assert without_run(part) == without_run(plain) != []


def test_rows_below_a_heading_with_something_glued_to_it_are_read() -> None:
    glued = HEADING.rstrip("\n") + "[n1:17] a warning (us)\n"
    part = read("job.log", (TABLE + glued + ROWS).encode())
    assert numbers(part) == [(4, 3.05), (8, 3.09)]
    more = read("job.log", (TABLE + glued + ROWS.replace("3.05", "3.05   1.00")).encode())
    assert numbers(more) == [(8, 3.09)], "the heading may have lost a column"


def test_tables_in_documents_are_read(tmp_path: Path) -> None:
    part = found("imb-indented.rst")
    assert {(row["benchmark"], row["ranks"]) for row in part.rows} == {("imb_pingpong", 2)}
    assert numbers(part) == [(0, 3.60), (1, 4.58), (2, 4.57)]
    mixed = f"{TABLE}{HEADING}{ROWS}\n> # they had\n> 16   1.00\n"
    assert numbers(read("mail.txt", mixed.encode())) == [(4, 3.05), (8, 3.09)]
    fenced = f"Results:\n\n```{TABLE}{HEADING}{ROWS}```\n"
    assert numbers(read("page.md", fenced.encode())) == [(4, 3.05), (8, 3.09)]


@pytest.mark.parametrize("text", [OMB, IMB, NCCL, OURS], ids=["omb", "imb", "nccl", "csv"])
def test_a_rotated_log_is_read_and_other_names_are_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "all_reduce.dat.1").write_text(text)
    rows = len(load(tmp_path).rows)
    assert rows == len(load(tmp_path / "all_reduce.dat.1").rows) > 0
    (tmp_path / "all_reduce.rst").write_text("\n".join(f"  {line}" for line in text.splitlines()))
    if text is not OURS:
        told = [str(problem) for problem in load(tmp_path).problems]
        assert any("all_reduce.rst: left out: it holds results" in text for text in told)
