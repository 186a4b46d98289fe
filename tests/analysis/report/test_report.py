"""The page: what is on it, that nothing of files can break out of it, and that it is readable."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from omb_py.analysis.listing import shared, sheets
from omb_py.analysis.points import distinctions
from omb_py.analysis.report.page import MAX_ROWS, digest, report, template
from omb_py.analysis.report.runs import origin, places
from omb_py.analysis.table import Results, load
from omb_py.cli.report import command
from omb_py.core.errors import OmbError
from tests import ROOT
from tests.analysis.test_anomalies import SIZES, curve, read, row
from tests.helpers.refusals import missing, refuses

HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>\"'&<!--"


def figures_of(page: str) -> list[dict[str, Any]]:
    """The figures that the page's own script draws."""
    match = re.search(r'<script type="application/octet-stream" id="data">(.*?)</script>', page)
    assert match
    found = json.loads(gzip.decompress(base64.b64decode(match[1])))
    return list(found["figures"])


def drawn(page: str) -> list[dict[str, Any]]:
    """All points of the figures."""
    specs = [figure["specs"][0] for figure in figures_of(page)]
    return [row for spec in specs for rows in spec["datasets"].values() for row in rows]


@pytest.fixture
def quiet(tmp_path: Path) -> Results:
    """Two bindings, one size twice."""
    rows = [*curve(), *curve(binding="native"), row(8, 3.0, run="20261121T100000Z-000002")]
    return read(tmp_path, rows, "# mpi_library: MPICH Version: 5.0.2\n# hosts: node1:4\n")


def test_dependent_column_names_no_line() -> None:
    frame = pd.DataFrame(
        {"buffer": ["numpy", "cupy", "numpy"], "placement": ["H", "D", "H"], "ranks": [2, 2, 4]}
    )
    assert distinctions(frame, ("buffer", "placement", "ranks")) == ["buffer", "ranks"]


def visible(page: str) -> str:
    """The text of a page without its style and scripts."""
    text = re.sub(r"<(style|script)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.mark.slow
def test_the_head_says_when_where_and_how_it_was_measured(tmp_path: Path) -> None:
    metadata = (
        "# command: omb-py allreduce -i 1000\n# mpi_library: MPICH Version: 5.0.2\n"
        "# hosts: node1:4 node2:4\n# processor: EPYC, 64 logical cores\n# omb_py: 0.1.0\n"
    )
    page = report(read(tmp_path, curve(), metadata), title="My machine")
    text = visible(page)
    head = text[text.index("My machine", 5) : text.index("What ran where")]
    assert "When 2026-11-21 09:00 UTC" in head
    assert "Machine 2 hosts: node1, node2 · EPYC, 64 logical cores" in head
    assert "Software MPICH 5.0.2 · omb-py 0.1.0 · 4 ranks" in head
    assert "Measured 16 rows of 1 benchmark from 1 run in 1 file" in head
    assert "Command omb-py allreduce -i 1000" in head
    sections = re.findall(r"<h2>(.*?)</h2>", page.split("<script>")[0])
    assert sections == ["Key numbers", "Findings", "Figures", "Tables", "What ran where"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "not found: impossible 1 row, uncertain medians 1 row, slow ranks 1 row."),
        ({"latency_max_us": 30.0}, "mislead: slow rank (1)."),
        ({"validation": "Fail"}, "wrong: failed validation (1)."),
    ],
)
def test_first_sentence_names_anomaly(tmp_path: Path, columns: dict[str, Any], words: str) -> None:
    assert not missing(words, visible(report(read(tmp_path, [row(8, **columns)]))))


def test_page_without_evidence_says_so(tmp_path: Path) -> None:
    text = tmp_path / "osu.txt"
    text.write_text("# OSU MPI Some Latency Test v7.4\n# Size          Latency (us)\n8      1.53\n")
    assert not missing("numbers no evidence", visible(report(load(text))))


@pytest.mark.slow
def test_failed_validation_is_loud(tmp_path: Path) -> None:
    page = report(read(tmp_path, [row(8), row(16, validation="Fail")]))
    assert '<p class="alarm" role="alert"><strong>Data was wrong.</strong>' in page
    assert "Numbers that failed validation: 1." in visible(page)


@pytest.mark.slow
def test_impossible_number_is_no_failed_validation(tmp_path: Path) -> None:
    impossible = row(16) | {"sample_p50_us": 500.0}
    text = visible(report(read(tmp_path, [row(8), impossible])))
    assert "Numbers are wrong. Impossible, or of processes that ran alone: 1." in text
    assert "validation" not in text.partition("Findings")[0]
    both = visible(report(read(tmp_path, [row(8, validation="Fail"), impossible])))
    assert "Numbers that failed validation: 1." in both
    assert "Impossible, or of processes that ran alone: 1." in both


@pytest.fixture
def families(tmp_path: Path) -> str:
    """A page of a benchmark of one family and two of another, in two of which a rank is slow."""
    rows = [
        *curve(),
        *curve(benchmark="latency", sync=None, latency_max_us=90.0),
        *curve(benchmark="latency", sync=None, buffer="cupy"),
        row(None, benchmark="barrier", latency_max_us=30.0),
    ]
    return report(read(tmp_path, rows, "# hosts: node1:4\n# processor: one, 2 logical cores\n"))


