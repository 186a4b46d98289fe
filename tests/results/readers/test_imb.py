"""Intel MPI Benchmarks' tables: every program's, whole rows only, like with like."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omb_py.benchmarks import all_benchmarks
from omb_py.results.readers import source_of
from omb_py.results.readers.imb import READER
from tests import ROOT
from tests.helpers.reading import read_by

DATA = ROOT / "tests" / "data" / "imb"
FILES = sorted(DATA.glob("*.txt"))
BANNER = "#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part\n"
FRAME = """\
{banner}
# Calling sequence was:

# IMB-MPI1 {options}

# Minimum message length in bytes:   0
# Maximum message length in bytes:   4194304
#
# MPI_Datatype                   :   MPI_BYTE
# MPI_Datatype for reductions    :   MPI_FLOAT

#---------------------------------------------------
# Benchmarking {name}
# #processes = {ranks}
#---------------------------------------------------
"""
RATES = "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
TIMES = "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
PING = "            8         1000         2.00         4.00\n"
ROW = "         1024         1000         4.10         6.30         5.20\n"


found = partial(read_by, READER.read)


def rows(name: str) -> list[dict[str, Any]]:
    return found((DATA / name).read_bytes(), name).rows


def old(version: str, name: str, table: str, options: str = "", ranks: int = 2) -> list[Any]:
    banner = f"#    Intel (R) MPI Benchmarks {version}, MPI-1 part    "
    return found(FRAME.format(banner=banner, options=options, name=name, ranks=ranks) + table).rows


def of(name: str, benchmark: str, **values: Any) -> list[dict[str, Any]]:
    wanted = values | {"benchmark": benchmark}
    return [row for row in rows(name) if all(row.get(k) == v for k, v in wanted.items())]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_line_of_numbers_below_a_heading_is_a_row(path: Path) -> None:
    content = path.read_bytes()
    lines = list(source_of(path.name, content))
    told = found(content, path.name)
    numbers = [i + 1 for i, text in enumerate(lines) if text.startswith("     ") and "." in text]
    headings = [i + 1 for i, text in enumerate(lines) if "#repetitions" in text]
    refused = [problem.line for problem in told.problems]
    assert sorted([*(row["line"] for row in told.rows), *refused]) == [
        line for line in numbers if line not in headings and headings and line > headings[0]
    ]
    assert all("not measured" in problem.text for problem in told.problems)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_names_are_ours_or_begin_with_imb(path: Path) -> None:
    ours = {benchmark.name for benchmark in all_benchmarks()}
    for row in rows(path.name):
        assert row["benchmark"] in ours or row["benchmark"].startswith("imb_")
        assert row["suite"] == "IMB 2021.11"
        assert row["ranks"] >= 1
        assert row["iterations"] >= 1


@pytest.mark.parametrize(
    ("file", "benchmark", "where", "wanted"),
    [
        ("mpi1", "latency", {"bytes": 1}, {"ranks": 2, "iterations": 50, "latency_us": 4.96}),
        ("mpi1", "allgather", {"ranks": 4, "bytes": 16}, {"latency_us": 77.88, "sync": "barrier"}),
        ("mpi1", "allgather", {"latency_us": 77.88}, {"latency_min_us": 41.29}),
        ("mpi1", "allgather", {"latency_us": 77.88}, {"latency_max_us": 110.5}),
        ("mpi1", "allgather", {"ranks": 2, "bytes": 16}, {"latency_us": 20.0}),
        ("mpi1", "barrier", {"ranks": 4}, {"latency_us": 4.44}),
        ("nbc_pure", "iallgather", {"bytes": 16}, {"latency_us": 1.77, "latency_min_us": 1.62}),
        ("nbc_pure", "iallgather", {"bytes": 16}, {"latency_max_us": 1.92}),
        ("nbc", "imb_ibcast", {"ranks": 4, "bytes": 16}, {"overall_us": 14.28, "compute_us": 3.02}),
        ("nbc", "imb_ibcast", {"overall_us": 14.28}, {"latency_us": 29.19}),
        ("nbc", "imb_ibcast", {"overall_us": 14.28}, {"overlap_percent": 61.43}),
        ("rma", "put_latency", {"latency_us": 1.85}, {"window_sync": "flush", "part": None}),
        ("rma", "cas_latency", {}, {"mpi_type": "MPI_INT", "window_kind": "create"}),
        ("rma", "acc_latency", {}, {"mpi_type": "MPI_FLOAT"}),
        ("band", "bw", {"bytes": 32}, {"bandwidth_MBps": 194.35, "messages_per_s": 6073590.0}),
        ("band", "bw", {"bytes": 32}, {"window": 256, "ranks": 2, "pairs": 1}),
        ("band", "imb_uniband", {"bytes": 32}, {"pairs": 2}),
        ("band_multi", "imb_uniband", {}, {"window": 16}),
        ("mt", "imb_unibandmt", {}, {"window": 64, "threads": "2:2"}),
        ("debug", "latency", {}, {"mpi": "Intel MPI 2021.19"}),
        ("types", "latency", {}, {"mpi_type": "MPI_DOUBLE", "dtype": "float64"}),
        ("types", "bcast", {}, {"mpi_type": "MPI_DOUBLE", "dtype": "float64"}),
        ("types", "allreduce", {}, {"mpi_type": "MPI_INT", "dtype": "int32"}),
        ("types_half", "allreduce", {}, {"dtype": "float16"}),
    ],
)
def test_rows_as_imb(
    file: str, benchmark: str, where: dict[str, Any], wanted: dict[str, Any]
) -> None:
    row = of(f"{file}.txt", benchmark, **where)[0]
    assert row == row | wanted


def test_one_sided_calls_with_a_flush_each_are_ours() -> None:
    assert {row["window_sync"] for row in of("rma.txt", "put_latency")} == {"flush", "flush_local"}
    assert {row["part"] for row in of("rma.txt", "imb_unidir_put")} == {"aggregate"}


def test_what_imb_does_not_print_is_not_there() -> None:
    assert "bytes" not in of("mpi1.txt", "barrier")[0]
    assert "bandwidth_MBps" not in of("mpi1.txt", "latency")[1]
    assert "mpi_type" not in of("mpi1.txt", "latency")[0], "bytes without a type"


def test_size_of_reduce_scatter_is_the_whole_vector() -> None:
    assert [row["bytes"] for row in of("mpi1.txt", "reduce_scatter", ranks=4)] == [0, 16, 32, 64]
    assert [row["bytes"] for row in of("mpi1.txt", "reduce_scatter_block", ranks=2)][-1] == 32
    assert [row["bytes"] for row in of("nbc_pure.txt", "ireduce_scatter")] == [0, 16, 32]


@pytest.mark.parametrize("name", ["Reduce_scatter", "Bcast", "Allreduce", "PingPong"])
@pytest.mark.parametrize("version", ["3.2", "4.1 Update 1", "2017", "2018", "2019 Update 3"])
def test_before_2019_update_6_names_are_imb_s(version: str, name: str) -> None:
    table = RATES + PING if name == "PingPong" else TIMES + ROW
    row = old(version, name, table, ranks=4)[0]
    assert row["benchmark"] == f"imb_{name.lower()}"
    assert row["bytes"] in (8, 1024)
    for newer in ("2019 Update 6", "2021.3"):
        assert not old(newer, name, table, ranks=4)[0]["benchmark"].startswith("imb_")


def test_what_is_measured_otherwise_keeps_its_own_name() -> None:
    names = {row["benchmark"] for path in FILES for row in rows(path.name)}
    assert {"imb_sendrecv", "imb_exchange", "imb_pingping", "imb_biband"} <= names
    assert {"imb_ibcast", "imb_ibarrier_pure", "imb_p2p_pingpong", "imb_pingpongmt"} <= names
    assert not names & {"sendrecv", "exchange", "bibw", "mbw_mr", "multi_lat", "latency_mt"}
    assert not {"ibarrier"} & names


def test_concurrent_groups_compare_with_their_kind() -> None:
    assert {row["part"] for row in of("multi_worst.txt", "imb_multi_allreduce")} == {"2 groups"}
    parts = {row["part"] for row in of("multi_all.txt", "imb_multi_sendrecv")}
    assert parts == {"2 groups, group 0", "2 groups, group 1"}
    assert {row["ranks"] for row in of("multi_all.txt", "imb_multi_pingpong")} == {4}
    assert of("multi_all.txt", "allreduce")[0]["part"] is None


def test_options_that_change_what_is_measured_are_said() -> None:
    assert {row["part"] for row in rows("off_cache.txt")} == {"off_cache -1"}
    assert {row["part"] for row in rows("contig.txt")} == {"contig_type resize_vec"}
    assert {row["part"] for row in rows("map.txt")} == {"map 2x2"}
    assert {row["benchmark"] for row in rows("sync_off.txt")} == {
        "imb_allreduce",
        "imb_bcast",
        "imb_reduce",
    }
    assert {row["root"] for row in of("sync_off.txt", "imb_reduce")} == {"rotate"}
    assert {row["sync"] for row in of("imb_barrier.txt", "bcast")} == {"imb_barrier"}
    assert {row["placement"] for row in rows("gpu.txt")} == {"H"}


@pytest.mark.parametrize(
    ("option", "sync"),
    [
        ("-imb_barrier 1", "imb_barrier"),
        ("-imb_barrier ON", "imb_barrier"),
        ("-imb_barrier enable", "imb_barrier"),
        ("-imb_barrier yes", "imb_barrier"),
        ("-imb_barrier 0", "barrier"),
        ("", "barrier"),
        ("-sync 0", None),
        ("-sync disable", None),
        ("-sync Yes", "barrier"),
    ],
)
def test_options_are_on_in_any_of_their_words(option: str, sync: str | None) -> None:
    row = old("2021.3", "Allreduce", TIMES + ROW, options=option)[0]
    assert row.get("sync") == sync
    assert row["benchmark"] == ("allreduce" if sync else "imb_allreduce")


@pytest.mark.parametrize(
    ("name", "benchmark", "root"),
    [
        ("Bcast", "imb_bcast", "rotate"),
        ("Reduce", "reduce", "rotate"),
        ("Allreduce", "allreduce", None),
    ],
)
def test_rotating_roots_are_said_and_matched(name: str, benchmark: str, root: str | None) -> None:
    row = old("2021.3", name, TIMES + ROW, options="-root_shift on")[0]
    assert (row["benchmark"], row.get("root")) == (benchmark, root)
    row = old("2021.3", name, TIMES + ROW)[0]
    assert (row["benchmark"], row.get("root")) == (name.lower(), "0" if name == "Reduce" else None)


@pytest.mark.parametrize(
    ("name", "table", "mpi_type"),
    [
        ("Iallreduce_pure", TIMES + ROW, "MPI_FLOAT"),
        ("Ireduce_scatter_pure", TIMES + ROW, "MPI_FLOAT"),
        ("Reduce_local", TIMES + ROW, "MPI_FLOAT"),
        ("Ibcast_pure", TIMES + ROW, "MPI_DOUBLE"),
        ("Barrier", TIMES + ROW, None),
        ("Window", TIMES + ROW, None),
    ],
)
def test_reductions_have_their_own_type(name: str, table: str, mpi_type: str | None) -> None:
    banner = BANNER.replace("MPI-1", "MPI-NBC") if name.startswith("I") else BANNER
    text = FRAME.format(banner=banner, options="", name=name, ranks=2) + table
    row = found(text.replace("MPI_BYTE", "MPI_DOUBLE")).rows[0]
    assert row.get("mpi_type") == mpi_type


def test_last_row_without_end_is_whole_by_decimals() -> None:
    text = FRAME.format(banner=BANNER, options="", name="PingPong", ranks=2) + RATES + PING
    assert found(text[:-1]).rows == found(text).rows != []
    assert not found(text[:-2]).rows
    header = "       #bytes #repetitions   Mbytes/sec      Msg/sec\n"
    text = FRAME.format(banner=BANNER, options="", name="Uniband", ranks=2) + header
    text += "        65536           50      3000.00        48000\n"
    assert len(found(text).rows) == 1
    told = found(text[:-1])
    assert not told.rows
    assert "an incomplete row" in told.problems[0].text


def test_rates_in_binary_megabytes_become_decimal_ones() -> None:
    header = "       #bytes #repetitions   Mbytes/sec      Msg/sec\n"
    row = old("4.1", "Uniband", header + "        65536           50      3000.00        48000\n")[
        0
    ]
    assert row["bandwidth_MBps"] == pytest.approx(3145.728)


def test_same_name_in_other_parts_is_another_benchmark() -> None:
    banner = "#    Intel(R) MPI Benchmarks 2018, MPI-2 part"
    frame = FRAME.format(banner=banner, options="", name="Accumulate", ranks=2)
    row = found(f"{frame}#\n#    MODE: AGGREGATE\n#\n{RATES}{PING}").rows[0]
    assert (row["benchmark"], row["part"]) == ("imb_ext_accumulate", "aggregate")
    told = found(
        f"{frame.replace('MPI-2', 'MPI-IO').replace('Accumulate', 'P_Read_priv')}{RATES}{PING}"
    )
    assert told.rows[0]["benchmark"] == "imb_io_p_read_priv"


def test_a_build_that_checks_data_says_whether_it_was_right() -> None:
    header = RATES.replace("Mbytes/sec\n", "Mbytes/sec      defects\n")
    good = PING.replace("\n", "         0.00\n")
    assert old("2018", "PingPong", header + good)[0]["validation"] == "Pass"
    bad = good.replace("         0.00\n", "         1.00\n")
    assert old("2018", "PingPong", header + bad)[0]["validation"] == "Fail"


def test_without_its_banner_no_table_is_taken_for_one_of_ours() -> None:
    text = FRAME.format(banner="", options="", name="PingPong", ranks=2) + RATES + PING
    assert found(text).rows[0]["benchmark"] == "imb_pingpong"
    cut = BANNER + text.split("\n\n", 3)[3]
    assert found(cut).rows[0]["benchmark"] == "imb_pingpong", "options may have changed it"


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        ("# Benchmarking PingPong\n", "no benchmark is named above"),
        ("# #processes = 2\n", "no number of processes"),
    ],
)
def test_a_table_that_does_not_say_what_it_is_is_left_out(lost: str, reason: str) -> None:
    text = FRAME.format(banner=BANNER, options="", name="PingPong", ranks=2) + RATES + PING
    told = found(text.replace(lost, ""))
    assert not told.rows
    assert reason in told.problems[0].text
    assert told.problems[0].line == text.replace(lost, "").splitlines().index(RATES[:-1]) + 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("            8         1000         2.00", "not a whole row"),
        ("            8         1000         2.0          4.00", "not a whole row"),
        ("            8         1000         2.00         4.00 [warn] x", "not a whole row"),
        ("            8            0         2.00         4.00", "not a whole row"),
        ("8 1000 2.00 4.00", "not a whole row"),
        ("            2         1000         1.00         4.00", "size 2 after 4"),
    ],
)
def test_a_row_that_is_wrong_is_left_out_with_its_reason(line: str, reason: str) -> None:
    first = "            4         1000         1.00         4.00\n"
    last = "           64         1000         2.00        32.00\n"
    text = FRAME.format(banner=BANNER, options="", name="PingPong", ranks=2) + RATES + first
    told = found(f"{text}{line}\n{last}")
    assert [row["bytes"] for row in told.rows] == [4, 64]
    assert [(problem.line, reason in problem.text) for problem in told.problems] == [
        (len(text.splitlines()) + 1, True)
    ]


def test_each_run_has_a_name_and_its_own_command() -> None:
    text = FRAME.format(banner=BANNER, options="-npmin 2 -iter 5", name="PingPong", ranks=2)
    told = found(text + RATES + PING + text.replace("-iter 5", "-iter 6") + RATES + PING)
    runs = {row["run"]: told.runs[row["run"]]["command"] for row in told.rows}
    second = len((text + RATES + PING).splitlines()) + 1
    assert runs == {
        "job.log:1": "IMB-MPI1 -npmin 2 -iter 5",
        f"job.log:{second}": "IMB-MPI1 -npmin 2 -iter 6",
    }


@pytest.mark.parametrize(
    ("options", "placement"),
    [("", "D"), ("-mem_alloc_type shared", "M"), ("-mem_alloc_type cpu", "H")],
)
def test_a_build_for_devices_says_where_messages_lie(options: str, placement: str) -> None:
    banner = BANNER.replace("part", "part (GPU)")
    text = FRAME.format(banner=banner, options=options, name="PingPong", ranks=2) + RATES + PING
    assert found(text).rows[0]["placement"] == placement
    assert "placement" not in found(text.replace(" (GPU)", "")).rows[0]


def test_sizes_of_the_user_s_own_may_come_in_any_order() -> None:
    assert [row["bytes"] for row in of("lengths.txt", "allreduce")] == [4, 100, 1000, 65540]


def test_rows_after_the_next_rule_belong_to_no_table() -> None:
    text = FRAME.format(banner=BANNER, options="", name="PingPong", ranks=2) + RATES + PING
    told = found(f"{text}\n#---------------------------------------------------\n{PING}")
    assert len(told.rows) == 1
