"""``omb-py traffic``: one run whose traffic is known, as tables, and folders that are no such."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.core.text.tables import on_console
from omb_py.tracing import counters, traffic
from omb_py.tracing.records.layout import EventKind
from tests.conftest import Run, succeeded
from tests.helpers.damage import damaged
from tests.helpers.properties import examples
from tests.helpers.refusals import assert_refused, missing
from tests.tracing.made_records import MadeRecord

Rows = list[dict[str, str]]
MIB = 1 << 20
RANKS = 4
HEADERS = 1.05


def wire(name: str, sent: int, received: int) -> dict[str, Any]:
    """A wire as it stands in a file."""
    return {
        "meter": "network",
        "name": name,
        "sent": sent,
        "received": received,
        "over": [],
        "events": {},
        "remark": "",
    }


def content(rank: int) -> dict[str, Any]:
    """What rank's file holds; ranks 0 and 2 lead hosts."""
    leader = rank // 2 * 2
    start = [wire("eth0", 1000, 1000), wire("lo", 500, 500)]
    return {
        "version": counters.VERSION,
        "rank": rank,
        "ranks": RANKS,
        "host": f"node{leader // 2}",
        "leader": leader,
        "library": "Open MPI 5.0.11",
        "complete": True,
        "before": start if rank == leader else [],
        "after": start if rank == leader else [],
    }


def write(folder: Path, contents: list[dict[str, Any]]) -> Path:
    """Write the files of ranks."""
    folder.mkdir(exist_ok=True)
    for one in contents:
        Path(counters.path_in(str(folder), one["rank"])).write_text(json.dumps(one))
    return folder


def doubling_and_a_send(folder: Path) -> Path:
    """Ten allreduces of 1 MiB by recursive doubling, and 3 MiB in 3 messages from rank 0 to 2.

    Neighbours in the first round share a host; the second round is between hosts, over eth0.
    """
    contents = []
    for rank in range(RANKS):
        extra = 3 if rank == 0 else 0
        one = content(rank)
        if one["leader"] == rank:
            carried = round((23 if rank == 0 else 20) * MIB * HEADERS)
            one["after"] = [wire("eth0", 1000 + carried, 1000), wire("lo", 500, 500)]
        contents.append(one)
        record = MadeRecord(folder, rank, RANKS, host=one["host"])
        for number in range(10):
            began = number * 10
            record.call("MPI_Allreduce", began, began + 5, nbytes=MIB, sequence=number + 1)
        for number in range(extra):
            record.call("MPI_Send", 100 + number, 101 + number, peer=2, nbytes=MIB)
        if rank == 2:
            record.call("MPI_Recv", 100, 103, kind=EventKind.CALL, peer=0, nbytes=3 * MIB)
        record.finish(1000)
    return write(folder, contents)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return doubling_and_a_send(folder)


def table(rows: Rows, name: str) -> Rows:
    """The rows of one table."""
    return [row for row in rows if row["table"] == name]


def rows_of(in_process: Run, folder: Path) -> Rows:
    """What the command writes as CSV."""
    done = in_process("traffic", str(folder), "--format", "csv")
    assert (done.code, done.err) == (0, "")
    return list(csv.DictReader(io.StringIO(done.out)))


def test_each_item_has_its_calls_and_bytes(in_process: Run, run: Path) -> None:
    sends, allreduce = table(rows_of(in_process, run), "items")
    assert (sends["what"], sends["calls"], sends["asked_bytes"]) == (
        "messages of the program",
        "3",
        str(3 * MIB),
    )
    assert sends["between_hosts_bytes"] == str(3 * MIB)
    assert allreduce["what"] == "MPI_Allreduce"
    assert (allreduce["calls"], allreduce["call_bytes"]) == ("10", str(MIB))
    assert allreduce["asked_bytes"] == str(40 * MIB)
    assert allreduce["between_hosts_bytes"] == ""