def part_of(page: str, section: str) -> str:
    """A section of a page."""
    return page.partition(f'<section id="{section}">')[2].partition("</section>")[0]


@pytest.mark.slow
def test_shared_values_stand_once_above_tables(families: str, tmp_path: Path) -> None:
    text = visible(part_of(families, "tables"))
    assert text.count("4 ranks") == 1
    assert text.count("results.csv") == 1
    assert f"results.csv in {tmp_path}" in text
    assert text.count("numpy") == len(SIZES) + 2, "its benchmark has two buffers, others have one"
    assert "barrier 1 row; numpy" in text


@pytest.mark.slow
def test_tables_of_different_files_name_them_without_their_folder(tmp_path: Path) -> None:
    for name in ("latency", "bw"):
        (tmp_path / name).mkdir()
        read(tmp_path / name, curve(benchmark=name, run=f"20261121T090000Z-{name}"))
        (tmp_path / name / "results.csv").rename(tmp_path / f"{name}.csv")
    results = load(tmp_path)
    same = shared(results)
    assert same["folder"] == f"2 files in {tmp_path}"
    assert {one.above for one in sheets(results, said=same)} == {
        "16 rows; latency.csv",
        "16 rows; bw.csv",
    }


@pytest.mark.slow
def test_tables_and_figures_stand_in_families(families: str) -> None:
    tables = re.findall(r"<strong>(.*?)</strong>|<summary>(\w+) ", part_of(families, "tables"))
    names = ["point-to-point", "latency", "collective", "allreduce", "barrier"]
    assert ["".join(one) for one in tables] == names
    groups = re.findall(r'<optgroup label="(.*?)">(.*?)</optgroup>', families)
    chosen = {name: re.findall(r">(\w+)</option>", options) for name, options in groups}
    assert chosen == {"point-to-point": ["latency"], "collective": ["allreduce", "barrier"]}


@pytest.mark.slow
def test_findings_link_to_rows_and_figures_and_advise(families: str) -> None:
    found = part_of(families, "findings")
    assert "Start at most one rank per core." in found
    assert 'href="#what-ran-where">runs</a>' in found
    titles = [figure["title"] for figure in figures_of(families)]
    pattern = r"<td>(\w+)</td>.*?At (.*?) the.*?#(row-\d+)\".*?data-figure=\"(\d+)\""
    benchmark, size, row_id, figure = re.search(pattern, found).groups()  # type: ignore[union-attr]
    assert (benchmark, titles[int(figure)]) == ("latency", "latency")
    (target,) = re.findall(f'<tr id="{row_id}">(.*?)</tr>', families)
    assert visible(target).startswith(f"numpy {size} ")


@pytest.mark.slow
def test_finding_beyond_the_printed_rows_links_to_its_table(tmp_path: Path) -> None:
    rows = [row(size, 2 + size / 1000) for size in range(1, MAX_ROWS + 1)]
    last = row(1 << 20, 1050.0, latency_max_us=9e3)
    page = report(read(tmp_path, [*rows, last]))
    assert re.findall('href="#(row-[0-9]+)"', part_of(page, "findings")) == ["row-0"]
    assert page.count('id="row-0"') == 1


def test_metadata_is_said_once_and_differences_are_columns(tmp_path: Path) -> None:
    def of(run: int, library: str) -> str:
        return f"# run: r{run}\n# mpi_library: {library}\n# python: 3.12\n# command: c{run}\n"

    results = read(tmp_path, [row(run=f"r{number}") for number in range(3)])
    runs = {
        f"r{number}": dict(re.findall("# (.*): (.*)", of(number, library)))
        for number, library in enumerate(["MPICH 5.0.2", "MPICH 5.0.2", "Open MPI v5.0.11"])
    }
    table, shared = places(results.rows, runs)
    assert table.columns[:2] == ("runs", "mpi")
    assert [line[:2] for line in table.rows] == [("2", "MPICH 5.0.2"), ("1", "Open MPI 5.0.11")]
    assert ("python", "3.12") in shared.rows
    assert table.rows[0][-1] == "c0\nc1"


def test_a_variable_of_the_environment_is_a_field_by_itself(tmp_path: Path) -> None:
    results = read(tmp_path, [row(run="r1"), row(run="r2")])
    runs = {"r1": {"environment": "A=1 'B=x y'"}, "r2": {"environment": "A=2 'B=x y'"}}
    table, shared = places(results.rows, runs)
    assert table.columns == ("runs", "A", "started", "commands")
    assert shared.rows == (("B", "x y"),)


def test_files_without_metadata_have_a_place_too(tmp_path: Path) -> None:
    frame = read(tmp_path, [row()]).rows.assign(run=None, suite="OSU 7.4")
    table, shared = places(frame, {})
    assert [line[0] for line in table.rows] == ["1"]
    assert ("suite", "OSU 7.4") in shared.rows


