"""nccl-tests' JSON: the rows that its text would have, more digits, and times of iterations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.statistics import percentile
from omb_py.results.readers import Found, has_marks, join, source_of
from omb_py.results.readers.nccl_json import READER, library_version
from tests import ROOT
from tests.helpers.damage import damaged, without_place
from tests.helpers.properties import examples

DATA = ROOT / "tests" / "data" / "nccl-tests"
FILES = sorted(DATA.glob("*.json"))
EACH = (DATA / "all_reduce_v3.json").read_text()


def found(text: str | bytes, path: str = "job.json") -> Found:
    return join(READER.read(source_of(path, text if isinstance(text, bytes) else text.encode())))


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


def test_who_measured_where_and_with_what() -> None:
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


def test_devices_of_amd_are_those_of_rccl() -> None:
    part = found(EACH.replace("NVIDIA H100 80GB HBM3", "AMD Instinct MI300X")).rows[0]
    assert (part["suite"], part["binding"], part["buffer"]) == ("rccl-tests", "rccl", "hip")


def test_sizes_are_blocks_where_ours_are_blocks() -> None:
    assert [r["bytes"] for r in rows("alltoall_v2.json")][::2] == [128, 8192, 524288]
    assert [r["bytes"] for r in rows("all_reduce_v3.json")][::2] == [8, 1024, 1 << 20, 1 << 26]


def test_wrong_elements_fail_and_unchecked_ones_say_nothing() -> None:
    assert [r.get("validation") for r in rows("reduce_scatter_v1.json")] == ["Pass", "Fail"] * 2
    assert [r.get("validation") for r in rows("alltoall_v2.json")] == ["Pass", None] * 3


def test_samples_are_means_over_processes_without_the_skipped_iterations() -> None:
    for row, result in zip(
        rows("all_reduce_v3.json")[::2], json.loads(EACH)["results"], strict=True
    ):
        each = result["out_of_place_per_iter"]
        processes = each["per_process_max_times_us"]
        samples = sorted(sum(times) / 4 for times in list(zip(*processes, strict=True))[2:])
        assert row["sample_p50_us"] == pytest.approx(percentile(samples, 50))
        assert (row["sample_min_us"], row["sample_max_us"]) == pytest.approx(
            (samples[0], samples[-1])
        )
        assert row["slowest_mean_us"] == pytest.approx(each["avg_us"], abs=1e-5)
        assert row["slowest_max_us"] == each["max_us"]
        assert "sample_p99_us" not in row, "18 iterations cannot tell it"


def test_processes_with_several_devices_tell_the_slowest_only() -> None:
    for row in rows("all_gather_v3_threads.json"):
        assert row["slowest_p50_us"] > 0
        assert "sample_p50_us" not in row


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"min_us":', '"min_us":1'),
        ('"times_us":[', '"times_us":[1'),
        ('"skipped_iterations":2', '"skipped_iterations":3'),
        ('"iterations":20', '"iterations":21'),
    ],
)
def test_times_that_contradict_their_statistics_are_left_out(old: str, new: str) -> None:
    part = found(EACH.replace(old, new, 1))
    assert len(part.rows) == 8
    assert "slowest_p50_us" not in part.rows[0]
    assert "times of iterations" in part.problems[0].text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"size":1024', '"size":1025', "not that of the elements"),
        ('"count":256', '"count":25', "not that of the elements"),
        ('"size":1024', '"size":4', "after 8"),
        ('"type":"float"', '"type":"floot"', "not a whole result"),
        ('"redop":"sum"', '"redop":"su"', "not a whole result"),
        ('"root":"    -1"', '"root":"   -1"', "not a whole result"),
        ('"time":', '"time":1', "bandwidths that do not fit"),
        ('"bus_bw":0.000', '"bus_bw":0.00', "not a whole result"),
        ('"nwrong":0.000000', '"nwrong":"nan"', "not a whole result"),
        ('"time":', '"cpu_time":', "processor's time"),
    ],
)
def test_a_result_that_contradicts_itself_is_left_out(old: str, new: str, reason: str) -> None:
    part = found(EACH.replace(old, new, 1))
    assert len(part.rows) == 6
    assert [problem.line for problem in part.problems] == [1]
    assert reason in part.problems[0].text


def test_a_document_that_a_killed_job_left_has_its_whole_results() -> None:
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


def test_an_unknown_program_is_not_taken_for_another() -> None:
    part = found(EACH.replace("all_reduce_perf", "all_to_some_perf"))
    assert part.rows == []
    assert "all_to_some_perf is no program" in part.problems[0].text


def test_devices_that_do_not_fit_the_bandwidths_leave_all_out() -> None:
    last = EACH.index(',{"rank":3')
    part = found(EACH[:last] + EACH[EACH.index("}", last) + 1 :])
    assert part.rows == []
    assert "3 ranks" in part.problems[0].text


def test_devices_of_which_one_is_missing_leave_ranks_to_bandwidths() -> None:
    part = found(EACH.replace('"ngpus":1', '"ngpus":2'))
    assert {row.get("ranks") for row in part.rows} == {4}


@given(st.data())
@examples(300)
def test_a_damaged_document_gives_no_numbers_that_were_not_printed(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(FILES))
    content = path.read_bytes()
    whole = found(content, path.name).rows
    names = ("benchmark", "bytes", "dtype", "latency_us", "algbw_GBps", "busbw_GBps")
    printed = {tuple(row[name] for name in names) for row in whole}
    samples = {row.get("slowest_p50_us") for row in whole} | {None}
    for row in found(data.draw(damaged(content)), path.name).rows:
        assert tuple(row[name] for name in names) in printed
        assert row.get("slowest_p50_us") in samples
