"""Plain lines: UTF-8, ended by newlines, without what launchers and loggers put before each.

A label is recognised before a comment (``0: # Size``). All lines then lose labels of the same
shape: the same characters with other numbers, other names of days and months.
"""

from __future__ import annotations

import codecs
import re

LONGEST_LABEL = 160
MAX_SHAPES = 16
"""Maximum of a label's characters, and of the kinds of labels in a file: with more, none is a
label."""

STAMP = (
    r"(?:[A-Z][a-z]{2},? )?(?:\d{4}[-/]\d\d[-/]\d\d[T ]|[A-Z][a-z]{2} +\d{1,2} )?\d\d:\d\d:\d\d"
    r"(?:[.,]\d{1,9})?(?: ?Z| UTC|[+-]\d\d:?\d\d)?(?: \d{4})?(?: std(?:out|err) [FP])?"
)
PART = "|".join(
    (
        r"\[[^\]\n]{1,100}\]",  # Open MPI's tags, Hydra's ranks, kubectl's pods
        r"<std\w+>",
        STAMP + r"(?: [\w.-]+(?= [\w./-]+(?:\[\d+\])?:))?",  # syslog's host behind its time
        r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR)(?!\w)",
        r"[\w./@-]*\w(?:\[\d+\])?(?= *[:|]| +- )",  # a rank, a host, a container, a logger
    )
)
LABEL = re.compile(rf"[ \t]*(?:(?:{PART}) *[:|-]? *){{1,6}}", re.ASCII)
TOKEN = re.compile(r"(?P<digits>\d+)|(?P<name>(?<![A-Za-z])[A-Z][a-z]{2}(?![a-z]))|(?P<blank> +)")


def plain(content: bytes) -> bytes:
    """Return a file's content as plain lines, whichever way it was encoded and its lines end."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = content.decode("utf-16", errors="replace").encode()
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return without_labels(content)


def without_labels(content: bytes) -> bytes:
    """Return the content with the labels of its lines taken off; indents stay as they were."""
    shapes: dict[str, int] = {}
    seen: set[bytes] = set()
    place = content.find(b"#")
    while place >= 0 and len(shapes) < MAX_SHAPES:
        first = max(0, place - LONGEST_LABEL)
        start = content.rfind(b"\n", first, place) + 1 or first
        before = content[start:place]
        if before not in seen:
            seen.add(before)
            label = before.decode("latin-1")
            if label.strip() and LABEL.fullmatch(label):
                blanks = len(label) - len(label.rstrip())
                shape = shape_of(label.strip())
                shapes[shape] = min(blanks, shapes.get(shape, blanks))
        end = content.find(b"\n", place)
        place = content.find(b"#", end) if end >= 0 else -1
    if not shapes:
        return content
    longest = sorted(shapes, key=len, reverse=True)
    forms = "|".join(rf"{shape} {{0,{shapes[shape]}}}" for shape in longest)
    line = re.compile(rf"^(?P<label>[ \t]*(?:{forms}))(?P<text>.*)".encode(), re.MULTILINE)
    return line.sub(bare, content)


def shape_of(label: str) -> str:
    """Return a pattern of labels that differ in numbers, days and months.

    >>> shape_of("[Thu Nov 26 2026]<stdout>:")
    '\\\\[[A-Z][a-z]{2} +[A-Z][a-z]{2} +\\\\d+ +\\\\d+\\\\]<stdout>:'
    """
    patterns = {"digits": r"\d+", "name": "[A-Z][a-z]{2}", "blank": " +"}
    found, place = "", 0
    for token in TOKEN.finditer(label):
        found += re.escape(label[place : token.start()]) + patterns[str(token.lastgroup)]
        place = token.end()
    return found + re.escape(label[place:])


def bare(line: re.Match[bytes]) -> bytes:
    """Return a line without its label.

    Hydra also labels what a process writes without ending a line: within lines.
    """
    label = line["label"].strip()
    return line["text"].replace(label + b" ", b"") if label[:1] == b"[" else line["text"]