def test_each_link_has_what_its_interface_counted(in_process: Run, run: Path) -> None:
    links = table(rows_of(in_process, run), "links")
    assert [(row["host"], row["link"], row["sent_bytes"]) for row in links] == [
        ("node0", "eth0", str(round(23 * MIB * HEADERS))),
        ("node0", "lo", "0"),
        ("node1", "eth0", str(round(20 * MIB * HEADERS))),
        ("node1", "lo", "0"),
    ]


def test_messages_within_hosts_are_told_from_those_between_them(in_process: Run, run: Path) -> None:
    record = MadeRecord(run, 3, 4, host="node1")
    record.call("MPI_Send", 0, 10, peer=2, nbytes=MIB)
    record.finish(1000)
    (sends, _) = table(rows_of(in_process, run), "items")
    assert (sends["asked_bytes"], sends["between_hosts_bytes"]) == (str(4 * MIB), str(3 * MIB))


def test_collectives_of_one_host_do_not_leave_it(in_process: Run, tmp_path: Path) -> None:
    for rank in range(2):
        record = MadeRecord(tmp_path, rank, 2)
        record.call("MPI_Allreduce", 0, 5, nbytes=MIB, sequence=1)
        record.finish(10)
    write(tmp_path, [content(rank) | {"ranks": 2} for rank in range(2)])
    (allreduce,) = table(rows_of(in_process, tmp_path), "items")
    assert allreduce["between_hosts_bytes"] == "0"


def test_text_and_markdown_have_the_tables(in_process: Run, run: Path, tmp_path: Path) -> None:
    done = in_process("traffic", str(run))
    (line,) = [line for line in done.out.splitlines() if line.startswith("MPI_Allreduce")]
    assert line.split() == "MPI_Allreduce 4 10 1 MiB 40 MiB -".split()
    assert "carry what others send" in done.out
    heads = [line for line in done.out.splitlines() if line.startswith(("requested ", "host "))]
    assert [head.split() for head in heads] == [
        ["requested", "ranks", "calls", "bytes", "each", *"bytes to other hosts".split()],
        ["host", "link", "sent", "received"],
    ]
    assert in_process("traffic", str(run), "-o", "table.md").code == 0
    assert "| MPI_Allreduce | 4 |" in (tmp_path / "table.md").read_text()


def test_ranks_that_were_killed_are_named(in_process: Run, run: Path) -> None:
    path = run / "traffic-000003.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"complete": False}))
    done = succeeded(in_process("traffic", str(run)))
    assert not missing("rank 3 not end", done.out)
    path.unlink()
    done = succeeded(in_process("traffic", str(run)))
    assert not missing("no traffic of 1 of 4 ranks", done.out)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no traffic: omb-py profile --traffic"),
        ({"traffic-000000.json": "{"}, "traffic-000000.json no traffic omb-py profile"),
        ({"traffic-000000.json": "[1]"}, "traffic-000000.json no traffic omb-py profile"),
        ({"traffic-000000.json": '{"version": 9}'}, "traffic-000000.json version of omb-py"),
        (
            {
                "traffic-000000.json": json.dumps(content(0)),
                "traffic-000005.json": json.dumps(content(1) | {"ranks": 7, "rank": 5}),
            },
            "several runs",
        ),
    ],
    ids=["empty", "cut", "list", "version", "two runs"],
)
def test_no_traffic_refused(
    in_process: Run, tmp_path: Path, files: dict[str, str], words: str
) -> None:
    for name, said in files.items():
        (tmp_path / name).write_text(said)
    assert_refused(in_process("traffic", str(tmp_path)), 2, words)


@given(st.data())
@examples(150)
def test_a_damaged_file_is_refused_or_can_be_shown(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        folder = doubling_and_a_send(Path(name))
        path = folder / "traffic-000000.json"
        path.write_bytes(data.draw(damaged(path.read_bytes())))
        try:
            ranks = traffic.read_folder(folder)
        except UsageError:
            return
        found = traffic.traffic(ranks, None)
        on_console(traffic.sheets(found), traffic.notes(found), io.StringIO())
        pd.DataFrame(traffic.rows(found), columns=list(traffic.COLUMNS)).to_csv(io.StringIO())
