"""The documents stay within a budget: who adds a page or a paragraph takes one away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.pages import DOCS, pages

PAGES = 40
WORDS = 48_000
"""As `wc -w` counts them; generated parts are not in the files."""

COUNTED = [*pages(), ROOT / "contrib" / "README.md", ROOT / "results" / "README.md"]


def test_documents_have_at_most_so_many_pages() -> None:
    assert len(pages()) <= PAGES


def test_documents_have_at_most_so_many_words() -> None:
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in COUNTED}
    assert sum(words.values()) <= WORDS


@pytest.mark.parametrize("page", sorted(DOCS.glob("howto/*.md")), ids=lambda page: page.stem)
def test_a_how_to_has_a_figure(page: Path) -> None:
    figures = re.findall(r"^!\[[^\]]+\]\((\S+)\)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert figures
    assert all((page.parent / figure).is_file() for figure in figures)
