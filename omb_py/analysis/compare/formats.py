"""A comparison for other programs: CSV, JSON, annotations on GitHub, JUnit's XML."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pandas as pd

from omb_py.analysis.compare.verdict import (
    ALONE,
    MISSING,
    at,
    failures,
    point_text,
    remarks,
    sentences,
    summary,
    titles,
    undecided,
    undecided_text,
)


def csv(points: pd.DataFrame, base: str, allowed: float | None) -> str:
    """All columns of a comparison (see `compare`), one line per point and other."""
    return str(points.to_csv(index=False))


def json_document(points: pd.DataFrame, base: str, allowed: float | None) -> str:
    """An object: ``base``; ``verdicts``, a sentence for each other; ``summary`` of each pair;
    ``points`` with the columns of `compare`; ``failures``, ``undecided`` and ``remarks``,
    sentences.
    """
    document = {
        "base": base,
        "verdicts": sentences(points),
        "summary": records(summary(points)),
        "points": records(points),
        "failures": [] if allowed is None else [item.text for item in failures(points, allowed)],
        "undecided": [] if allowed is None else [item.text for item in undecided(points, allowed)],
        "remarks": remarks(points),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def records(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Rows of a table as JSON has them; null where a value is missing."""
    text = frame.to_json(orient="records", double_precision=15)
    return list(json.loads(text))


def github(points: pd.DataFrame, base: str, allowed: float | None) -> str:
    """Workflow commands that GitHub Actions shows as annotations.

    A notice with the verdict on each other, an error for each reason to fail, a warning where that
    cannot be told; without a limit a warning for each point that is slower.
    """
    found = [("notice", text) for text in sentences(points).values()]
    if allowed is None:
        named = titles(points)
        slower = points[points["verdict"] == "slower"]
        found += [("warning", point_text(row, named[row.pair])) for row in slower.itertuples()]
    else:
        found += [("error", item.text) for item in failures(points, allowed)]
        cannot_tell = undecided_text(points, allowed)
        found += [("warning", f"cannot tell: {cannot_tell}")] if cannot_tell is not None else []
    return "".join(f"::{kind} title=omb-py compare::{escaped(text)}\n" for kind, text in found)


def escaped(text: str) -> str:
    """The text of a workflow command, which ends with its line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def junit(points: pd.DataFrame, base: str, allowed: float | None) -> str:
    """A test suite for each other, a test case for each point and for each pair on average.

    Without a limit every point that is slower fails. Points without a verdict are skipped, and with
    a limit those that may be above it; of a pair with such points, so is the average.
    """
    named = titles(points)
    failed = {
        (item.pair, item.bytes): item.text
        for item in failures(points, 1.0 if allowed is None else allowed)
        if allowed is not None or item.bytes != "missing"
    }
    found = [] if allowed is None else undecided(points, allowed)
    open_points = {(item.pair, item.bytes): item.text for item in found}
    open_pairs = {item.pair for item in found}
    root = ElementTree.Element("testsuites", name="omb-py compare")
    for other, members in points.groupby("other", sort=False):
        suite = ElementTree.SubElement(root, "testsuite", name=f"{other} against {base}")
        for pair, rows in members.groupby("pair", sort=False):
            open_text = "of points that may be slower" if pair in open_pairs else ""
            case(suite, named[pair], "average", failed.get((pair, "average")), open_text)
            for row in rows.itertuples():
                key = (pair, None if pd.isna(row.bytes) else int(row.bytes))
                skipped = row.verdict if row.verdict in (*ALONE, "unclear") else ""
                skipped = open_points.get(key, skipped)
                name = at(row.bytes).removeprefix(", ") or "value"
                missing = failed.get((pair, "missing")) if row.verdict in MISSING else None
                case(suite, named[pair], name, failed.get(key, missing), skipped)
        cases = list(suite)
        suite.set("tests", str(len(cases)))
        suite.set("failures", str(sum(item.find("failure") is not None for item in cases)))
        suite.set("skipped", str(sum(item.find("skipped") is not None for item in cases)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def case(
    suite: ElementTree.Element, title: str, name: str, failure: str | None, skipped: str
) -> None:
    """Add a test case: failed for a reason, skipped for one, or passed."""
    item = ElementTree.SubElement(suite, "testcase", classname=title, name=name)
    if failure is not None:
        ElementTree.SubElement(item, "failure", message=failure)
    elif skipped:
        ElementTree.SubElement(item, "skipped", message=skipped)
