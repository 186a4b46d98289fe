"""Parts of pages that follow from the code: each page has them as they are now."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generate import MADE, MARKED, up_to_date
from tests.docs.pages import DOCS

PAGES = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))}


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if "<!-- gen" in text])
def test_generated_parts_are_as_the_code_has_them_now(page: Path) -> None:
    assert PAGES[page] == up_to_date(PAGES[page]), "run make docs"


def test_every_part_stands_on_a_page() -> None:
    parts = [part["part"] for text in PAGES.values() for part in MARKED.finditer(text)]
    assert sorted(parts) == sorted(MADE)


def test_another_text_between_the_marks_is_replaced() -> None:
    begin, end = "<!-- generated: algorithms -->", "<!-- end of generated -->"
    page = f"Names\n\n{begin}\n\nold\n\n{end}\n\nMore."
    assert up_to_date(page) == f"Names\n\n{begin}\n\n{MADE['algorithms']()}\n\n{end}\n\nMore."
