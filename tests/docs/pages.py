"""The documents of the project, their fenced blocks, and the command lines in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests import ROOT

DOCS = ROOT / "docs"
FENCE = re.compile(
    r"^(?P<fence>```+)(?P<language>\S*)[^\n]*\n(?P<text>.*?)^(?P=fence)$", re.M | re.S
)
ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=\S*")
COMMENT = re.compile(r"\s+#.*|(?<=\S)\s{2,}[^-\s].*")
"""What explains a command: a comment, or a column of its own."""
PLACEHOLDER = re.compile(r"…|\.\.\.|\[|<|\$\(|\$?\b[A-Z]+\b…")
"""What stands for words that are not there: such a line is no command."""
LAUNCHERS = ("mpiexec", "mpirun", "srun", "torchrun")
ENDS = ("|", "&&", "||", ";", "&", ">", ">>", ">&", "2>", "<", "done")


def pages() -> list[Path]:
    """Every Markdown file that a user reads."""
    return [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def command_lines(text: str) -> Iterator[list[str]]:
    """The words after ``omb-py`` of each such command line in the fenced blocks of a page."""
    for block in FENCE.finditer(text):
        if block["language"] in ("python", "toml", "text"):
            continue
        for line in re.sub(r"\\\n\s*", " ", block["text"]).splitlines():
            words = words_of(line)
            for place, word in enumerate(words):
                before = words[:place]
                is_program = word.rpartition("/")[2] == "omb-py"
                is_module = word == "omb_py" and before[-1:] == ["-m"]
                if is_module or (is_program and (starts(before) or "profile" in before)):
                    yield to_end(words[place + 1 :])


def words_of(line: str) -> list[str]:
    """The words of a line, as a shell splits them; none where it is not one for a shell."""
    line = COMMENT.sub("", line.removeprefix("$ ").rstrip())
    if PLACEHOLDER.search(line):
        return []
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return []


def starts(before: list[str]) -> bool:
    """Whether a command can stand after these words of its line."""
    while before and (before[0] in ("do", "export") or ASSIGNMENT.fullmatch(before[0])):
        before = before[1:]
    last = next((place for place, word in enumerate(reversed(before)) if word in ENDS), None)
    if last is not None:
        return starts(before[len(before) - last :])
    return not before or before[0].rpartition("/")[2] in LAUNCHERS


def to_end(words: list[str]) -> list[str]:
    """The words up to the end of a command."""
    end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
    return words[:end]
