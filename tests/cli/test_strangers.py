"""Files of strangers: what they hold is printed, drawn and written, and never obeyed or run."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.table import load
from omb_py.core.text.words import Screen, csv_cell, from_csv_cell, printable
from omb_py.results.csv_json import cell
from tests.conftest import Run

OBEYED = "\x1b]0;title\x07\x1b[31m\x9b2J\x7f"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
TABLE = (
    f"# run: r\n# mpi_library: MPICH Version: 5.0.2{OBEYED}\n# hosts: a{OBEYED}:2\n"
    "run,benchmark,bytes,ranks,buffer,binding,placement,variant,latency_us\n"
    + "".join(f"r,lat{OBEYED}ency,{size},2,numpy,buffer,H,v{OBEYED},1.5\n" for size in (8, 16))
)


@pytest.fixture
def strange(tmp_path: Path) -> str:
    path = tmp_path / f"a{OBEYED}.csv"
    path.write_text(TABLE)
    return path.name


@pytest.mark.parametrize(
    "words",
    [
        "show FILE",
        "show FILE --format csv",
        "show FILE --format json",
        "show FILE --format markdown",
        "show FILE --where bytes=9",
        "compare FILE FILE --format csv",
        "compare FILE . --format json",
        "model FILE",
        "plot FILE --format text",
        "plot FILE --format png --format svg -o figures/",
        "report FILE -o report.html",
        "show FILE/none",
    ],
)
def test_no_control_character_is_printed_or_written(
    words: str, strange: str, in_process: Run, tmp_path: Path
) -> None:
    done = in_process(*(word.replace("FILE", strange) for word in words.split()))
    assert done.code == (2 if "where" in words else "none" in words)
    made = [path.read_text() for path in tmp_path.rglob("*") if path.suffix in (".svg", ".html")]
    assert not CONTROL.search("".join([done.out, done.err, *made]))


BLANKS = " " * 100_000


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("sweep ./FILE --dry-run", f'title = """\n{BLANKS}\nx{BLANKS}y\n"""\nnone = 1'),
        ("sweep ./FILE --dry-run", f"[none{BLANKS}] # x"),
        ("latency -D indx:FILE", f"1{BLANKS}2"),
        ("alltoallv --matrix FILE", "x" * 10_000_000),
        ("watch FILE", "x" * 10_000_000),
    ],
    ids=["toml", "toml header", "indx", "matrix", "watch"],
)
def test_long_line_is_refused_at_once_in_a_short_sentence(
    words: str, content: str, in_process: Run, tmp_path: Path
) -> None:
    (tmp_path / "FILE").write_text(content)
    began = time.process_time()
    done = in_process(*words.split())
    assert time.process_time() - began < 5
    assert done.code == 2
    assert len(done.err) < 5000


@pytest.mark.parametrize("text", ["=1+1", "@cmd", "+1", "-1", "a#b", "a\tb\nc", "50%2D", OBEYED])
def test_label_comes_back_from_a_csv_file_that_runs_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        f'run,benchmark,bytes,ranks,latency_us,variant\nr,bcast,8,2,1.5,"{cell(text)}"\n'
    )
    assert not re.search(r'"[=+@-]|#', path.read_text())
    assert list(load(path).rows["variant"]) == [text]


@given(st.text())
def test_cell_of_any_text_is_undone(text: str) -> None:
    assert from_csv_cell(csv_cell(text)) == text


def test_table_for_programs_has_no_formula(tmp_path: Path) -> None:
    from omb_py.core.text.tables import content_of

    rows = pd.DataFrame({"=name": ["=1+1", None], "ratio": [-0.5, 2.0]})
    assert content_of(rows, "csv", {}) == "%3Dname,ratio\n%3D1+1,-0.5\n,2.0\n"


def test_what_omb_py_itself_wants_obeyed_goes_behind_the_screen(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+") as out:
        screen = Screen(out)
        print("a\x1b[1mb\tc\u202e", file=screen)
        print("\x1b[1m", file=screen.stream, flush=True)
        out.seek(0)
        assert out.read() == "a\\u001b[1mb\tc\\u202e\n\x1b[1m\n"
    assert printable("two\nlines\t§ ≥ 1") == "two\nlines\t§ ≥ 1"
