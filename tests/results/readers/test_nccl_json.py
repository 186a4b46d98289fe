"""nccl-tests' JSON: the rows that its text would have, more digits, and times of iterations."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omb_py.results.readers import has_marks
from omb_py.results.readers.nccl_json import READER, library_version
from tests import ROOT
from tests.helpers.damage import without_place
from tests.helpers.reading import read_by

DATA = ROOT / "tests" / "data" / "nccl-tests"
FILES = sorted(DATA.glob("*.json"))
EACH = (DATA / "all_reduce_v3.json").read_text()


found = partial(read_by, READER.read)


def rows(name: str) -> list[dict[str, Any]]:
    return found((DATA / name).read_bytes(), name).rows


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_result_is_two_rows_with_its_own_numbers(path: Path) -> None:
    part = found(path.read_bytes(), path.name)
    assert part.problems == []
    assert has_marks(path)
    printed = [
        (half["time"], half["alg_bw"], half["bus_bw"])
        for result in json.loads(path.read_text())["results"]
        for half in (result["out_of_place"], result["in_place"])
    ]
    assert [(r["latency_us"], r["algbw_GBps"], r["busbw_GBps"]) for r in part.rows] == printed


def test_rows_have_ranks_hosts_type_counts_and_library() -> None:
    row = rows("reduce_scatter_v1.json")[0]
    assert (row["benchmark"], row["ranks"], row["hosts"]) == ("reduce_scatter_block", 8, 2)
    assert (row["dtype"], row["part"]) == ("float16", "graph 10, max")
    assert (row["iterations"], row["warmup"]) == (20, 1)
    assert {r["ranks"] for r in rows("all_gather_v3_threads.json")} == {8}, "one names its first"
    assert {r["root"] for r in rows("broadcast_v1.json")} == {"0"}
    assert {r["part"] for r in rows("alltoall_v2.json")} == {"blocking: -z 2"}
    (run,) = found(EACH).runs.values()
    assert run["library"] == "2.27.7"
    assert run["command"].startswith("./build/all_reduce_perf -b 8")
    assert (library_version(2708), library_version(23004)) == ("2.7.8", "2.30.4")


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("iterations", "iterations"),
        ("warmup_iters", "warmup"),
        ("aggregated_iterations", None),
        ("graph", "part"),
    ],
)
def test_config_without_a_setting_keeps_all_other_facts(key: str, column: str | None) -> None:
    text = (DATA / "reduce_scatter_v1.json").read_text()
    lacking, removed = re.subn(rf'"{key}":\d+,', "", text)
    assert removed == 1
    whole, part = found(text), found(lacking)
    assert part.problems == []
    assert part.runs == whole.runs
    for row, other in zip(part.rows, whole.rows, strict=True):
        changed = {name for name in row.keys() | other.keys() if row.get(name) != other.get(name)}
        assert changed == ({column} if column else set())


def test_devices_of_amd_are_those_of_rccl() -> None:
    part = found(EACH.replace("NVIDIA H100 80GB HBM3", "AMD Instinct MI300X")).rows[0]
    assert (part["suite"], part["binding"], part["buffer"]) == ("rccl-tests", "rccl", "hip")


def test_wrong_elements_fail_and_unchecked_ones_say_nothing() -> None:
    assert [r.get("validation") for r in rows("reduce_scatter_v1.json")] == ["Pass", "Fail"] * 2
    assert [r.get("validation") for r in rows("alltoall_v2.json")] == ["Pass", None] * 3


def test_iterations_have_the_statistics_that_are_printed() -> None:
    for row, result in zip(
        rows("all_reduce_v3.json")[::2], json.loads(EACH)["results"], strict=True
    ):
        each = result["out_of_place_per_iter"]
        assert row["slowest_mean_us"] == each["avg_us"]
        assert row["slowest_p50_us"] == each["p50_us"]
        assert row["slowest_max_us"] == each["max_us"]
        assert "slowest_p99_us" not in row, "the maximum, of 20 iterations"
        assert "sample_p50_us" not in row
    many = found(EACH.replace('"iterations":20', '"iterations":102'))
    assert all(row["slowest_p99_us"] <= row["slowest_max_us"] for row in many.rows)
    several = found(EACH.replace('"aggregated_iterations":1', '"aggregated_iterations":5'))
    assert all("slowest_p50_us" not in row for row in several.rows)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"size":1024', '"size":1025', "not that of the elements"),
        ('"type":"float"', '"type":"floot"', "not a whole result"),
        ('"root":"    -1"', '"root":" x"', "not a whole result"),
        ('"bus_bw":0.000', '"bus_bw":-0.000', "not a whole result"),
        ('"nwrong":0.000000', '"nwrong":"x"', "not a whole result"),
        ('"time":', '"cpu_time":', "processor's time"),
    ],
)
def test_a_result_that_contradicts_itself_is_left_out(old: str, new: str, reason: str) -> None:
    part = found(EACH.replace(old, new, 1))
    assert len(part.rows) == 6
    assert [problem.line for problem in part.problems] == [1]
    assert reason in part.problems[0].text


def test_cut_document_has_its_whole_results() -> None:
    part = found(EACH[: EACH.index('"size":1048576')])
    assert part.rows == found(EACH).rows[:4]
    assert "damaged or ends here" in part.problems[0].text


def test_a_document_that_somebody_indented_has_the_same_rows() -> None:
    indented = re.sub(r'([{,])(?=["{])', r"\1\n  ", EACH)
    part = found(indented)
    assert without_place(part.rows) == without_place(found(EACH).rows)
    assert len({row["line"] for row in part.rows}) == 4


def test_documents_one_after_the_other_are_runs() -> None:
    part = found(f"{EACH}\n{(DATA / 'broadcast_v1.json').read_text()}\n")
    assert {row["benchmark"] for row in part.rows} == {"allreduce", "bcast"}
    assert [row["line"] for row in part.rows][::8] == [1, 2]
    assert len(part.runs) == 2


def test_a_replayed_half_that_is_not_there_leaves_the_other() -> None:
    start = EACH.index('"out_of_place":{')
    end = EACH.index("}", start) + 1
    part = found(EACH[:start] + '"out_of_place":null' + EACH[end:])
    assert [row["in_place"] for row in part.rows] == [True, *[False, True] * 3]
