"""`omb-py gate FILES` as a site meets it: files of nodes, of other suites, of jobs; outputs."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from omb_py.measure.gate_turns import halves
from tests.analysis.test_hosts import fleet
from tests.conftest import Finished, Run

NATIVE = """\
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
8                      {:.2f}
1024                   {:.2f}
"""

NCCL = """\
# nccl-tests version 2.18.3 nccl-headers=23003 nccl-library=23003
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   4000 on {0:>10} device  0 [0000:1b:00] NVIDIA H200
#  Rank  1 Group  0 Pid   4001 on {1:>10} device  1 [0000:2b:00] NVIDIA H200
#
#                                                    out-of-place                 in-place
#    size    count  type redop root   time  algbw  busbw #wrong   time  algbw  busbw #wrong
#     (B) (elements)                  (us) (GB/s) (GB/s)          (us) (GB/s) (GB/s)
  1048576   262144 float  sum  -1 {2:6.2f} {3:6.2f} {3:6.2f}   0 {2:6.2f} {3:6.2f} {3:6.2f}   0
"""

HEAD = """\
# run: {run}
# omb_py: 1.0.0
# mpi_library: MPICH Version: 5.0.2
# hosts: {hosts}
# ranks: 4
{turn}run,benchmark,bytes,ranks,buffer,binding,placement,split,group,validation,latency_us
"""

HOSTS = ("a", "b", "c", "d")


def row(run: str, split: str, benchmark: str, group: str, time: float, data: str = "") -> str:
    ranks = len(re.split("[+-]", group))
    return f"{run},{benchmark},8,{ranks},numpy,native,H,{split},{group},{data},{time}\n"


def job(
    path: Path,
    slow: Mapping[int, float],
    turn: str = "",
    data: str = "",
    names: Sequence[str] = HOSTS,
) -> Path:
    """A file of a gate: ranks by themselves, in pairs, in halves, together; some are slower."""
    text = HEAD.format(run=path.stem, hosts=" ".join(f"{one}:1" for one in names), turn=turn)
    for number in range(3):
        for rank in range(4):
            time = 10 * slow.get(rank, 1.0) * (1 + (rank + number) % 3 / 100)
            text += row(path.stem, "node", "pack", str(rank), time, data)
    for number, turns in enumerate(((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2)) * 2):
        for a, b in (turns[:2], turns[2:]):
            time = 5 * max(slow.get(a, 1.0), slow.get(b, 1.0)) * (1 + (a + b + number) % 3 / 100)
            text += row(path.stem, "pairs", "latency", f"{a}+{b}", time)
    for sides in halves(range(4)):
        for side in sides:
            time = 7 * max(slow.get(one, 1.0) for one in side)
            text += row(path.stem, "halves", "allreduce", "+".join(map(str, side)), time)
    path.write_text(
        text + row(path.stem, "", "allreduce", "0-3", 9 * max(slow.values(), default=1))
    )
    return path


def verdict(done: Finished, code: int, *words: str) -> None:
    assert done.code == code, done.out + done.err
    said = done.out + done.err
    assert [one for one in words if one not in said] == [], said


def test_gate_tells_two_hosts_of_one_name_apart_and_drains_it(
    in_process: Run, tmp_path: Path
) -> None:
    same = job(tmp_path / "same.csv", {2: 2.0}, names=("a", "b", "a", "d"))
    verdict(in_process("gate", str(same), "--drain", "bad"), 4, "FAIL: a#2  ", "3 of 4 hosts fine")
    assert (tmp_path / "bad").read_text() == "a\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [16, 2000])
def test_gate_of_files_of_nodes_names_the_slow_one(
    in_process: Run, tmp_path: Path, number: int
) -> None:
    folder = fleet(tmp_path / "f", number, {7: 3.0})
    last = folder / f"EPYC-{number - 1:02}.csv"
    with gzip.open(f"{last}.gz", "wb") as packed:
        packed.write(last.read_bytes())
    last.unlink()
    done = in_process("gate", str(folder), "--drain", "bad")
    verdict(done, 4, "FAIL: node07  latency ", f"times the median of {number - 1} others")
    verdict(done, 4, f"FAIL: {number - 1} of {number} hosts fine")
    assert (tmp_path / "bad").read_text() == "node07\n"


def test_gate_takes_hosts_from_the_names_of_text_files(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    for number in range(8):
        time = 3.0 if number == 7 else 1 + number % 3 / 100
        text = NATIVE.format(time, 2 * time)
        (tmp_path / "f" / f"lat-node{number}.txt").write_text(text)
    named = in_process("gate", "f", "--assume", "lat-*.txt:host_names=*")
    verdict(named, 4, "FAIL: node7  latency ", "7 of 8 hosts fine")
    verdict(in_process("gate", "f"), 2, "add --assume '*.txt:host_names=*'")
    verdict(in_process("gate", "f", "--assume", "*7*:hosts=node7"), 2, "host_names has their names")
    some = in_process("gate", "f", "--assume", "lat-node[1-5].txt:host_names=node7")
    verdict(some, 7, "rows without a host in", "lat-node0.txt")


def test_gate_takes_hosts_from_the_ranks_of_nccl_tests(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    for number in range(5):
        factor = 2.0 if number == 3 else 1 + number / 100
        host = f"gpu{number}"
        text = NCCL.format(host, host, 20 * factor, 52.43 / factor)
        (tmp_path / "f" / f"{number}.txt").write_text(text)
    done = in_process("gate", "f")
    verdict(done, 4, "FAIL: gpu3  allreduce 1 MiB", "4 of 5 hosts fine")
    (tmp_path / "two.txt").write_text(NCCL.format("gpu0", "gpu1", 20, 52.43))
    verdict(in_process("gate", "two.txt"), 7, "2 points of fewer than 3 hosts: which")


@pytest.mark.slow
def test_gate_of_a_jobs_file_judges_all_its_stages(in_process: Run, tmp_path: Path) -> None:
    slow = str(job(tmp_path / "slow.csv", {2: 2.0}))
    words = ("FAIL: c  ", "slow at 2 points", "3 of 4 hosts fine")
    verdict(in_process("gate", slow), 4, *words)
    assert "pack 8 B on the node" in in_process("gate", slow).out
    node = in_process("gate", slow, "--where", "split=node")
    verdict(node, 4, "FAIL: c  pack 8 B on the node", "of 3 others")
    verdict(in_process("gate", str(job(tmp_path / "fine.csv", {}))), 0, "PASS: 4 of 4 hosts fine")
    ended = job(tmp_path / "ended.csv", {}, turn="# turn: 2 pairs\n")
    verdict(in_process("gate", str(ended)), 7, "the job ended in turn 2 of the gate in pairs")
    wrong = job(tmp_path / "wrong.csv", {}, data="Fail")
    verdict(in_process("gate", str(wrong)), 4, "wrong.csv: pack at 8 B", "in 12 rows")


@pytest.mark.slow
def test_gate_of_incomplete_files_is_no_pass(in_process: Run, tmp_path: Path) -> None:
    folder = fleet(tmp_path / "f", 6)
    path = folder / "EPYC-03.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    fewer = in_process("gate", "f")
    verdict(fewer, 7, "hosts without points that most hosts have: node03 (latency 64 B)")
    (folder / "EPYC-04.csv").write_text("")
    (tmp_path / "asked").write_text("".join(f"node0{number}\n" for number in range(6)))
    empty = in_process("gate", "f", "--hosts", "asked")
    verdict(empty, 7, "1 not measured (node04)", "EPYC-04.csv is empty")
    files = [f"f/EPYC-0{number}.csv" for number in (0, 1, 2, 5)]
    last = (folder / "EPYC-05.csv").read_text()
    (folder / "EPYC-05.csv").write_text(last.replace(",latency,", ",reduce,"))
    verdict(in_process("gate", *files), 7, "1 cannot be judged (node05)", "fewer than 3")
    (folder / "EPYC-05.csv").write_text(re.sub(r",[\d.]+,[\d.]+\n", ",,\n", last))
    verdict(in_process("gate", *files), 7, "1 not measured (node05)")


@pytest.mark.slow
def test_gate_with_expected_values_names_the_host_or_the_pair(
    in_process: Run, tmp_path: Path
) -> None:
    (tmp_path / "site.csv").write_text("benchmark,bytes,value,unit\nlatency,8,1.0,us\n")
    fleet(tmp_path / "f", 6, dict.fromkeys(range(6), 2.0))
    every = in_process("gate", "f", "--expected", "site.csv", "--where", "bytes=8")
    verdict(every, 4, "FAIL: node00  ", "0 of 6 hosts fine")
    (tmp_path / "pair.csv").write_text("benchmark,bytes,value,unit\nlatency,8,5.0,us\n")
    slow = str(job(tmp_path / "slow.csv", {2: 2.0}))
    done = in_process("gate", slow, "--expected", "pair.csv", "--where", "split=pairs")
    verdict(done, 4, "FAIL: c  latency 8 B in pairs", "3 of 4 hosts fine")


@pytest.mark.slow
def test_gate_writes_verdicts_in_each_format(in_process: Run, tmp_path: Path) -> None:
    fleet(tmp_path / "f", 6, {3: 3.0})
    for name, words in {
        "v.csv": "node03,latency 8 B,",
        "v.md": "| node03 | ",
        "v.json": '"verdict": "SLOW"',
        "v.prom": 'omb_py_gate_host_failed{host="node03"} 1',
        "v.txt": "Gate: 6 hosts",
    }.items():
        verdict(in_process("gate", "f", "-o", name), 4, "FAIL: node03  latency")
        assert words in (tmp_path / name).read_text()
        verdict(in_process("gate", "f", "-o", name), 2, f"{name} exists", "--force")
        verdict(in_process("gate", "f", "-o", name, "--force"), 4)
    told = json.loads(in_process("gate", "f", "--format", "json").out)
    assert (told["drain"], told["hosts"][0]) == (["node03"], "node00")
    same = in_process("gate", "f", "-o", "x.csv", "--drain", "x.csv")
    verdict(same, 2, "--output and --drain both name x.csv")
    verdict(in_process("gate", "f", "--drain", "v.csv/bad"), 1, "cannot write v.csv/bad")
    verdict(in_process("gate", "f", "--where", "bytes=9"), 2, "no row has bytes=9")
    verdict(in_process("gate", "f", "--partners", "3"), 2, "--partners is about measuring")
