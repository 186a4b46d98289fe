"""NCCL's inspector: late ranks, bandwidth by size, damaged files, and an MPI profile beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omb_py.core.errors import UsageError
from omb_py.tracing.profile.nccl import inspector_files, load, sheets
from tests.conftest import OMB_PY, run
from tests.helpers.refusals import missing, refuses

RANKS, LATE, MIB = 8, 5, 1 << 20
MARK = "inspector_output_format_version"


def item(rank: int, number: int, nbytes: int, microseconds: float) -> dict[str, object]:
    """An object as the plugin's page of 2026-06 shows it (format v4.0)."""
    speed = 1.75 * nbytes / microseconds / 1000
    return {
        "header": {"id": "0x7f8c496ae9f661", "rank": rank, "n_ranks": RANKS, "nnodes": 2},
        "metadata": {
            "inspector_output_format_version": "v4.0",
            "rec_mechanism": "profiler_plugin",
            "dump_timestamp_us": 1748030377748202,
            "hostname": f"gpu{rank // 4}",
            "pid": 1000 + rank,
        },
        "coll_perf": {
            "coll": "AllReduce",
            "coll_sn": number,
            "coll_msg_size_bytes": nbytes,
            "coll_exec_time_us": microseconds,
            "coll_algobw_gbs": speed / 1.75,
            "coll_busbw_gbs": speed,
        },
    }


def folder_of(root: Path, indent: int | None = None) -> Path:
    """Ten operations of eight ranks, of which the others wait 300 us for one in eight of them."""
    for rank in range(RANKS):
        texts = []
        for number in range(10):
            late = LATE if number < 8 else 2
            wait = 0 if rank == late else 300 if number < 8 else 10
            texts.append(json.dumps(item(rank, number, MIB, 100 + wait), indent=indent))
        path = root / "inspector" / f"gpu{rank // 4}-pid{1000 + rank}.log"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(texts) + "\n")
    return root / "inspector"


@pytest.mark.parametrize("indent", [None, 2])
def test_latest_rank_is_the_one_with_the_shortest_kernel(
    tmp_path: Path, indent: int | None
) -> None:
    found = inspector_files(folder_of(tmp_path, indent))
    assert len(found) == RANKS
    collectives, late = sheets(load(found))
    (row,) = collectives.rows
    assert row[:6] == ("AllReduce", "8", "1 MiB", "10", "400 µs", "100 µs")
    assert row[6:] == ("4.59 GB/s", "18.4 GB/s")
    assert late.rows == (
        ("gpu1", "5", "8 of 10", "2.40 ms", "300 µs"),
        ("gpu0", "2", "2 of 10", "20.0 µs", "10.0 µs"),
    )


def test_operation_without_all_ranks_accuses_none(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "gpu1-pid1005.log").unlink()
    (collectives,) = sheets(load(inspector_files(folder)))
    assert collectives.remarks == ("10 operations without the objects of all ranks",)


def test_object_that_a_killed_job_cut_is_left_out(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    path = folder / "gpu0-pid1000.log"
    path.write_text(path.read_text()[:-40])
    collectives, late = sheets(load(inspector_files(folder)))
    assert collectives.rows[0][3] == "10"
    assert not missing("1 operation 1 object damaged", collectives.remarks)
    assert "of 9" in late.rows[0][2]


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("metadata", "", None),
        ("metadata", "", ["gpu0"]),
        ("metadata", "hostname", "gpu0\n\x1b[31m"),
        ("coll_perf", "coll_sn", float("inf")),
        ("coll_perf", "coll_msg_size_bytes", float("inf")),
        ("coll_perf", "coll_msg_size_bytes", -5),
        ("coll_perf", "coll_exec_time_us", float("inf")),
        ("coll_perf", "coll_exec_time_us", float("nan")),
        ("coll_perf", "coll_busbw_gbs", float("nan")),
        ("coll_perf", "coll_busbw_gbs", -1.0),
        ("coll_perf", "coll", "All\nReduce"),
        ("header", "n_ranks", 0),
        ("header", "rank", RANKS),
    ],
)
def test_object_with_an_impossible_value_is_left_out(
    tmp_path: Path, part: str, name: str, value: object
) -> None:
    folder = folder_of(tmp_path)
    wrong: dict[str, Any] = item(0, 3, MIB, 400.0)
    wrong[part] = {**wrong[part], name: value} if name else value
    (folder / "wrong.log").write_text(json.dumps({"note": MARK, **wrong}))
    collectives, late = sheets(load(inspector_files(folder)))
    assert collectives.rows[0][3] == "10"
    assert collectives.remarks == ("1 object damaged, left out",)
    assert late.rows[0] == ("gpu1", "5", "8 of 10", "2.40 ms", "300 µs")


def test_copies_of_a_file_count_once(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "copy.log").write_text((folder / "gpu1-pid1005.log").read_text())
    _, late = sheets(load(inspector_files(folder)))
    assert late.rows[0] == ("gpu1", "5", "8 of 10", "2.40 ms", "300 µs")


def test_files_without_an_object_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text('{"inspector_output_format_version": 1}\n')
    with refuses(UsageError, "whole object"):
        load(inspector_files(path))


@pytest.mark.slow
def test_show_prints_it_beside_a_profile_of_mpi(tmp_path: Path) -> None:
    folder_of(tmp_path)
    (tmp_path / "p.py").write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n")
    assert run([OMB_PY, "profile", "p.py"], {}, tmp_path, timeout=60).code == 0
    shown = run([OMB_PY, "profile", "show", "omb-profile", "inspector"], {}, tmp_path, timeout=60)
    assert shown.code == 0, shown.err
    assert not missing("MPI_Barrier AllReduce Late", shown.out)
