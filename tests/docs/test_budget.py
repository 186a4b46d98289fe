"""The documents stay within a budget: who adds a page or a paragraph takes one away."""

from __future__ import annotations

from tests import ROOT
from tests.docs.pages import pages

PAGES = 40
WORDS = 54_000
"""As `wc -w` counts them; generated parts are not in the files."""

COUNTED = [*pages(), ROOT / "contrib" / "README.md", ROOT / "results" / "README.md"]


def test_documents_have_at_most_so_many_pages() -> None:
    assert len(pages()) <= PAGES


def test_documents_have_at_most_so_many_words() -> None:
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in COUNTED}
    assert sum(words.values()) <= WORDS
