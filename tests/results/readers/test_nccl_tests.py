"""nccl-tests' tables: every layout since 2.0, whole rows only, sizes and bandwidths checked."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omb_py.benchmarks import all_benchmarks
from omb_py.core.options import Options
from omb_py.results.readers import source_of
from omb_py.results.readers.nccl_tests import READER, ROW
from tests import ROOT
from tests.helpers.damage import without_place
from tests.helpers.reading import read, read_by, read_file
from tests.helpers.refusals import missing

DATA = ROOT / "tests" / "data" / "nccl-tests"
LOGS = ROOT / "tests" / "data" / "logs"
FILES = sorted(path for path in DATA.glob("*.txt") if path.stem != "table_alone")
ALONE = (DATA / "table_alone.txt").read_text()
HEADINGS = ["#", "size", "count", "type", "redop", "root"] + 2 * [
    "time",
    "algbw",
    "busbw",
    "#wrong",
]
DEVICES = "".join(
    f"#  Rank  {rank} Group  0 Pid   4000 on      node1 device  {rank} [0x1b] NVIDIA A30\n"
    for rank in range(8)
)


found = partial(read_by, READER.read)


def rows(name: str) -> list[dict[str, Any]]:
    return found((DATA / name).read_bytes(), name).rows


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_line_of_numbers_is_two_rows(path: Path) -> None:
    content = path.read_bytes()
    lines = list(source_of(path.name, content))
    numbers = [index + 1 for index, line in enumerate(lines) if line.startswith("  ")]
    told = found(content, path.name)
    refused = [problem.line for problem in told.problems]
    assert all("no bytes" in problem.text for problem in told.problems)
    assert [row["line"] for row in told.rows] == [
        line for line in numbers for _ in range(2) if line not in refused
    ]
    assert [row["in_place"] for row in told.rows] == [False, True] * (len(told.rows) // 2)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_bus_bandwidth_is_what_our_own_formula_gives(path: Path) -> None:
    ours = {benchmark.name: benchmark for benchmark in all_benchmarks()}
    for row in rows(path.name):
        if (traffic := getattr(ours.get(row["benchmark"]), "traffic", None)) is None:
            continue
        size, factor = traffic(Options(), row["bytes"], row["ranks"])
        bus = size / row["latency_us"] / 1e3 * factor
        assert row["busbw_GBps"] == pytest.approx(bus, rel=0.01, abs=0.006)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_log_after_another_has_the_same_rows_in_a_run_of_its_own(path: Path) -> None:
    alone = found(path.read_text())
    for before in FILES:
        other = found(before.read_text())
        both = found(before.read_text() + path.read_text())
        assert without_place(both.rows) == without_place(other.rows + alone.rows)
        assert len(both.runs) == len(other.runs) + len(alone.runs)


def test_sizes_are_blocks_where_ours_are_blocks() -> None:
    assert {row["bytes"] * 16 for row in rows("alltoall_2.17_tagged.txt")} >= {1024, 8589934592}
    assert rows("all_gather_2.13.txt")[0]["bytes"] == 8
    assert rows("reduce_scatter_2.13.txt")[0]["bytes"] == 65536
    assert rows("all_reduce_2.13.txt")[0]["bytes"] == 8
    assert rows("gather_all_roots_2.13.txt")[0]["bytes"] == 1024


@pytest.mark.parametrize(
    ("name", "benchmarks"),
    [
        ("all_reduce_2.17_split", {"allreduce"}),
        ("reduce_scatter_2.13", {"reduce_scatter_block"}),
        ("sendrecv_2.13", {"sendrecv"}),
        ("wrong_2.13", {"reduce"}),
        ("batch_2.13", {"allreduce", "alltoall", "nccl_hypercube"}),
    ],
)
def test_benchmark_is_named_by_program_command_or_file(name: str, benchmarks: set[str]) -> None:
    assert {row["benchmark"] for row in rows(f"{name}.txt")} == benchmarks


def test_a_heading_whose_halves_differ_in_blanks_is_a_heading() -> None:
    told = read_file(LOGS / "nccl-heading-blanks.txt")
    assert {(row["benchmark"], row["ranks"]) for row in told.rows} == {("allreduce", 16)}
    times = [(row["bytes"], row["latency_us"]) for row in told.rows]
    assert times == [(8, 12.90), (8, 12.87), (16 << 20, 1191.8), (16 << 20, 1199.5)]


def test_rows_below_no_heading_are_named() -> None:
    told = read_file(LOGS / "nccl-grepped.txt")
    assert [(row["bytes"], row["busbw_GBps"]) for row in told.rows] == [
        (4 << 30, 316.87),
        (4 << 30, 316.16),
    ]
    assert [problem.line for problem in told.problems] == [13, 15]
    lines = (LOGS / "nccl-grepped.txt").read_text().splitlines(keepends=True)
    (alone,) = read("x.txt", "".join(lines[12:]).replace("=", "\n").encode()).problems[:1]
    assert "no heading is above this row" in alone.text
    unknown = found(ALONE.replace("busbw", "newbw busbw"), "all_reduce.log")
    assert unknown.rows == []
    assert "headings that are not known are above: '#" in unknown.problems[0].text


SETTINGS_LINE = "# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor)\n"


def tables_of(settings: str, other: str) -> str:
    """A command that names broadcast with its table, and a table without a name below it."""
    of_broadcast = (DATA / "broadcast_2.0.txt").read_text().splitlines(keepends=True)
    table = "".join(line for line in of_broadcast if "nThread" not in line and "_perf" not in line)
    return f"$ srun ./broadcast_perf\n{SETTINGS_LINE}{table}{settings}{other or table}"


def test_one_command_in_a_loop_names_all_its_tables() -> None:
    told = read_file(LOGS / "nccl-loop.log")
    assert len(told.rows) == 8
    assert {row["benchmark"] for row in told.rows} == {"allreduce"}
    assert len({row["run"] for row in told.rows}) == 2
    assert told.problems == []
    again = found(tables_of(SETTINGS_LINE, ""))
    assert {row["benchmark"] for row in again.rows} == {"bcast"}
    assert len({row["run"] for row in again.rows}) == 2


@pytest.mark.parametrize(
    ("settings", "other", "after"),
    [
        (SETTINGS_LINE.replace("16", "32"), "", ""),
        ("", "", ""),
        (SETTINGS_LINE, "", "$ ./reduce_perf\n"),
        (SETTINGS_LINE, "8 2 float sum 0 10.0 0.00 0.00 0 10.0 0.00 0.00 0\n", ""),
    ],
    ids=["settings", "no_settings", "named_later", "other_rows"],
)
def test_a_table_that_may_be_of_another_program_is_left_out(
    settings: str, other: str, after: str
) -> None:
    heading = " ".join(HEADINGS) + "\n"
    told = found(tables_of(settings, heading + other if other else "") + after)
    assert {row["benchmark"] for row in told.rows} == {"bcast"}
    assert len({row["run"] for row in told.rows}) == 1
    assert told.problems


def test_rows_have_suite_ranks_hosts_and_counts() -> None:
    row = rows("alltoall_2.17_tagged.txt")[0]
    assert (row["suite"], row["ranks"], row["hosts"]) == ("nccl-tests 2.17.6", 16, 2)
    assert (row["binding"], row["buffer"], row["placement"]) == ("nccl", "cuda", "D")
    assert (row["iterations"], row["warmup"]) == (20, 1)
    row = rows("rccl_all_reduce.txt")[0]
    assert (row["suite"], row["binding"], row["buffer"]) == (
        "rccl-tests develop:1a2b3c4",
        "rccl",
        "hip",
    )


def test_wrong_elements_fail_and_unchecked_ones_say_nothing() -> None:
    assert [row["validation"] for row in rows("wrong_2.13.txt")] == (
        ["Pass", "Pass", *["Fail"] * 4, "Pass", "Pass"]
    )
    assert [row.get("validation") for row in rows("sendrecv_2.13.txt")][:2] == ["Pass", None]
    assert {row.get("validation") for row in rows("broadcast_2.0.txt")} == {None}
    assert {row["validation"] for row in rows("all_reduce_2.0.txt")} == {None}, "rounding errors"
    assert {row["validation"] for row in rows("all_gather_2.0.txt")} == {"Pass"}


def test_wrong_elements_may_be_millions() -> None:
    text = (DATA / "all_reduce_2.20_bitwise.txt").read_text()
    told = found(text.replace("       0         0", "  1.23457e+06         0".rjust(17), 1))
    assert [row["validation"] for row in told.rows][:2] == ["Fail", "Pass"]


def test_a_root_and_a_library_are_said_where_they_are_known() -> None:
    assert {row.get("root") for row in rows("broadcast_2.0.txt")} == {"0"}
    assert {row.get("root") for row in rows("all_reduce_2.13.txt")} == {None}
    text = (DATA / "broadcast_2.0.txt").read_text()
    (run,) = found(text).runs.values()
    assert run["library"] == "2.9.6+cuda11.2"
    assert run["device"] == "Tesla V100-PCIE-16GB"
    assert all(
        "root" not in row for row in found(text.replace("float       0", "float      -1")).rows
    )


def test_roots_types_and_operations_tell_rows_apart() -> None:
    assert [row["root"] for row in rows("gather_all_roots_2.13.txt")][::6] == ["0", "1", "2"]
    kinds = {(row["dtype"], row.get("part")) for row in rows("reduce_scatter_2.13.txt")}
    assert kinds == {(t, op) for t in ("float16", "float32") for op in (None, "max")}


def test_what_is_not_one_plain_call_after_another_is_said() -> None:
    assert {row["part"] for row in rows("all_reduce_2.17_split.txt")} == {"2 groups"}
    assert {row["ranks"] for row in rows("all_reduce_2.17_split.txt")} == {4}
    part = rows("reduce_2.18_stamped.txt")[0]["part"]
    assert not missing("graph 10, blocking: wait barrier", part)
    assert part.endswith(", avg")


@pytest.mark.parametrize(
    ("iterations", "skipped", "several", "tail", "largest"),
    [
        (20, "", 1, None, 15.42),
        (100, "", 1, 15.16, 15.42),
        (101, "; summary skips first 2 iterations", 1, None, 15.42),
        (102, "; summary skips first 2 iterations", 1, 15.16, 15.42),
        (200, "", 5, None, None),
    ],
)
def test_tails_of_single_iterations_are_those_of_the_slowest_process(
    iterations: int, skipped: str, several: int, tail: float | None, largest: float | None
) -> None:
    text = (DATA / "all_reduce_2.18_iterations.txt").read_text()
    settings = f" iters: {iterations} agg iters: {several}"
    text = text.replace(" iters: 20 agg iters: 1", settings).replace(
        " rows \n", f" rows{skipped} \n"
    )
    row, in_place = found(text).rows[:2]
    assert (row.get("slowest_p99_us"), row.get("slowest_max_us")) == (tail, largest)
    assert (in_place.get("slowest_p99_us"), in_place.get("slowest_max_us")) == (
        tail and 15.62,
        largest and 15.88,
    )


def test_other_columns_between_leave_tails_where_they_are() -> None:
    row, in_place = rows("all_reduce_2.20_bitwise.txt")[:2]
    assert (row["slowest_max_us"], in_place["slowest_max_us"]) == (12.73, 13.05)


def test_bus_bandwidth_twice_is_no_algorithm_bandwidth() -> None:
    assert {row["algbw_GBps"] for row in rows("all_gather_2.0.txt")} == {None}
    assert None not in {row["busbw_GBps"] for row in rows("all_gather_2.0.txt")}


def test_a_table_alone_needs_a_name_unless_it_is_of_allreduce() -> None:
    assert {(row["benchmark"], row["ranks"]) for row in found(ALONE).rows} == {("allreduce", 8)}
    named = found(ALONE, "run1/all_reduce.log").rows
    assert {row["benchmark"] for row in named} == {"allreduce"}
    assert found(f"./alltoall_perf -g 8\n{ALONE}").rows == [], "these are no alltoall's sizes"
    lines = (DATA / "broadcast_2.0.txt").read_text().splitlines(keepends=True)
    other = found("".join(line for line in lines if "broadcast" not in line))
    assert not other.rows
    assert "which program" in other.problems[0].text
    assert "--assume benchmark=" in other.problems[0].text


def test_bandwidths_tell_an_allreduce_of_known_ranks() -> None:
    named = found(DEVICES + ALONE).rows
    assert {(row["benchmark"], row["ranks"]) for row in named} == {("allreduce", 8)}


def test_two_names_before_a_table_are_none() -> None:
    text = f"# runs broadcast_perf and reduce_perf\n{ALONE}"
    assert {row["benchmark"] for row in found(text).rows} == {"allreduce"}


def test_missing_device_takes_ranks_from_bandwidths() -> None:
    text = "".join(line for line in DEVICES.splitlines(keepends=True) if "Rank  3" not in line)
    assert {row.get("ranks") for row in found(f"./all_reduce_perf\n{text}{ALONE}").rows} == {8}


def test_the_processor_s_time_is_not_the_time() -> None:
    told = found("./all_reduce_perf -C 1\n" + ALONE.replace("   time", "cputime"))
    assert not told.rows
    assert "processor" in told.problems[0].text


def test_an_unknown_program_is_not_taken_for_another() -> None:
    text = f"# Collective test starting: all_to_some_perf\n{DEVICES}{ALONE}"
    assert not found(text).rows


def test_started_program_outranks_the_file_name() -> None:
    text = f"# Collective test starting: all_reduce_perf\n{DEVICES}{ALONE}"
    assert {row["benchmark"] for row in found(text, "all_gather.log").rows} == {"allreduce"}


def test_last_row_without_end_is_whole_up_to_wrong_elements() -> None:
    text = f"./all_reduce_perf\n{ALONE}"
    assert found(text.rstrip("\n")).rows == found(text).rows
    pressed = f"./all_reduce_perf\n{' '.join(HEADINGS)}\n{' '.join(ALONE.split()[-13:])}"
    assert len(found(pressed + "\n").rows) == 2
    assert len(found(pressed).rows) == 2, "a number of wrong elements is none or is some"
    assert not found(pressed[:-2]).rows


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("     1048576        262144", "     1048576        262145", "size"),
        ("     1048576        262144", "     1048577        262144", "size"),
        ("   float     sum", "   floot     sum", "not a whole row"),
        ("     1048576        262144", "     1048576             0", "size"),
        ("  sum      -1", "  sum", "not a whole row"),
    ],
)
def test_a_row_that_contradicts_itself_is_left_out(old: str, new: str, reason: str) -> None:
    text = f"./all_reduce_perf\n{ALONE}"
    told = found(text.replace(old, new, 1))
    assert len(told.rows) == len(found(text).rows) - 2
    assert reason in told.problems[0].text


def test_a_count_of_nothing_is_no_part_of_a_size() -> None:
    text = (DATA / "all_gather_2.13.txt").read_text()
    row = [line for line in text.splitlines() if ROW.match(line)][2]
    count = row.split()[1]
    wrong = text.replace(row, row.replace(f" {count} ", " 0 ".rjust(len(count) + 2), 1))
    told = found(wrong, "all_gather_2.13.txt")
    assert len(told.rows) == len(rows("all_gather_2.13.txt")) - 2
    assert any("of the elements" in problem.text for problem in told.problems)


def test_count_of_nothing_on_unknown_ranks_is_left_out() -> None:
    text = (DATA / "all_gather_2.13.txt").read_text()
    row = next(line for line in text.splitlines() if line.startswith("         512            16 "))
    heading = text[text.index("#                ") : text.index("           0             0 ")]
    told = found(heading + row.replace(" 16 ", "  0 ") + "\n", "all_gather.log")
    assert told.rows == []
    assert [problem.text for problem in told.problems] == [
        "a size that is not that of the elements, left out"
    ]


ROWS = ((4194304, 12.67, 331.05, 13530.01), (536870912, 1274.7, 421.17, 1731844.23))
COMMAND = "$ mpirun -np 16 -N 8 ./build/all_reduce_perf -b 4M -e 512M -g 1 -n 20\n"


def of_one_rank(pid: int = 4000, copies: int = 1) -> str:
    """A process's table: it has one rank, as without MPI. Several print their rows in turn."""
    lines = ["# nThread 1 nGpus 1 minBytes 4194304 maxBytes 536870912 step: 128(factor)"]
    lines += [f"#  Rank  0 Group  0 Pid {pid} on  node1 device  0 [0x1b] NVIDIA H100"]
    lines += [" ".join(HEADINGS)]
    for size, time, bandwidth, in_place in ROWS:
        cells = f"{size} {size // 4} float sum -1 {time} {bandwidth:.2f} 0.00 0"
        lines += [f"{cells} 0.31 {in_place:.2f} 0.00 0"] * copies
    return "\n".join([*lines, "# Avg bus bandwidth    : 0", ""])


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        (COMMAND + of_one_rank(), 1),
        (COMMAND.replace("-np 16", "\\\n  -n 16") + of_one_rank(), 1),
        (COMMAND.replace("mpirun -np", "srun -n") + of_one_rank() + of_one_rank(4001), 2),
        (COMMAND + of_one_rank(copies=2), 1),
    ],
    ids="launched continued twice mixed".split(),
)
def test_processes_that_ran_alone_are_named(text: str, tables: int) -> None:
    told = found(text.encode(), "job.out")
    assert {row["ranks"] for row in told.rows} == {1}
    alone = [data["alone"] for data in told.runs.values() if "alone" in data]
    assert len(alone) == len(told.runs) == tables
    words = "16 processes were started, and the table has 1 rank: each process ran alone"
    assert all(reason.startswith(words) for reason in alone)
    assert sum(words in problem.text for problem in told.problems) == tables


@pytest.mark.parametrize(
    "command",
    [COMMAND.replace("-np 16", "-np 1"), "$ ./all_reduce_perf -g 1 -n 20\n", "$ srun -n 16 date\n"],
)
def test_one_rank_that_was_asked_for_is_no_problem(command: str) -> None:
    told = found((command + of_one_rank()).encode(), "all_reduce.out")
    assert not told.problems
    assert all("alone" not in data for data in told.runs.values())


def test_table_with_all_launched_ranks_is_no_problem() -> None:
    lines = (DATA / "all_reduce_2.13.txt").read_text()
    (hosts,) = {row["ranks"] for row in found(lines.encode(), "x.txt").rows}
    told = found((COMMAND.replace("16", str(hosts)) + lines).encode(), "x.txt")
    assert all("alone" not in data for data in told.runs.values())
