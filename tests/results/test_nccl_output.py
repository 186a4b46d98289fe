"""What nccl-tests' programs print: to the column, and to the parsers of those who start them.

The parsers are written anew after AWS' health check, NVIDIA's ai-cloud-validation and cloudai,
AMD's CVS, Google's cluster-health-scanner and Microsoft's SuperBench.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.core.dataclass import replace
from omb_py.results.nccl import (
    NcclHalf,
    NcclJson,
    NcclRank,
    NcclReport,
    NcclRow,
    NcclSettings,
    NcclText,
    open_json,
)
from tests.helpers.reading import read

SETTINGS = NcclSettings(
    program="all_reduce",
    smallest=8,
    largest=8 << 30,
    step=2,
    multiplied=True,
    iterations=20,
    warmup=5,
    aggregated=1,
    cycles=1,
    checks=1,
    root=0,
    blocking=0,
    average=1,
    cpu_time=False,
    timestamps=False,
    unaligned=0,
    minimum=None,
    output=None,
    words=("all_reduce_perf", "-b", "8", "-e", "8G", "-f", "2"),
)
ROWS = tuple(
    NcclRow(size, size // 4, "float", "sum", -1, halves)
    for size, halves in (
        (8, (NcclHalf(12.344, 0.0012, 0.0021, 0), NcclHalf(11.987, 0.0013, 0.0022, 0))),
        (1 << 20, (NcclHalf(45.5, 23.04, 40.33, 0), NcclHalf(44.1, 23.78, 41.61, 0))),
        (8 << 30, (NcclHalf(123456.78, 69.58, 121.76, 0), NcclHalf(34719.25, 247.41, 1432.9, 0))),
    )
)
BUSES = [half.busbw for row in ROWS for half in row.halves]


def report_of(settings: NcclSettings = SETTINGS, rows: tuple[NcclRow, ...] = ROWS) -> NcclReport:
    report = NcclReport(settings)
    report.facts = {"version": "1.0.0", "binding": "nccl", "buffer": "cupy", "placement": "D"}
    report.ranks = [
        NcclRank(rank, 4000 + rank, "node1", rank, "0000:1b:00", "NVIDIA H200") for rank in range(8)
    ]
    report.buses = [half.busbw for row in rows for half in row.halves]
    return report


def written(
    writer: Callable[[io.StringIO, NcclReport], NcclText | NcclJson] = NcclText,
    report: NcclReport | None = None,
    rows: tuple[NcclRow, ...] = ROWS,
) -> str:
    """What a writer prints of some rows."""
    stream = io.StringIO()
    stream.close = lambda: None  # type: ignore[method-assign]
    made = writer(stream, report or report_of())
    made.start({})
    for row in rows:
        made.row(row)
    made.finish()
    return stream.getvalue()


# C's formats of src/util.cu, which Python's % understands
BLANK = (
    "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          "
)
HEADING = "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s %*s"
ROW = "%12i  %12i  %8s  %6s  %6i"
HALF = "  %7s  %6s  %6s  %6g"
DEVICE = "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%04x:%02x:%02x] %s"


def test_lines_are_those_of_the_printf_formats() -> None:
    head = ("size", "count", "type", "redop", "root", *2 * ("time", "algbw", "busbw", "#wrong"))
    units = ("(B)", "(elements)", "", "", "", *2 * ("(us)", "(GB/s)", "(GB/s)", ""))
    lines = written().splitlines()
    assert lines[5] == DEVICE % (0, 0, 4000, "node1", 0, 0, 0x1B, 0, "NVIDIA H200")
    assert lines[13:20] == [
        "#",
        BLANK % ("", "", "", "", ""),
        HEADING % (*head, 0, ""),
        HEADING % (*units, 0, ""),
        ROW % (8, 2, "float", "sum", -1)
        + HALF % ("  12.34", "  0.00", "  0.00", 0)
        + HALF % ("  11.99", "  0.00", "  0.00", 0),
        ROW % (1 << 20, 1 << 18, "float", "sum", -1)
        + HALF % ("  45.50", " 23.04", " 40.33", 0)
        + HALF % ("  44.10", " 23.78", " 41.61", 0),
        ROW % (8 << 30, 2 << 30, "float", "sum", -1)
        + HALF % (" 123457", " 69.58", "121.76", 0)
        + HALF % ("34719.2", "247.41", "1432.9", 0),
    ]
    assert lines[20:] == [
        "# Out of bounds values : 0 OK",
        f"# Avg bus bandwidth    : {sum(BUSES) / 6:g} ",
        "#",
        "# Collective test concluded: all_reduce_perf",
        "#",
        "",
    ]


def test_data_that_is_not_checked_is_na_and_wrong_data_is_counted() -> None:
    halves = (NcclHalf(1.0, 2.0, 3.0, 1234567), NcclHalf(1.0, 2.0, 3.0, None))
    report = report_of()
    report.errors = 2
    lines = written(report=report, rows=(replace(ROWS[0], halves=halves),)).splitlines()
    expected = HALF % ("   1.00", "  2.00", "  3.00", 1234567) + "     1.00    2.00    3.00     N/A"
    assert lines[17].endswith(expected)
    assert "# Out of bounds values : 2 FAILED" in lines


def test_a_time_stamp_ends_a_line_below_its_heading() -> None:
    report = report_of(replace(SETTINGS, timestamps=True))
    lines = written(report=report).splitlines()
    head = ("size", "count", "type", "redop", "root", *2 * ("time", "algbw", "busbw", "#wrong"))
    assert lines[15] == HEADING % (*head, 19, "timestamp")
    assert lines[16].endswith("  (GB/s)           %Y-%m-%d %H:%M:%S")
    stamp = re.search(r"  (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)$", lines[17])
    assert stamp is not None
    assert len(lines[17]) == len(lines[15]) + 1


def test_a_size_without_memory_is_told_above_the_headings() -> None:
    report = report_of()
    report.largest = 1 << 20
    assert "# Reducing maxBytes to 1048576 due to memory limitation" in written(report=report)


def aws(text: str) -> list[float]:
    """The last but one word of lines that begin with a number: the bus bandwidth in place."""
    lines = (line for line in text.splitlines() if re.match(r"\s+[0-9]", line))
    return [float(line.split()[-2]) for line in lines]


def ai_cloud_validation(text: str) -> list[float]:
    """The eighth word of lines whose third is a type: the bus bandwidth out of place."""
    words = (line.split() for line in text.splitlines())
    return [float(one[7]) for one in words if len(one) >= 8 and one[2] in ("float", "half")]


def cluster_health_scanner(text: str) -> list[float]:
    """The twelfth of thirteen words of lines of floats, without comments."""
    lines = (line.split() for line in text.splitlines() if not line.strip().startswith("#"))
    return [float(one[11]) for one in lines if len(one) == 13 and one[2] == "float"]


def cloudai(text: str) -> list[float]:
    """Lines of thirteen words that begin with a digit, if the headings are known."""
    halves = r"\s+".join(2 * ["time", "algbw", "busbw", "#wrong"])
    assert re.search(rf"\bsize\s+count\s+type\s+redop\s+root\s+{halves}", text)
    ranks = [line for line in text.splitlines() if "Rank" in line and "NVIDIA" in line]
    assert [re.search(r"on\s+([\w.-]+)\s+device\s+(\d+)", line) for line in ranks]
    lines = (line.strip().split() for line in text.splitlines() if re.match(r"\s*\d", line))
    return [float(one[11]) for one in lines if len(one) == 13]


def superbench(text: str) -> list[float]:
    """The column that a heading names, counted from the end, between two known lines."""
    lines = text.splitlines()
    first = max(index for index, line in enumerate(lines) if "out-of-place" in line)
    last = max(index for index, line in enumerate(lines) if "Out of bounds values" in line)
    names = next(line[1:].split() for line in lines[first:last] if "busbw" in line)
    place = -1 - names[::-1].index("busbw")
    rows = (line.split() for line in lines[first + 1 : last])
    return [float(one[place]) for one in rows if one[0].isdigit() and int(one[0])]


IN_PLACE = [0.0, 41.61, 1432.9]


@pytest.mark.parametrize(
    ("parse", "found"),
    [
        (aws, IN_PLACE),
        (ai_cloud_validation, [0.0, 40.33, 121.76]),
        (cluster_health_scanner, IN_PLACE),
        (cloudai, IN_PLACE),
        (superbench, IN_PLACE),
    ],
)
def test_validators_find_the_bandwidths_of_the_rows(
    parse: Callable[[str], list[float]], found: list[float]
) -> None:
    assert parse(written()) == found


@pytest.mark.parametrize(
    "pattern",
    [
        r"# Avg bus bandwidth\s*:\s*(\d+\.?\d*)",  # AWS
        r"#?\s*Avg bus bandwidth\s*:\s*([\d.]+)",  # ai-cloud-validation
        r"#\sAvg bus bandwidth\s+:\s+([0-9\.]+)",  # CVS
        r"# Avg bus bandwidth.*?(\S+) *$",  # cloudai: the last word
    ],
)
def test_validators_find_the_mean_bandwidth(pattern: str) -> None:
    found = re.search(pattern, written(), re.M)
    assert found is not None
    assert float(found[1]) == pytest.approx(sum(BUSES) / 6, rel=1e-5)
    assert re.search(r"#\s*Out of bounds values\s*:\s*(\d+)", written())


def test_json_is_read_as_the_text_is() -> None:
    (text, document) = (
        read(name, written(writer).encode())
        for name, writer in (("a.log", NcclText), ("a.json", NcclJson))
    )
    assert not [*text.problems, *document.problems]
    assert [row["busbw_GBps"] for row in document.rows] == BUSES
    assert [row["busbw_GBps"] for row in text.rows] == [round(bus, 2) for bus in BUSES]
    shared = ("suite", "benchmark", "binding", "buffer", "placement", "ranks", "bytes", "in_place")
    for ours, theirs in zip(text.rows, document.rows, strict=True):
        assert [ours[name] for name in shared] == [theirs[name] for name in shared]
    row = text.rows[0]
    assert [row[name] for name in shared[:6]] == [
        "omb-py 1.0.0",
        "allreduce",
        "nccl",
        "cupy",
        "D",
        8,
    ]


def test_json_that_a_killed_job_left_has_its_whole_rows() -> None:
    whole = written(NcclJson)
    found = read("a.json", whole[: whole.index('"size":8589934592')].encode())
    assert [row["bytes"] for row in found.rows] == [8, 8, 1 << 20, 1 << 20]


def test_a_json_file_that_is_there_gets_another_name(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        stream, name = open_json(str(tmp_path / "a.json"))
        stream.close()
        names.append(name.removeprefix(f"{tmp_path}/"))
    assert names == ["a.json", "a.json.0", "a.json.1"]
