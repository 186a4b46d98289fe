"""``omb-py traffic``: one run whose traffic is known, as tables, and folders that are no such."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.core.text.tables import on_console
from omb_py.tracing.counters.connections import ConnectionCounters
from omb_py.tracing.counters.links import HOST, NETWORK, LinkUsage
from omb_py.tracing.traffic import paths, report
from omb_py.tracing.traffic.paths import NO_LINK, NOTHING, SHARED_MEMORY, TOO_LITTLE, carriers
from tests.conftest import Run, succeeded
from tests.helpers.damage import damaged
from tests.helpers.properties import examples
from tests.helpers.refusals import assert_refused, missing
from tests.tracing.made_records import MadeRecord
from tests.tracing.traffic.folders import HEADERS, MIB, content, doubling_and_a_send

Rows = list[dict[str, str]]


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


def test_each_item_has_its_bytes_and_its_path(in_process: Run, run: Path) -> None:
    sends, allreduce = table(rows_of(in_process, run), "items")
    assert (sends["what"], sends["calls"], sends["asked_bytes"]) == (
        "messages of the program",
        "3",
        str(3 * MIB),
    )
    assert (sends["between_hosts_bytes"], sends["path"]) == (str(3 * MIB), "eth0")
    assert allreduce["what"] == "MPI_Allreduce"
    assert (allreduce["calls"], allreduce["call_bytes"]) == ("10", str(MIB))
    assert allreduce["asked_bytes"] == str(40 * MIB)


def test_each_path_has_what_carried_it(in_process: Run, run: Path) -> None:
    first, out, _, back = table(rows_of(in_process, run), "paths")
    assert (first["host"], first["what"], first["path"]) == ("node0", "within", SHARED_MEMORY)
    assert (out["asked_bytes"], out["path"]) == (str(3 * MIB), "eth0")
    assert out["sent_bytes"] == str(round(23 * MIB * HEADERS))
    assert back["sent_bytes"] == str(round(20 * MIB * HEADERS))


def test_data_of_files_stands_beside_messages(in_process: Run, run: Path) -> None:
    record = MadeRecord(run, 3, 4, host="node1")
    record.call("MPI_File_iwrite_at", 0, 10**9, nbytes=2 * MIB)
    record.call("MPI_File_write_all", 0, 10**9, nbytes=MIB)
    record.call("MPI_File_read_at", 0, 10**9, nbytes=1000)
    record.finish(10**10)
    path = run / "traffic-000003.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"storage": [0, 5 * MIB]}))
    rows = rows_of(in_process, run)
    wanted = {"data of files read": ("1", "1000"), "data of files written": ("2", str(3 * MIB))}
    items = {row["what"]: (row["calls"], row["asked_bytes"]) for row in table(rows, "items")}
    assert {what: items.get(what) for what in wanted} == wanted
    found = [
        [row[name] for name in ("host", "from", "what", "calls", "asked_bytes", "moved_bytes")]
        for row in table(rows, "files")
    ]
    assert found == [
        ["node1", "3", "read", "1", "1000", "0"],
        ["node1", "3", "written", "2", str(3 * MIB), str(5 * MIB)],
    ]
    assert [row["seconds"] for row in table(rows, "files")] == ["1.0", "2.0"]
    shown = in_process("traffic", str(run)).out
    lines = [line.split() for line in shown.splitlines()]
    assert "3 node1 1 read 1000 B 1.000 0 B".split() in lines
    assert "node1 2 written 3 MiB 2.000 5 MiB".split() in lines


def test_messages_within_hosts_are_told_from_those_between_them(in_process: Run, run: Path) -> None:
    record = MadeRecord(run, 3, 4, host="node1")
    record.call("MPI_Send", 0, 10, peer=2, nbytes=MIB)
    record.finish(1000)
    peers = {(row["from"], row["to"]): row for row in table(rows_of(in_process, run), "peers")}
    assert peers["0", "2"]["what"] == "to other hosts"
    assert peers["3", "2"]["what"] == "within"
    lines = [line.split() for line in in_process("traffic", str(run)).out.splitlines()]
    (within,) = [line for line in lines if line[:2] == ["node1", "within,"]]
    assert within[4:8] == ["1", "MiB", "25", "%"]
    assert "to other hosts 3 MiB 75 %".split() in [line[:7] for line in lines]
    assert any(line[:5] == ["0", "2", "to", "other", "hosts"] for line in lines)


def test_text_and_markdown_have_the_tables(in_process: Run, run: Path, tmp_path: Path) -> None:
    done = in_process("traffic", str(run))
    (line,) = [line for line in done.out.splitlines() if line.startswith("MPI_Allreduce")]
    assert line.split() == "MPI_Allreduce - 4 10 1 MiB 40 MiB -".split()
    assert "carry what others send" in done.out
    heads = [
        line for line in done.out.splitlines() if line.startswith(("requested ", "rank ", "host "))
    ]
    assert [head.split() for head in heads] == [
        ["requested", "path", "ranks", "calls", "bytes", "each", *"bytes to other hosts".split()],
        ["host", "to", "program's", "messages", "share", "path", "carried"],
        ["host", "link", "sent", "received"],
        ["rank", "to", "hosts", "messages", "bytes"],
    ]
    assert in_process("traffic", str(run), "-o", "table.md").code == 0
    assert "| MPI_Allreduce | - |" in (tmp_path / "table.md").read_text()


@pytest.mark.parametrize(
    ("beyond", "moved"),
    [
        ([10, 13, 10, 10], ["", str(23 * MIB), "", str(20 * MIB)]),
        ([1, 1, 10, 10], ["", "", "", str(20 * MIB)]),  # not by TCP that stayed open
    ],
)
def test_what_the_kernel_counted_to_other_hosts_was_moved_there(
    in_process: Run, run: Path, beyond: list[int], moved: list[str]
) -> None:
    for path, amount in zip(sorted(run.glob("traffic-*")), beyond, strict=True):
        one = json.loads(path.read_text())
        one["connections"] = {"within": 0, "beyond": amount * MIB, "received": 0, "again": 0}
        path.write_text(json.dumps(one))
    rows = rows_of(in_process, run)
    assert [row["moved_bytes"] for row in table(rows, "paths")] == moved
    items = {row["what"]: row["between_hosts_bytes"] for row in table(rows, "items")}
    if all(moved[1::2]):
        assert items["what else the library sent"] == str(40 * MIB)
        assert items["in all"] == str(43 * MIB)
    else:
        assert "in all" not in items


def test_ranks_that_were_killed_are_named(in_process: Run, run: Path) -> None:
    path = run / "traffic-000003.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"complete": False}))
    done = succeeded(in_process("traffic", str(run)))
    assert not missing("rank 3 not end", done.out)
    path.unlink()
    done = succeeded(in_process("traffic", str(run)))
    assert not missing("no traffic of 1 of 4 ranks", done.out)


@pytest.mark.parametrize(
    ("links", "within", "nbytes", "path"),
    [
        ({"eth0": 105, "lo": 0}, False, 100, "eth0"),
        ({"ib0": 60, "ib1": 50}, False, 100, "ib0, ib1"),
        ({"eth0": 2, "ib0": 110}, False, 100, "ib0"),
        ({"eth0": 2}, False, 100, NO_LINK),
        ({"lo": 1}, True, 100, SHARED_MEMORY),
        ({"lo": 103}, True, 100, "lo"),
        (
            {"lo": 0, "GPU 0 NVLink": 70, "GPU 1 NVLink": 30},
            True,
            100,
            "GPU 0 NVLink, GPU 1 NVLink",
        ),
        ({"lo": 103}, True, 0, NOTHING),
        ({"lo": 103}, True, 0.01, TOO_LITTLE),
    ],
    ids=str,
)
def test_path_carried_enough(links: dict[str, int], within: bool, nbytes: float, path: str) -> None:
    carried = [
        LinkUsage("", name, mib * MIB, 0, HOST if name[0] in "lG" else NETWORK)
        for name, mib in links.items()
    ]
    assert carriers(carried, within, round(nbytes * MIB))[0] == path


@pytest.mark.parametrize(
    ("links", "within", "tcp", "path"),
    [
        ({"lo": 103}, True, ConnectionCounters(within=100 * MIB), "lo"),
        ({"lo": 103}, True, ConnectionCounters(beyond=100 * MIB), SHARED_MEMORY),
        ({"eth0": 103, "mlx5_0": 100}, False, ConnectionCounters(beyond=MIB), "mlx5_0"),
        ({"eth0": 103, "mlx5_0": 100}, False, ConnectionCounters(beyond=90 * MIB), "eth0, mlx5_0"),
        ({"eth0": 103}, False, ConnectionCounters(), "eth0"),
    ],
    ids=str,
)
def test_interfaces_that_others_use_are_no_path(
    links: dict[str, int], within: bool, tcp: ConnectionCounters, path: str
) -> None:
    carried = [
        LinkUsage(
            "infiniband" if name.startswith("mlx") else "network",
            *(name, mib * MIB, 0, HOST if name == "lo" else NETWORK),
        )
        for name, mib in links.items()
    ]
    assert carriers(carried, within, 100 * MIB, tcp)[0] == path


def test_a_link_above_others_is_not_counted_twice() -> None:
    bond = LinkUsage("network", "bond0", 100 * MIB, 0, over=("eth0", "eth1"))
    below = [LinkUsage("network", f"eth{n}", 50 * MIB, 0) for n in range(2)]
    assert carriers([bond, *below], False, 100 * MIB)[0] == "eth0, eth1"


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
            ranks = paths.read_folder(folder)
        except UsageError:
            return
        found = report.traffic(ranks, None)
        on_console(report.sheets(found), report.notes(found), io.StringIO())
        pd.DataFrame(report.rows(found), columns=list(report.COLUMNS)).to_csv(io.StringIO())
