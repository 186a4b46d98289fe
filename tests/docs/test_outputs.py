"""The outputs that documents show are those of the commands beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.outputs import Content, Shown, documented, excerpt, masked, results, steps
from tests.docs.pages import FENCE, pages

PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in documented()]


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_a_command_prints_what_is_shown(mpi: str, page: Path, tmp_path: Path) -> None:
    for shown, new in results(page.read_text(encoding="utf-8"), tmp_path):
        assert masked(shown.lines) == masked(new.lines), shown.command.words


@pytest.mark.parametrize("page", PAGES)
def test_a_command_whose_output_is_shown_can_be_copied_from_the_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = [block["text"].replace("\\\n", " ") for block in FENCE.finditer(text)]
    lines = {" ".join(line.split()) for block in blocks for line in block.splitlines()}
    for step in steps(text):
        if isinstance(step, Shown):
            assert " ".join(step.command.words.split()) in lines


def test_every_comment_on_an_output_stands_before_a_block() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        comments = re.findall(r"^<!-- (?:output of|run:|file:)", text, re.MULTILINE)
        assert len(list(steps(text))) == len(comments), page


def test_a_page_is_read_in_its_order() -> None:
    text = """
<!-- file: solver.py -->
```python
import mpi4py
```

<!-- run: mpiexec -n 2 python solver.py -->

<!-- output of, exit code 4: omb-py compare a b -->

```text
slower
…
```
"""
    file, command, shown = steps(text)
    assert file == Content("solver.py", "import mpi4py\n")
    assert command.words == "mpiexec -n 2 python solver.py"  # type: ignore[union-attr]
    assert isinstance(shown, Shown)
    assert (shown.command.code, shown.lines) == (4, ("slower", "…"))
    assert text[shown.start : shown.end] == "slower\n…\n"


def test_only_numbers_may_differ() -> None:
    shown = ("8 B   902 ns    0.417   0.377 to 0.462   faster", "1 MiB  81.1 µs  - 1.0x  faster")
    assert masked(shown) == masked(("1 KiB 80 ms - 12.5x faster", "64 B 1 s 2 0.1 to 9 faster"))
    assert masked(shown) != masked((shown[0].replace("faster", "slower"), shown[1]))
    assert masked(("a 1.5 b",)) != masked(("a - b",))
    assert masked(("8   1.5   1.4  1.6",)) == masked(("8   1.5   -    -",))
    assert masked(("latency_8 ranks",)) != masked(("latency_9 ranks",))


def test_who_is_best_may_differ() -> None:
    shown = ("  8 B  default 4.46\u00d7", "256 KiB  recursive doubling, within noise")
    assert masked(shown) == masked(("1 KiB  ring 2\u00d7", "64 B  default 1.01\u00d7"))


def test_whether_the_machine_was_busy_may_differ() -> None:
    quiet = ("Note: runs differ by 4 %",)
    busy = (
        "Note: runs differ by 46 %: the machine was busy",
        "# the speed of the machine changed",
        "",
        "Note: ranks had no core for more than 10 % of the time: they shared cores",
    )
    assert masked(quiet) == masked(busy)


def test_a_block_keeps_as_many_lines_before_and_after_what_it_leaves_out() -> None:
    lines = tuple("abcdefg")
    assert excerpt(lines, ("1", "2", "…", "3")) == ("a", "b", "…", "g")
    assert excerpt(lines, ("1", "…")) == ("a", "…")
    assert excerpt(lines, ("1",)) == lines
