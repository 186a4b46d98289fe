"""nvbandwidth's matrices, from text of every version and JSON: whole ones only, cell by cell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.readers import Found, join, source_of
from omb_py.results.readers.nvbandwidth import READER
from tests import ROOT
from tests.helpers.damage import damaged
from tests.helpers.properties import examples

DATA = ROOT / "tests" / "data" / "nvbandwidth"
TEXTS = sorted(DATA.glob("*.txt"))
FILES = [*TEXTS, DATA / "all_0.8.json"]
ALL = (DATA / "all_0.5.txt").read_text()
DOCUMENT = (DATA / "all_0.8.json").read_text()
COPY = "nvbandwidth_host_to_device_memcpy_ce"


def found(text: str | bytes, path: str = "job.log") -> Found:
    return join(READER.read(source_of(path, text if isinstance(text, bytes) else text.encode())))


def rows(name: str) -> list[dict[str, Any]]:
    return found((DATA / name).read_bytes(), name).rows


def parts(result: list[dict[str, Any]], benchmark: str) -> list[str]:
    return [row["part"] for row in result if row["benchmark"] == f"nvbandwidth_{benchmark}"]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_number_of_a_matrix_is_a_row(path: Path) -> None:
    result = found(path.read_bytes(), path.name)
    assert result.problems == []
    cells = [
        (number, float(cell))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.match(r" ?\d(->\d)? ", line)
        for cell in re.findall(r"\d+\.\d\d", line)
    ]
    measured = [
        (
            row["line"],
            row["bandwidth_MBps"] / 1e3 if "bandwidth_MBps" in row else row["latency_us"] * 1e3,
        )
        for row in result.rows
    ]
    assert measured == [(line, pytest.approx(cell)) for line, cell in cells]


def test_json_has_the_rows_of_text() -> None:
    result = found(DOCUMENT)
    assert result.problems == []
    assert parts(result.rows, "host_to_device_memcpy_ce") == ["CPU to GPU 0", "CPU to GPU 1"]
    assert parts(result.rows, "device_to_device_memcpy_write_ce") == [
        "GPU 0 from GPU 1",
        "GPU 1 from GPU 0",
    ]
    (value,) = re.findall(r'"(77\d\.\d+|76\d\.\d+)",', DOCUMENT)
    latency = next(row for row in result.rows if "latency_us" in row)
    assert latency["latency_us"] == pytest.approx(float(value) / 1e3)


def test_a_copy_bidirectional_is_three_matrices_with_names() -> None:
    for result, kind in ((rows("all_0.5.txt"), "read_ce"), (found(DOCUMENT).rows, "write_sm")):
        key = f"device_to_device_bidirectional_memcpy_{kind}"
        way = kind.split("_")[0]
        one, other, both = (
            [row for row in result if row["benchmark"] == f"nvbandwidth_{key}_{suffix}"]
            for suffix in (f"{way}1", f"{way}2", "total")
        )
        assert {row["part"][:3] for row in both} == {"GPU"}, "between devices, whatever it says"
        assert [row["bandwidth_MBps"] for row in both] == pytest.approx(
            [a["bandwidth_MBps"] + b["bandwidth_MBps"] for a, b in zip(one, other, strict=True)],
            rel=1e-3,
        )


def test_cells_say_between_what_they_were() -> None:
    result = rows("all_0.5.txt")
    assert parts(result, "device_to_host_memcpy_ce")[0] == "CPU from GPU 0"
    assert parts(result, "device_to_device_memcpy_read_ce")[:2] == [
        "GPU 0 to GPU 1",
        "GPU 0 to GPU 2",
    ]
    assert parts(result, "device_local_copy") == [f"GPU {number}" for number in range(4)]
    nodes = rows("multinode_0.7.txt")
    assert parts(nodes, "multinode_device_to_device_all_to_one_write_sm")[3] == "All GPUs to GPU 3"
    assert parts(nodes, "multinode_bisect_write_ce") == [
        f"GPU {number} to GPU {(number + 2) % 4}" for number in range(4)
    ]


def test_who_measured_where() -> None:
    row = rows("all_0.5.txt")[0]
    assert (row["suite"], row["benchmark"]) == ("nvbandwidth 0.5", COPY)
    assert (row["ranks"], row["hosts"], row["placement"]) == (1, 1, "H D")
    row = rows("multinode_0.7.txt")[0]
    assert (row["ranks"], row["hosts"], row["mpi"]) == (4, 2, "Open MPI 4.1.4")
    (run,) = found(ALL).runs.values()
    assert run["driver"] == "570.124.06"
    assert run["device"] == "NVIDIA H100 80GB HBM3"
    assert found(DOCUMENT).rows[0]["suite"] == "nvbandwidth 0.8"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SUM host_to_device_memcpy_ce ", "SUM host_to_device_memcpy_ce 1"),
        ("SUM host_to_device_memcpy_ce", "SUM host_to_host_memcpy_ce"),
        (" 0     54", " 0    54"),
        (" 0     54", " 1     54"),
        ("         3\n", "\n"),
    ],
)
def test_a_matrix_that_contradicts_itself_is_left_out(old: str, new: str) -> None:
    text = ALL.replace(old, new, 1)
    assert text != ALL
    result = found(text)
    assert result.rows == [row for row in found(ALL).rows if row["benchmark"] != COPY]
    assert "whose sum does not fit" in result.problems[0].text
    assert result.problems[0].line == 17


def test_a_matrix_without_its_sum_is_left_out() -> None:
    result = found(ALL[: ALL.index("SUM host_to_device")])
    assert result.rows == []
    assert [problem.line for problem in result.problems] == [17]


def test_sums_are_rows_where_somebody_kept_nothing_else() -> None:
    kept = "".join(line for line in ALL.splitlines(keepends=True) if "SUM" in line or "nvb" in line)
    result = found(kept).rows
    assert {row["part"] for row in result} == {"sum"}
    assert result[0]["benchmark"] == COPY
    assert sum("latency_us" in row for row in result) == 2


def test_a_testcase_that_failed_is_named() -> None:
    result = found(DOCUMENT.replace('"Waived"', '"Error"'))
    assert [problem.text for problem in result.problems] == [
        "device_to_device_memcpy_read_sm: Error"
    ]
    assert found(DOCUMENT[:-20]).rows == []
    assert "incomplete" in found(DOCUMENT[:-20]).problems[0].text


def test_a_number_of_json_that_lost_a_digit_costs_its_testcase() -> None:
    cell = re.search(r'"(3[67]\d)\.', DOCUMENT)
    assert cell is not None
    result = found(DOCUMENT.replace(cell[1], cell[1][1:], 1))
    assert len(result.problems) == 1
    assert "sum does not fit" in result.problems[0].text


@given(st.data())
@examples(300)
def test_a_damaged_file_gives_no_numbers_that_were_not_printed(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(FILES))
    content = path.read_bytes()
    whole = [measured(row) for row in found(content, path.name).rows]
    for row in found(data.draw(damaged(content)), path.name).rows:
        name, part, value = measured(row)
        partly_known = part.startswith("row") or path.suffix == ".json"  # descriptions, names
        assert part == "sum" or any(
            (partly_known or (name, part) == known[:2])
            and value == pytest.approx(known[2], rel=1e-5)
            for known in whole
        )


def measured(row: dict[str, Any]) -> tuple[str, str, float]:
    value = row["bandwidth_MBps"] if "bandwidth_MBps" in row else row["latency_us"]
    return row["benchmark"], row["part"], value
