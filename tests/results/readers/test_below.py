"""ucx_perftest, perftest, fi_pingpong and NVSHMEM's perftest: rows in our units, by our names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from omb_py.cli.compare import command as compare
from omb_py.cli.show import command as show
from omb_py.results.readers import (
    Found,
    fi_pingpong,
    has_marks,
    nvshmem,
    perftest,
    ucx_perftest,
)
from omb_py.results.readers.ucx_perftest import ALONE, SENDER, UNKNOWN
from tests import ROOT
from tests.helpers.damage import without_place
from tests.helpers.reading import read, read_by, read_file
from tests.helpers.refusals import missing

DATA = ROOT / "tests" / "data" / "below"
FILES = [path for path in sorted(DATA.iterdir()) if path.suffix != ".md"]
MEBIBYTE = 1.048576


def rows(name: str) -> list[dict[str, Any]]:
    return read_file(DATA / name).rows


def changed(name: str, old: str, new: str, count: int = -1) -> Found:
    text = (DATA / name).read_text()
    assert old in text
    return read(name, text.replace(old, new, count).encode())


def texts(part: Found) -> str:
    return "\n".join(problem.text for problem in part.problems)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_folder_finds_each_file_by_its_marks(path: Path) -> None:
    assert has_marks(path)


@pytest.mark.parametrize("label", ["[rank 1] ", "0: ", "[1,0]<stdout>: "])
@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix == ".txt"], ids=lambda path: path.stem
)
def test_a_label_before_each_line_changes_no_row(path: Path, label: str) -> None:
    text = path.read_text()
    labelled = "".join(label + line for line in text.splitlines(keepends=True))
    plain, part = read("job.log", text.encode()), read("job.log", labelled.encode())
    assert without_place(part.rows) == without_place(plain.rows)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ucx_client_1.17.txt", UNKNOWN),
        ("ib_write_bw_24.txt", "no title such as"),
        ("nvshmem_3.4.txt", "a table without its name"),
    ],
)
def test_a_table_without_what_is_above_it_is_named(name: str, reason: str) -> None:
    text = (DATA / name).read_text()
    line = next(
        one for one in text.splitlines() if "# iter" in one or "#bytes" in one or "(B" in one
    )
    table = text[text.index(line) :].split("\n+ ")[0].split("\n#")[0]
    part = read("job.log", f"{table}\n".encode())
    assert part.rows == []
    assert reason in part.problems[0].text


def test_ucx_whole_runs_count_and_progress_does_not() -> None:
    part = read_file(DATA / "ucx_client_1.17.txt")
    latency, bandwidth, put, get = part.rows
    assert latency["benchmark"] == "latency"
    assert (latency["bytes"], latency["latency_us"], latency["sample_p50_us"]) == (8, 1.204, 1.181)
    assert (latency["iterations"], latency["ranks"], latency["binding"]) == (1000000, 2, "ucx")
    assert bandwidth["benchmark"] == "ucp_tag_bw"
    assert bandwidth["bandwidth_MBps"] == pytest.approx(1048576 / 42.42, rel=1e-3)
    assert (bandwidth["messages_per_s"], bandwidth["window"]) == (23574, 16)
    assert (bandwidth["buffer"], bandwidth["placement"]) == ("cuda", "D D")
    assert (put["benchmark"], get["benchmark"]) == ("ucp_put_lat", "ucp_get_lat")
    assert "latency_us" not in bandwidth


def test_ucx_bandwidth_of_device_memory_is_said_to_be_the_senders() -> None:
    part = read_file(DATA / "ucx_client_1.17.txt")
    notes = [problem for problem in part.problems if problem.text == SENDER]
    assert [(note.line, note.rows, note.lost) for note in notes] == [(17, 0, False)]
    assert [run for run, said in part.runs.items() if "sender" in said] == [part.rows[1]["run"]]
    host = changed("ucx_client_1.17.txt", "-m cuda", "-m host")
    assert SENDER not in texts(host)


def test_ucx_operations_in_flight_have_no_latency() -> None:
    assert "4 operations are in flight, not one" in texts(read_file(DATA / "ucx_client_1.17.txt"))


def test_ucx_batch_files_name_no_test() -> None:
    (problem,) = (
        one for one in read_file(DATA / "ucx_client_1.17.txt").problems if UNKNOWN in one.text
    )
    assert problem.line == 46


def test_ucx_servers_heading_and_numbers_with_separators_are_read() -> None:
    (row,) = rows("ucx_server_and_client_1.20.txt")
    assert (row["benchmark"], row["bytes"], row["window"]) == ("ucp_tag_bw", 65536, 32)
    assert (row["placement"], row["iterations"], row["messages_per_s"]) == ("D H", 1000000, 199561)


def test_ucx_transport_layer_has_names_of_its_own() -> None:
    (row,) = changed("ucx_loopback_uct.txt", " -l\n", "\n").rows
    assert (row["benchmark"], row["ranks"], row["latency_us"]) == ("uct_am_lat", 2, 0.741)
    assert "sample_p50_us" not in row, "99.9 was asked for"


@pytest.mark.parametrize("command", [" -l\n", "\n"])
def test_ucx_times_of_a_process_alone_are_left_out(command: str) -> None:
    text = (DATA / "ucx_loopback_uct.txt").read_text().replace(" -l\n", command)
    part = read("job.log", text[text.index("+") if command == "\n" else 0 :].encode())
    assert part.rows == []
    assert ALONE in texts(part)
    (row,) = rows("ucx_loopback_1.13.txt")
    assert row["bandwidth_MBps"] == pytest.approx(13663.32 * MEBIBYTE), "which halves nothing"


def test_ucx_before_1_9_the_last_row_is_of_the_whole_run() -> None:
    latency, bandwidth = rows("ucx_client_1.6.txt")
    assert (latency["iterations"], latency["latency_us"]) == (200000, 1.603)
    assert (bandwidth["bytes"], bandwidth["iterations"]) == (700, 1000000)


def test_ucx_run_that_died_leaves_its_size_to_no_other() -> None:
    text = (DATA / "ucx_client_1.17.txt").read_text()
    died, heading = text.split("Final:")[0], text[text.index("\n+--") + 1 :]
    part = read("job.log", f"{died}{heading.split('+ ucx')[0]}".encode())
    assert part.rows == []
    assert "ucx_perftest printed no row" in texts(part)
    assert UNKNOWN in texts(part)


def test_ucx_last_line_without_end_may_lack_digits_of_its_rate() -> None:
    text = (DATA / "ucx_server_and_client_1.20.txt").read_text().rstrip("\n")
    (row,) = read("job.log", text[:-1].encode()).rows
    assert "messages_per_s" not in row
    assert row["bandwidth_MBps"] == rows("ucx_server_and_client_1.20.txt")[0]["bandwidth_MBps"]


@pytest.mark.parametrize(
    ("name", "benchmark", "numbers"),
    [
        ("ib_send_lat_24.txt", "latency", {"latency_us": 2.29, "sample_p50_us": 2.27}),
        ("ib_send_lat_24.txt", "latency", {"sample_p99_us": 2.51, "sample_p999_us": 4.8}),
        ("ib_read_lat_5.txt", "ib_read_lat", {"latency_us": 8.35, "sample_min_us": 8.12}),
        ("ib_write_lat_duration.txt", "ib_write_lat", {"latency_us": 1.21, "variant": "UC"}),
        ("ib_write_lat_2023.json", "ib_write_lat", {"latency_us": 2.41, "sample_p999_us": 4.11}),
        (
            "ib_write_bw_24.txt",
            "ib_write_bw",
            {"bandwidth_MBps": 23512.9 * MEBIBYTE, "window": 128},
        ),
        ("ib_write_bw_2013.txt", "ib_write_bw", {"bandwidth_MBps": 3010.17 * MEBIBYTE}),
        ("ib_read_bw_cuda.txt", "ib_read_bw", {"bandwidth_MBps": 24462.5, "buffer": "cuda"}),
        ("ib_read_bw_cuda.txt", "ib_read_bw", {"variant": "2 queue pairs", "bytes": 65536}),
        ("ib_send_bw_both.txt", "ib_send_bw", {"bandwidth_MBps": 44870.15 * MEBIBYTE}),
        ("ib_send_bw_both.txt", "ib_send_bw", {"part": "bidirectional"}),
        ("ib_write_bw_mib.json", "ib_write_bw", {"bandwidth_MBps": 23160.44 * MEBIBYTE}),
        ("ib_write_bw_gbits.json", "ib_write_bw", {"bandwidth_MBps": 24462.5, "buffer": "cuda"}),
    ],
)
def test_perftest_rows_have_our_units(name: str, benchmark: str, numbers: dict[str, Any]) -> None:
    row = rows(name)[-1]
    assert (row["benchmark"], row["binding"], row["ranks"]) == (benchmark, "verbs", 2)
    assert {name: row[name] for name in numbers} == pytest.approx(numbers, rel=1e-9)


def test_perftest_columns_that_are_not_what_they_say_are_left_out() -> None:
    for row in rows("ib_send_lat_24.txt") + rows("ib_write_lat_2023.json"):
        assert not {"sample_max_us", "sample_stddev_us"} & row.keys()


@pytest.mark.parametrize(("option", "kept"), [("-C", 0), ("--report-cycles", 0), ("-c RC", 2)])
def test_perftest_cycles_below_a_heading_of_usec_are_left_out(option: str, kept: int) -> None:
    text = f"$ ib_send_lat -a {option} node2\n{(DATA / 'ib_send_lat_24.txt').read_text()}"
    part = read("job.log", text.encode())
    assert len(part.rows) == kept
    assert ("times in cycles" in texts(part)) is (kept == 0)


def test_perftest_each_direction_is_left_out_beside_the_sum() -> None:
    part = read_file(DATA / "ib_send_bw_both.txt")
    assert len(part.rows) == 1
    assert [(one.line, one.lost) for one in part.problems] == [(25, False), (31, False)]


def test_perftest_json_of_both_directions_is_left_out() -> None:
    part = read("out.json", (DATA / "ib_send_bw_bidirectional.json").read_bytes())
    assert part.rows == []
    assert "--report-both" in texts(part)


def test_perftest_json_whose_rate_tells_no_unit_has_no_bandwidth() -> None:
    part = changed("ib_write_bw_mib.json", '"MsgRate": 0.370567', '"MsgRate": 0.170567')
    assert "bandwidth_MBps" not in part.rows[0]


def test_perftest_cuda_is_of_the_run_that_initialized_it() -> None:
    text = (DATA / "ib_read_bw_cuda.txt").read_text() + (DATA / "ib_write_bw_24.txt").read_text()
    buffers = [row.get("buffer") for row in read("job.log", text.encode()).rows]
    assert buffers == ["cuda"] * 2 + [None] * 6


def test_pingpong_times_are_those_of_a_transfer() -> None:
    found = {row["bytes"]: row for row in rows("fi_pingpong_tcp.txt")}
    assert [*found] == [64, 256, 1024, 4096, 65536, 1048576]
    row = found[1048576]
    assert (row["benchmark"], row["binding"], row["latency_us"]) == ("latency", "ofi", 394.35)
    assert row["iterations"] == 10


OTHERS = [
    path
    for folder in (ROOT / "tests" / "data", ROOT / "results")
    for path in sorted(folder.rglob("*"))
    if path.suffix in (".txt", ".out", ".log", ".json") and path.parent != DATA
]
OWN = [reader.READER for reader in (fi_pingpong, nvshmem, perftest, ucx_perftest)]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_output_of_another_suite_is_none_of_theirs(path: Path) -> None:
    for reader in OWN:
        part = read_by(reader.read, path.read_bytes(), str(path))
        assert (part.rows, part.problems) == ([], []), reader.name


def test_outputs_of_real_runs_are_read_without_a_problem() -> None:
    pingpong = read_file(DATA / "fi_pingpong_1.17.txt")
    ucx = read_file(DATA / "ucx_client_1.13.txt")
    assert pingpong.problems == ucx.problems == []
    assert len(pingpong.rows) == len((DATA / "fi_pingpong_1.17.txt").read_text().splitlines()) - 2
    assert [row["latency_us"] for row in ucx.rows] == [2.202]


def test_pingpong_sizes_that_were_rounded_are_left_out() -> None:
    part = read_file(DATA / "fi_pingpong_labelled.txt")
    assert [row["bytes"] for row in part.rows] == [1, 64, 96, 1536, 65536]
    assert {row["iterations"] for row in part.rows} == {None}, "10k may be any of a thousand"
    assert "the size is rounded" in texts(part)


def test_pingpong_messages_that_were_lost_make_no_row() -> None:
    part = changed("fi_pingpong_tcp.txt", "=10      5k", "+2       5k")
    assert 256 not in [row["bytes"] for row in part.rows]
    assert "not all messages were acknowledged" in texts(part)


def test_nvshmem_tables_have_names_of_their_own() -> None:
    part = read_file(DATA / "nvshmem_3.4.txt")
    assert [(problem.line, problem.text) for problem in part.problems] == [
        (20, "a table without its name, or of unknown columns: left out")  # rates of messages
    ]
    first, *_, last = part.rows
    assert (first["benchmark"], first["bytes"]) == ("nvshmem_put_bw_uni", 1024)
    assert (first["bandwidth_MBps"], first["buffer"], first["placement"]) == (614.0, "cuda", "D")
    assert [r["part"] for r in part.rows if r["benchmark"] == "nvshmem_put_latency"] == (
        ["Thread"] * 2 + ["Warp"] * 2
    )
    assert (last["benchmark"], last["part"]) == ("nvshmem_reduction_on_stream", "int, sum")
    assert (last["latency_us"], last["sample_min_us"], last["busbw_GBps"]) == (31.9, 30.943, 57.524)


def test_nvshmem_a_comment_between_rows_changes_none() -> None:
    part = changed("nvshmem_3.4.txt", "65536       None", "# later\n65536       None")
    assert without_place(part.rows) == without_place(rows("nvshmem_3.4.txt"))


@pytest.mark.slow
def test_show_puts_layers_under_each_other() -> None:
    names = ("ucx_client_1.17.txt", "ib_send_lat_24.txt", "fi_pingpong_labelled.txt")
    result = CliRunner().invoke(show, [str(DATA / name) for name in names], catch_exceptions=False)
    assert result.exit_code == 0
    assert not missing("ucx_perftest ucx 8 B 1.20 µs perftest verbs ofi", result.stdout)


@pytest.mark.long
def test_compare_pairs_ping_pongs_and_nothing_one_sided(tmp_path: Path) -> None:
    native = tmp_path / "osu_latency.txt"
    native.write_text("# OSU MPI Latency Test v7.4\n# Size   Avg Latency(us)\n8     1.31\n")
    below = str(DATA / "ucx_client_1.17.txt")
    result = CliRunner().invoke(compare, [str(native), below], catch_exceptions=False)
    assert not missing("latency 8 B 1.31 µs 1.20 µs", result.stdout)
    assert "ucp_put_lat, 2 ranks: 1 point" in result.output
    other = CliRunner().invoke(compare, [str(native), str(DATA / "ib_read_lat_5.txt")])
    assert "benchmark ib_read_lat" in str(other.exception)
