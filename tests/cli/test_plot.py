"""``omb-py plot``: what it writes, what it says, and what it does not overwrite."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests import RESULTS, ROOT
from tests.conftest import Finished, Run, succeeded
from tests.helpers.refusals import assert_refused, missing

TABLE = str(RESULTS / "two-core-vm.csv")
LATENCY = (TABLE, "--where", "benchmark=latency")
MARKS = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg"}


@pytest.fixture
def plot(in_process: Run) -> Run:
    def start(*arguments: str, **environment: str) -> Finished:
        return in_process("plot", *arguments, **environment)

    return start


@pytest.mark.long
def test_a_benchmark_becomes_a_png_of_its_name(omb_py: Run, tmp_path: Path) -> None:
    done = omb_py("plot", *LATENCY)
    assert (done.code, done.out, done.err) == (0, "latency.png\n", "")
    assert (tmp_path / "latency.png").read_bytes().startswith(MARKS["png"])


@pytest.mark.slow
def test_formats_and_folders(plot: Run, tmp_path: Path) -> None:
    done = plot(*LATENCY, "--output", "folder", "--format", "svg", "--format", "pdf")
    assert done.out.splitlines() == ["folder/latency.svg", "folder/latency.pdf"]
    for form in ("svg", "pdf"):
        content = (tmp_path / "folder" / f"latency.{form}").read_bytes()
        assert content.startswith(MARKS[form])


def test_a_figure_is_as_wide_as_it_is_printed(plot: Run, tmp_path: Path) -> None:
    assert plot(*LATENCY, "--width", "8.5cm", "--theme", "dark", "--format", "svg").code == 0
    width = re.search(r'width="([0-9.]+)pt"', (tmp_path / "latency.svg").read_text())
    assert width is not None
    assert float(width[1]) == pytest.approx(8.5 / 2.54 * 72, rel=5e-3)
    assert plot(*LATENCY, "--width", "a column").code == 2


@pytest.mark.slow
def test_no_caption_leaves_the_image_without_it(plot: Run, tmp_path: Path) -> None:
    heights = []
    for words in ((), ("--no-caption", "--force")):
        assert plot(*LATENCY, "--format", "svg", *words).code == 0
        found = re.search(r'height="([0-9.]+)pt"', (tmp_path / "latency.svg").read_text())
        heights += [float(found[1])] if found else []
    assert heights[1] < heights[0] - 9


@pytest.mark.long
def test_many_figures_need_a_folder_of_their_own(plot: Run, tmp_path: Path) -> None:
    families = [str(RESULTS / f"families-{library}.csv") for library in ("mpich", "openmpi")]
    assert_refused(plot(*families), 2, "127 figures -o DIR --where --kind")
    assert [*tmp_path.iterdir()] == []


def test_two_files_have_lines_by_their_names(plot: Run, tmp_path: Path) -> None:
    for name, of in (("old", "1"), ("new", "2")):
        text = Path(TABLE).read_text().replace("20261121T", f"2026112{of}T")
        (tmp_path / f"{name}.csv").write_text(text.replace(",1.", f",{of}."))
    files = ("old.csv", "new.csv", "--where", "benchmark=latency", "--format", "text")
    done = plot(*files)
    assert "MPICH 5.0.2, old.csv" in done.out
    assert "side by side: old.csv, new.csv" in done.err
    done = plot(*files, "--name", "before", "--name", "new.csv=after", "--lines", "source,mpi")
    assert done.code == 0
    assert "before, MPICH 5.0.2" in done.out
    assert "after, MPICH 5.0.2" in done.out
    assert done.err == ""


@pytest.mark.slow
def test_one_figure_goes_to_the_file_that_is_named(plot: Run, tmp_path: Path) -> None:
    assert plot(*LATENCY, "--output", "my.svg").out == "my.svg\n"
    (tmp_path / "my.svg").write_text("my notes")
    done = plot(*LATENCY, "--output", "my.svg")
    assert_refused(done, 2, "my.svg exists: another --force")
    assert (tmp_path / "my.svg").read_text() == "my notes"
    assert plot(*LATENCY, "--output", "my.svg", "--force").code == 0
    assert (tmp_path / "my.svg").read_bytes().startswith(MARKS["svg"])
    assert [path.name for path in tmp_path.iterdir()] == ["my.svg"]


def test_a_file_that_is_there_stops_all(plot: Run, tmp_path: Path) -> None:
    mine = tmp_path / "latency.png"
    mine.write_text("my notes")
    done = plot(*LATENCY, "--format", "svg", "--format", "png")
    assert_refused(done, 2, "latency.png exists")
    assert mine.read_text() == "my notes"
    assert not (tmp_path / "latency.svg").exists()


def test_a_terminal_figure_makes_no_files(plot: Run, tmp_path: Path) -> None:
    done = succeeded(plot(*LATENCY, "--format", "text", NO_COLOR="1"))
    assert "MPICH 5.0.2" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert "\x1b" not in done.out
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_figure_beside_a_file(plot: Run, tmp_path: Path) -> None:
    done = plot(*LATENCY, "--format", "text", "--format", "svg")
    assert done.out.endswith("\nlatency.svg\n")
    assert (tmp_path / "latency.svg").exists()


def commands() -> list[str]:
    pages = (ROOT / "docs/plots.md", ROOT / "docs/howto/upgrade.md")
    text = "\n".join(page.read_text() for page in pages)
    return re.findall(r"^omb-py plot (results/.*)$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("line", commands())
def test_the_commands_of_pages_make_their_figures(plot: Run, tmp_path: Path, line: str) -> None:
    (tmp_path / "results").symlink_to(RESULTS)
    (tmp_path / "docs").mkdir()
    *arguments, name = shlex.split(line)
    assert arguments[-1] == "-o"
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text("old")
    assert plot(*arguments, name).out == f"{name}\n"
    assert (tmp_path / name).read_bytes().startswith(MARKS["svg"])
    assert (ROOT / "docs" / name.removeprefix("docs/")).exists()


def test_rows_without_a_kind_in_another_file_are_drawn(plot: Run) -> None:
    overhead = str(RESULTS / "overhead-mpich.csv")
    done = succeeded(plot(TABLE, overhead, "--where", "benchmark=bw", "--format", "text"))
    assert "bw: Bandwidth" in done.out


@pytest.mark.slow
def test_benchmarks_and_rows_that_no_figure_shows_are_said(plot: Run) -> None:
    done = plot(
        TABLE, "--where", "benchmark=latency,barrier,bw", "--value", "p99", "--output", "figs/"
    )
    assert not missing("note: not drawn options: bw", done.err)
    native = str(ROOT / "tests" / "data" / "omb" / "osu_latency.txt")
    done = plot(
        native, TABLE, "--where", "benchmark=latency", "--value", "p99", "--output", "figs/"
    )
    assert re.search(r"note: 4 of \d+ rows .* p99 \(sample_p99_us\)", done.err)
    assert "not drawn" not in done.err


@pytest.mark.parametrize(
    ("where", "options", "code", "named"),
    [
        ("application=kmeans,halo", "", 0, "note: speedup of halo two numbers of ranks"),
        ("application=halo", "", 1, "speedup of halo two numbers of ranks"),
        ("application=halo", "--value sequential_speedup", 1, "of halo --no-references"),
    ],
)
def test_applications_without_a_speedup_are_named(
    plot: Run, tmp_path: Path, where: str, options: str, code: int, named: str
) -> None:
    lines = (RESULTS / "applications-mpich.csv").read_text().splitlines(keepends=True)
    kept = [one for one in lines if ",halo," not in one or one.split(",")[4] == "2"]  # ranks
    (tmp_path / "some.csv").write_text("".join(kept))
    done = plot("some.csv", "--kind", "speedup", "--where", where, *options.split())
    assert (done.code, missing(named, done.err)) == (code, [])
