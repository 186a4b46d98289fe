"""Outputs that documents show, and the commands that print them.

A page says in comments before its fenced blocks where they come from:

``<!-- output of: COMMAND -->``
    the block shows what COMMAND printed on standard output; a line ``…`` stands for lines left out
``<!-- output of, exit code 4: COMMAND -->``
    the same of a command that ends with this exit code
``<!-- run: COMMAND -->``
    COMMAND runs without a block
``<!-- file: NAME -->``
    the block is the content of a file

A page's commands run in its order, in one folder of their own that holds nothing but the
repository's ``results``. ``python -m tests.docs.outputs [PAGE…]`` writes the blocks anew.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests import ROOT
from tests.conftest import BIN, run
from tests.docs.pages import DOCS

MARK = re.compile(
    r"^<!-- run: (?P<run>[^\n]+?) -->$"
    r"|^<!-- (?:output of(?:, exit code (?P<code>\d+))?: (?P<command>[^\n]+?)|file: (?P<file>\S+))"
    r" -->\n\n?(?P<fence>```+)[^\n]*\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
LEFT_OUT = "…"
HOST = "node1"
"""What documents call the host on which the commands ran."""

NUMBER = re.compile(
    r"(?<![\w.])[-+]?\d[\d,.:]*(?:e[-+]?\d+)?(?=$|[\s%x\u00d7)\],;/-]|[kKMGT]?i?B\b|[µunm]?s\b)"
)
UNIT = re.compile(r"N ?(?:[kKMGT]?i?B(?:/s)?|[µunm]?s)\b")
WHEN_BUSY = ("the speed of the machine changed", "ranks had no core for more than")
BUSY = re.compile(": the machine was busy.*")
"""What is said only if other programs were running: lines, and the end of one."""
STATISTIC = re.compile(r"\b(medians|means)$")
"""Of a table: means where the median of one row has no interval, as that of dependent samples."""

NO_INTERVAL = re.compile(r" -( +)-(?= |$)")
"""The ends of an interval for which there were too few samples, by how much they depend."""
BEST = re.compile(r"(?<= {2})[\w-]+(?: [\w-]+)*(?: N\u00d7|, within noise)$")
"""The last cell of a table that says which is best: who that is has been measured, too."""


@dataclass(frozen=True)
class Command:
    """A command of a page, with the exit code that it should have."""

    words: str
    code: int = 0


@dataclass(frozen=True)
class Shown:
    """A block of a page: the lines that it shows, and the characters of the page that they are."""

    command: Command
    lines: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Content:
    """A block of a page that is the content of a file."""

    name: str
    text: str


def steps(text: str) -> Iterator[Command | Shown | Content]:
    """What a page has to run and to show, in its order."""
    for mark in MARK.finditer(text):
        if mark["run"]:
            yield Command(mark["run"])
        elif mark["file"]:
            yield Content(mark["file"], mark["text"])
        else:
            command = Command(mark["command"], int(mark["code"] or 0))
            lines = tuple(mark["text"].splitlines())
            yield Shown(command, lines, mark.start("text"), mark.end("text"))


def results(text: str, folder: Path, programs: Path = BIN) -> Iterator[tuple[Shown, Shown]]:
    """Each block of a page as it is, and as it should be after its commands have run."""
    (folder / "results").symlink_to(ROOT / "results")
    for step in steps(text):
        if isinstance(step, Content):
            (folder / step.name).write_text(step.text, encoding="utf-8")
        elif isinstance(step, Command):
            printed(step, folder, programs)
        else:
            yield (
                step,
                replace(step, lines=excerpt(printed(step.command, folder, programs), step.lines)),
            )


def printed(command: Command, folder: Path, programs: Path) -> tuple[str, ...]:
    """The lines that a command prints, without empty ones around them; asserts its exit code."""
    environment: Mapping[str, str] = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "110",
    }
    shell = ["bash", "-c", command.words]
    done = run(shell, dict(environment), folder, timeout=120)
    assert done.code == command.code, f"{command.words}: exit code {done.code}\n{done.err}"
    text = done.out.replace(socket.gethostname(), HOST).replace(f"{folder}/", "")
    text = text.replace(str(ROOT), ".")
    return tuple(line.rstrip() for line in text.strip("\n").splitlines())


def excerpt(lines: tuple[str, ...], shown: tuple[str, ...]) -> tuple[str, ...]:
    """As many lines of an output as a block shows before and after what it leaves out."""
    if LEFT_OUT not in shown:
        return lines
    first = shown.index(LEFT_OUT)
    last = len(shown) - first - 1
    return (*lines[:first], LEFT_OUT, *(lines[-last:] if last else ()))


def masked(lines: tuple[str, ...]) -> list[str]:
    """Lines without what differs from run to run: numbers, units, widths, and their order.

    Empty lines go, as one stands before notes and there may be none.
    """
    kept = (line for line in lines if line and not any(words in line for words in WHEN_BUSY))
    return sorted(map(mask, kept))


def mask(line: str) -> str:
    """A line without what differs from run to run."""
    line = STATISTIC.sub("statistic", line)
    line = UNIT.sub("N", NUMBER.sub("N", NO_INTERVAL.sub(r" N\1N", BUSY.sub("", line))))
    return " ".join(BEST.sub("N", re.sub("─+", "─", line)).split())


def documented() -> list[Path]:
    """The pages that show outputs of commands."""
    found = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]
    return [page for page in found if any(steps(page.read_text("utf-8")))]


def rewrite(page: Path) -> None:
    """Run the commands of a page, and show what they print."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for _, new in reversed(list(results(text, Path(folder)))):
            block = "".join(f"{line}\n" for line in new.lines)
            text = text[: new.start] + block + text[new.end :]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for chosen in map(Path, sys.argv[1:]) if sys.argv[1:] else documented():
        print(chosen.resolve().relative_to(ROOT))
        rewrite(chosen)