def test_nothing_of_a_file_is_markup(tmp_path: Path) -> None:
    rows = [row(benchmark=HOSTILE, binding=HOSTILE.replace("/", " "), latency_max_us=30.0)]
    results = read(tmp_path, rows)
    frame = results.rows.assign(file=f"{HOSTILE}.csv", mpi=HOSTILE, part=HOSTILE)
    runs = {row()["run"]: {"command": HOSTILE, HOSTILE: HOSTILE, "environment": HOSTILE}}
    page = report(replace(results, rows=frame, runs=runs), title=HOSTILE)
    assert "<script>document" not in page
    assert "<img" not in page.split("<script>")[0]
    assert "<!--" not in page
    assert page.lower().count("</script") == 3


@pytest.mark.slow
def test_page_is_one_file_with_its_own_scripts(quiet: Results) -> None:
    page = report(quiet)
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1])  # type: ignore[index]
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert re.findall(r"'sha256-([^']+)'", policy) == [digest(script) for script in scripts]
    assert policy.startswith("default-src 'none'; ")
    assert "http" not in policy
    assert not re.search(r'(src|href)\s*=\s*"(?!#)|url\(|@import', page.split("<script>")[0])
    hosts = set(re.findall(r"(?:https?:)?//([a-z0-9-]+(?:\.[a-z0-9-]+)+)", page))
    assert hosts <= {"www.w3.org"}  # names of XML namespaces, which nobody opens
    assert f"<script>/*\n{template('vega.txt')}*/" in page
    assert len(page.encode()) < 1_500_000, "small enough to mail"


def test_results_without_a_number_are_refused(tmp_path: Path) -> None:
    results = read(tmp_path, [row() | {"latency_us": None}])
    with refuses(OmbError, "no row with a number"):
        report(results)


@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path: Path, quiet: Results) -> None:
    page = tmp_path / "made" / "report.html"
    done = CliRunner().invoke(command, [str(tmp_path), "-o", str(page), "--title", "Night run"])
    assert done.exit_code == 0, done.output
    assert "<title>Night run</title>" in page.read_text(encoding="utf-8")


@pytest.fixture
def two_files(tmp_path: Path) -> list[str]:
    """Two folders that measured the same, through two bindings each."""
    paths = []
    for name, factor in (("before", 1.0), ("after", 2.0)):
        (tmp_path / name).mkdir()
        times = {size: (2 + size / 1000) * factor for size in (8, 64)}
        run = {"run": f"20261121T090000Z-{name}"}
        rows = [*curve(times, **run), *curve(times, binding="native", **run)]
        read(tmp_path / name, rows, "# mpi_library: MPICH Version: 5.0.2\n# hosts: node1:4\n")
        paths.append(str(tmp_path / name / "results.csv"))
    return paths


def made(page: Path, *arguments: str) -> tuple[str, set[str]]:
    """The visible text and the names of the lines of the page that the command makes."""
    done = CliRunner().invoke(command, [*arguments, "-o", str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    return visible(text), {str(row["line"]) for row in drawn(text) if row.get("line")}


NAMED = ("--name", "old", "--name", "new")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "names", "count", "words"),
    [
        ((), ("after/results.csv", "before/results.csv"), 4, "best line is unclear"),
        (NAMED, ("old", "new"), 4, "old, buffer"),
    ],
    ids=["files", "names"],
)
def test_files_that_measured_the_same_are_side_by_side(
    tmp_path: Path, two_files: list[str], options: Any, names: Any, count: int, words: str
) -> None:
    text, lines = made(tmp_path / "report.html", *two_files, *options)
    assert len(lines) == count
    assert all(any(name in line for line in lines) for name in names)
    assert words in text


@pytest.mark.slow
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, quiet: Results) -> None:
    arguments = [str(tmp_path), "-o", str(tmp_path / "results.csv" / "page.html")]
    done = CliRunner().invoke(command, arguments)
    assert isinstance(done.exception, OmbError)
    assert "cannot write" in str(done.exception)


def test_fields_of_the_head_that_take_a_line_come_last() -> None:
    results = load(ROOT / "results" / "two-core-vm.csv")
    wide = re.search(r'name in (\(.*?\)) %} class="wide"', template("report.html.j2"))
    assert wide
    assert str(tuple(origin(results.rows, results.runs))[-2:]).replace("'", '"') == wide[1]


@pytest.mark.long
def test_the_reference_results_make_a_page() -> None:
    results = load(ROOT / "results")
    titles = {re.split("[,:]", figure["title"])[0] for figure in figures_of(report(results))}
    assert {"latency", "allreduce", "init"} <= titles


PAIRS = ROOT / "tests/data/pairs/one-slow-card.csv"


def test_pairs_of_ranks_are_a_map_with_what_is_slow(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(PAIRS), "-o", str(tmp_path / "p.html")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "p.html").read_text()
    (figure,) = figures_of(page)
    assert not missing("Slow: most pairs host node4 sends", figure["words"])
    said = "bw of 64 KiB: slow: most pairs that host node4 sends to"
    assert visible(page).count(said) >= 2, "in the head and in a section"
    (table,) = sheets(load(PAIRS), limit=3)
    assert any(remark.startswith(said) for remark in table.remarks), "show prints it, too"
