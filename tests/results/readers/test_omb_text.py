"""Native OMB's text, the original OMB-Py's and our own: every family, whole rows only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from omb_py.benchmarks import all_benchmarks
from omb_py.core.errors import OmbError
from omb_py.results.readers import Found, parts_of_file
from tests import ROOT
from tests.helpers.reading import read, read_file
from tests.helpers.refusals import refuses

DATA = ROOT / "tests" / "data" / "omb"
NATIVE = sorted(DATA.glob("osu_*.txt"))
VARIANTS = DATA / "variants.txt"

LATENCY = """\

# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       0.22
2                       0.38
4                       0.37
"""


def lines(*cells: tuple[int, float]) -> str:
    """Rows of one value as they are printed."""
    return "".join(f"{size:<10d}{value:18.2f}\n" for size, value in cells)


def rows(text: str, path: str = "job.log") -> list[dict[str, Any]]:
    return read(path, text.encode()).rows


def values(found: Found) -> list[dict[str, Any]]:
    """Rows without what tells where they stood."""
    return [
        {name: value for name, value in row.items() if name not in ("line", "run")}
        for row in found.rows
    ]


def pairs(text: str) -> list[tuple[int, float]]:
    return [(row["bytes"], row["latency_us"]) for row in rows(text)]


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.stem)
def test_every_program_of_native_omb_is_known_by_its_output(path: Path) -> None:
    found = read_file(path)
    assert {row["benchmark"] for row in found.rows} == {path.stem.removeprefix("osu_")}
    assert {row["suite"] for row in found.rows} == {"OSU 7.4"}
    assert not found.problems
    benchmark = next(b for b in all_benchmarks() if b.name == path.stem.removeprefix("osu_"))
    if benchmark.sized and benchmark.elements is None:
        assert [row["bytes"] for row in found.rows if "part" not in row] == [1, 2, 4, 8]


def test_recorded_programs_are_all_of_one_node() -> None:
    native = {b.name for b in all_benchmarks() if b.native}
    assert native - {path.stem.removeprefix("osu_") for path in NATIVE} == {
        "bw_fan_in",
        "bw_fan_out",
    }


def test_the_title_alone_is_enough_where_it_is_one_programs() -> None:
    for path in NATIVE:
        named = {row["benchmark"] for row in read_file(path).rows}
        anonymous = {row["benchmark"] for row in read("job.log", path.read_bytes()).rows}
        assert anonymous == named


def test_ambiguous_title_is_resolved_by_command_or_file() -> None:
    table = f"# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n{lines((1, 6.4))}"
    assert rows(table)[0]["benchmark"] == "bw"
    assert rows(table, "osu_bw_fan_in.txt")[0]["benchmark"] == "bw_fan_in"
    assert rows("$ mpirun -np 4 ./osu_bw_fan_out\n" + table)[0]["benchmark"] == "bw_fan_out"
    assert rows("srun -n 2 ./osu_latency\n" + table)[0]["benchmark"] == "bw"


def test_bandwidths_of_a_fan_stand_under_headings_of_latencies() -> None:
    table = """
