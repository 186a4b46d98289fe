"""Ramble, and Benchpark through it, finds native OMB's figures of merit in the programs' output.

Its application osu-micro-benchmarks looks for the heading of a table, which decides how rows are
read, and starts every program with -z.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omb_py.cli.programs import link
from tests.conftest import BIN, run, succeeded
from tests.helpers.figures_of_merit import Figure, extract

pytestmark = pytest.mark.any_library

NUMBER = r"([0-9.]+)"
OVERLAP = ["Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"]
TABLES = {
    "osu_latency -m 4:8": ["Avg Latency(us)"],
    "osu_put_latency -m 4:8": ["Latency (us)"],
    "osu_bw -m 4:8": ["Bandwidth (MB/s)"],
    "osu_mbw_mr -m 4:8": ["MB/s", "Messages/s"],
    "osu_allreduce -m 4:8": ["Avg Latency(us)"],
    "osu_iallreduce -m 4:8": OVERLAP,
    "osu_barrier": ["Avg Latency(us)"],
}
"""The columns of each program's table, without the size and without those that -z adds."""
VERSION = Figure("version", r"# OSU.*Test v([0-9.]+)", 1)
DATATYPE = Figure("datatype", r"# Datatype: (\S+)\.", 1)
START_UP = {
    "osu_init": rf"nprocs: {NUMBER}, min: {NUMBER} ms, max: {NUMBER} ms, avg: {NUMBER} ms",
    "osu_hello": r"This is a test with ([0-9]+) processes",
}


def printed(mpi: str, folder: Path, name: str, *options: str) -> str:
    """What a program prints on two ranks."""
    link(folder / name, BIN / "omb-py")
    job = succeeded(run([mpi, "-n", "2", str(folder / name), *options], {}, folder, timeout=120))
    return job.out


@pytest.mark.product(strength=1)
@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("program", TABLES)
def test_ramble_finds_the_rows(mpi: str, tmp_path: Path, program: str, tail: bool) -> None:
    name, *options = program.split()
    columns = list(TABLES[program])
    if tail:
        options.append("-z")
        unit = "BW(MB/s)" if "MB/s" in columns[0] else "Lat(us)"
        columns += [f"P{percent} Tail {unit}" for percent in (50, 90, 99)]
    sizes = ["4", "8"] if options[:1] == ["-m"] else []
    text = printed(mpi, tmp_path, name, *options, "-i", "20", "-x", "2")
    over = [*(["Size"] if sizes else []), *columns]
    heading = r"#\s+" + r"\s+".join(map(re.escape, over)) + r"\s*$"
    assert re.search(heading, text, re.MULTILINE), text
    size = r"\s*([0-9]+)\s+[0-9.]" if sizes else ""
    row = r"\s*" + r"\s+".join(len(over) * [NUMBER]) + r"\s*$"
    figures = [Figure(column, row, place, size) for place, column in enumerate(over, 1)]
    found = extract(text, [VERSION, DATATYPE, *figures])
    assert found.pop(("", "version")) == "7.4"
    assert found.pop(("", "datatype"), "none") == (
        "none" if not sizes else "MPI_INT" if "reduce" in name else "MPI_CHAR"
    )
    assert set(found) == {(size, column) for size in sizes or [""] for column in over}
    assert all(float(value) >= 0 for value in found.values())


@pytest.mark.parametrize("name", START_UP)
def test_ramble_finds_the_costs_of_a_start(mpi: str, tmp_path: Path, name: str) -> None:
    text = printed(mpi, tmp_path, name, "-z", "-m", "8")
    (found,) = re.findall(rf"(?m)^{START_UP[name]}$", text)
    ranks, *times = [found] if isinstance(found, str) else found
    assert ranks == "2"
    if times:
        least, most, average = map(float, times)
        assert 0 < least <= average <= most