# OSU MPI Bandwidth Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)  P50 Tail Lat(us)  P99 Tail Lat(us)
1                       0.73              2.01              2.06
2                       3.49              3.46              3.66
"""
    found = rows(table, "osu_bw_fan_in.txt")
    assert [row["bandwidth_MBps"] for row in found] == [0.73, 3.49]
    assert found[0]["percentiles"] == "p50=2.01 p99=2.06"
    assert not {"latency_us", "sample_p50_us"} & found[0].keys()
    assert not rows(table)  # of bw, which has no latencies


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("$ mpiexec -n 8 osu_allreduce", 8),
        ("mpirun -np 16 --map-by core /opt/omb/osu_allreduce -f", 16),
        ("srun -N 2 --ntasks=96 ./osu_allreduce", 96),
        ("run -ntasks 24 osu_allreduce", 24),
        ("run --np=24 osu_allreduce", 24),
        ("run -n many osu_allreduce", None),
        ("srun -N 2 ./osu_allreduce -i 100", None),
        ("echo 'unbalanced osu_allreduce", None),
    ],
)
def test_number_of_ranks_is_that_of_the_command(command: str, ranks: int | None) -> None:
    table = "# OSU MPI Allreduce Latency Test v5.9\n# Size       Avg Latency(us)\n"
    table += lines((4, 1.5))
    assert rows(f"{command}\n{table}")[0].get("ranks") == ranks


@pytest.mark.parametrize(
    ("options", "column", "value"),
    [
        ("-W 32", "window", 32),
        ("--window-size=32", "window", 32),
        ("-W x", "window", None),
        ("-l", "in_place", True),
        ("--in-place", "in_place", True),
        ("-k fixed:3", "root", "3"),
        ("--root-rank rotate", "root", "rotate"),
        ("-D vect:8:4", "layout", "vect:8:4"),
        ("--ddt=cont", "layout", "cont"),
        ("-t 7", "test_calls", 7),
        ("--num-test-calls 7", "test_calls", 7),
        ("-c", "window", None),
    ],
)
def test_option_in_short_or_long_has_its_column(options: str, column: str, value: Any) -> None:
    assert rows(f"mpirun -np 4 ./osu_latency {options}\n{LATENCY}")[0].get(column) == value
    assert column not in rows(f"mpirun {options} ./osu_latency\n{LATENCY}")[0]


def test_options_of_the_command_tell_what_the_table_does_not() -> None:
    found = [row for row in read_file(VARIANTS).rows if row["benchmark"] in ("gather", "allgather")]
    assert {row.get("root") for row in found} == {None, "rotate"}
    assert {row.get("in_place") for row in found} == {None, True}
    assert {row.get("layout") for row in found} == {None, "vect:8:4"}


@pytest.mark.parametrize(
    ("name", "place", "known"),
    [
        (
            "variants",
            16,
            {
                "validation": "Pass",
                "iterations": 1000,
                "percentiles": "p50=0.22 p99=0.26",
                "latency_us": 0.22,
                "latency_min_us": 0.21,
                "latency_max_us": 0.23,
                "sample_p50_us": 0.22,
                "sample_p99_us": 0.26,
            },
        ),
        ("osu_get_acc_latency", 0, {"window_kind": "create", "window_sync": "lock"}),
        ("osu_put_bibw", 0, {"window_kind": "allocate", "window_sync": "pscw"}),
        (
            "osu_neighbor_alltoallw",
            0,
            {"part": "topology creation", "latency_us": pytest.approx(127, rel=0.5)},
        ),
        ("osu_latency_mt", 0, {"threads": "1:2"}),
        ("osu_init", 0, {"ranks": 2, "latency_us": 1025e3, "latency_max_us": 1029e3}),
        ("osu_mbw_mr", 0, {"pairs": 1, "window": 64, "ranks": 2}),
        ("osu_mbw_mr", -1, {"pairs": 1, "window": 64, "ranks": 2}),
    ],
)
def test_cell_has_the_column_of_its_heading(name: str, place: int, known: dict[str, Any]) -> None:
    row = read_file(DATA / f"{name}.txt").rows[place]
    assert {column: row.get(column) for column in known} == known


@pytest.mark.parametrize(
    ("name", "taken"), [("osu_get_acc_latency", "MPI_CHAR"), ("osu_put_latency", None)]
)
def test_only_type_of_a_program_is_known_though_it_prints_none(
    name: str, taken: str | None
) -> None:
    text = re.sub("# Datatype.*\n", "", (DATA / f"{name}.txt").read_text())
    assert {row.get("mpi_type") for row in rows(text)} == {taken}


@pytest.mark.parametrize(
    ("printed", "kind"), [("allocate_shared", "shared"), ("create_dynamic", "dynamic")]
)
def test_windows_have_the_words_of_their_option(printed: str, kind: str) -> None:
    text = (DATA / "osu_put_latency.txt").read_text()
    for row in rows(re.sub("creation: MPI_Win_[a-z]+", f"creation: MPI_Win_{printed}", text)):
        assert row["window_kind"] == kind


def test_percentiles_of_bandwidths_are_no_samples() -> None:
    for row in read_file(VARIANTS).rows:
        if row["benchmark"] in ("bw", "mbw_mr", "iallreduce"):
            assert "sample_p50_us" not in row


def test_tables_over_windows_become_a_row_for_each_window() -> None:
    found = [row for row in read_file(VARIANTS).rows if row["benchmark"] == "mbw_mr"]
    varied = [row for row in found if row["line"] in range(178, 186)]
    assert len(varied) == 4 * 8
    assert varied[3] == varied[3] | {
        "bytes": 1,
        "window": 8,
        "bandwidth_MBps": 11.19,
        "messages_per_s": 11188341.75,
    }


@pytest.mark.parametrize(
    "version", ["4.4.1", "5.3.2", "5.6.3", "5.9", "6.2", "7.0", "7.5", "8.0b2"]
)
def test_versions_that_print_less_are_read_too(version: str) -> None:
    text = (
        f"# OSU MPI-CUDA Latency Test v{version}\n"
        "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n"
        "# Size          Latency (us)\n0                       1.10\n1                       5.47\n"
    )
    row = rows(text)[1]
    assert row == row | {"suite": f"OSU {version}", "placement": "D H", "buffer": "cuda"}
    assert pairs(text) == [(0, 1.10), (1, 5.47)]


@pytest.mark.parametrize("banner", ["# OMB Python MPI Latency Test", "# OMB-Py MPI Latency Test"])
def test_both_headers_of_the_original_omb_py(banner: str) -> None:
    values = lines((1, 0.73), (2, 0.75))
    found = rows(f"{banner}\n# Size (B)      Latency (us)\n{values}")
    assert [row["latency_us"] for row in found] == [0.73, 0.75]
    assert {row["suite"] for row in found} == {"OMB-Py"}
    assert {row["binding"] for row in found} == {None}


def test_our_own_text_names_buffer_and_binding() -> None:
    text = (
        "# OSU MPI-CUDA Latency Test v7.4 (omb-py 0.1.0: buffer numba, binding prebound, D H)\n"
        "# Datatype: MPI_CHAR.\n"
        "# Size       Avg Latency(us)       Median(us)     95% from(us)       95% to(us)\n"
        "8                       4.53            4.512                -            4.600\n"
    )
    row = rows(text)[0]
    assert row == row | {"suite": "omb-py 0.1.0", "buffer": "numba", "binding": "prebound"}
    assert row == row | {"placement": "D H", "sample_p50_us": 4.512, "median_high_us": 4.6}
    assert "median_low_us" not in row


def test_marks_of_editors_are_no_text() -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        assert len(read("job.log", LATENCY.encode(encoding)).rows) == 3


@pytest.mark.parametrize(
    "line",
    [
        "4096                    0.",
        "4096                    0.2",
        "4096                    0.223",
        "4096                    nan",
        "4096                    inf",
        "4096                   -1.00",
        "4096                    0.22 8192 0.33",
        "4096",
        "04096                   0.22",
        "2                       0.22",
        "4096                    0.22[node:1] warning",
        "8 16.25",
    ],
)
def test_a_line_that_is_no_whole_row_is_left_out_and_named(line: str) -> None:
    found = read("job.log", (LATENCY + line + "\n").encode())
    assert [(row["bytes"]) for row in found.rows] == [1, 2, 4]
    assert [problem.line for problem in found.problems] == [8]


def test_blanks_that_somebody_pressed_together_are_no_fault() -> None:
    pressed = "\n".join(" ".join(line.split()) for line in LATENCY.splitlines()) + "\n"
    assert pairs(pressed) == pairs(LATENCY)


def test_two_rows_of_one_size_are_both_left_out() -> None:
    found = read("job.log", (LATENCY + "4                       9.99\n").encode())
    assert [row["bytes"] for row in found.rows] == [1, 2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello\n" * 1000, "mine.txt no results"),
        (bytes(range(256)) * 100, "mine.txt no results"),
        (
            b"# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)\n1      0.2\n",
            "mine.txt:3: not a whole row",
        ),
    ],
    ids=["text", "bytes", "a torn row"],
)
def test_file_without_results_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with refuses(OmbError, words):
        read_file(path)


def test_the_last_line_of_a_start_is_whole_without_its_end() -> None:
    for name, column in (("osu_init", "latency_us"), ("osu_hello", "ranks")):
        text = (DATA / f"{name}.txt").read_text().rstrip()
        (row,) = rows(text)
        assert row[column] > 0
        assert not rows(text[:-1])


def test_multi_lat_has_headings_of_percentiles_without_cells() -> None:
    header = "# Size          Latency (us)  P50 Tail Lat(us)\n"
    text = f"# OSU MPI Multi Latency Test v7.4\n{header}{lines((8, 0.5))}"
    assert [(row["benchmark"], row["latency_us"]) for row in rows(text)] == [("multi_lat", 0.5)]
    assert not rows(text.replace("Multi Latency", "Latency"))


def test_a_last_count_without_an_end_may_go_on() -> None:
    text = (
        "# OSU MPI Latency Test v7.4\n# Size Avg Latency(us) Iterations\n1 0.22 1000\n2 0.22 1000\n"
    )
    assert [row["iterations"] for row in rows(text)] == [1000, 1000]
    found = read("job.log", text[:-2].encode())
    assert [row["bytes"] for row in found.rows] == [1]
    assert [(problem.line, problem.text) for problem in found.problems] == [
        (4, "an incomplete row, left out")
    ]


def test_a_table_without_sizes_by_its_other_heading() -> None:
    text = (DATA / "osu_barrier.txt").read_text().replace("# Avg Latency(us)", "# Latency (us)   ")
    assert "# Latency (us)" in text
    assert [row["latency_us"] for row in rows(text)] == [0.2]


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("OSU MPI Latency Test Test v8.0b2", {"latency"}),
        ("OSU MPI Some (Odd) Test", {"some_odd"}),
        ("OSU MPI All-to-Some Latency Test", {"all_to_some_latency"}),
        ("OSU OpenSHMEM Put Test v7.4", set()),
    ],
)
def test_a_title_that_nobody_knows_is_a_name(title: str, names: set[str]) -> None:
    text = LATENCY.replace("OSU MPI Latency Test v7.4", title)
    for command in ("", "$ osu_bw\n"):
        assert {row["benchmark"] for row in rows(command + text)} == names


def test_a_table_without_sizes_has_one_row() -> None:
    text = (DATA / "osu_barrier.txt").read_text()
    found = read("job.log", (text + text.splitlines()[-1] + "\n").encode())
    assert not found.rows
    assert "twice" in found.problems[0].text
    assert len(rows(text + text)) == 2


def test_problems_and_rows_keep_the_order_of_lines() -> None:
    ours = "# run: x\n# ranks: 2\nrun,benchmark,bytes,ranks\nx,latency,8,2\nx,latency\n"
    found = read("job.log", f"{LATENCY}8 1\n{ours}".encode())
    assert [row["line"] for row in found.rows] == [5, 6, 7]
    assert [problem.line for problem in found.problems] == [8, 13]
    assert [number for table in found.tables for number, _ in table.lines()] == [12]
    assert found.runs == {"x": {"run": "x", "ranks": "2"}}


def test_processes_that_ran_alone_printed_no_results(tmp_path: Path) -> None:
    (tmp_path / "job.out").write_text("This test requires exactly two processes\n" * 2)
    with pytest.raises(OmbError, match=r"is there 2 times: each process ran alone, so start"):
        list(parts_of_file(tmp_path / "job.out"))
