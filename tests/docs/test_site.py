"""Links that leave docs/: on a code host they are relative, the site has to do without."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest

from tests.docs.pages import DOCS

REPOSITORY = "https://example.org/omb-py/"


@pytest.fixture(scope="module")
def hooks() -> Any:
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rendered(hooks: Any, text: str, repository: str = "", page: str = "page.md") -> str:
    """The Markdown of a page as the site takes it."""
    file, config = SimpleNamespace(src_uri=page), SimpleNamespace(repo_url=repository)
    found: str = hooks.on_page_markdown(
        text, page=SimpleNamespace(file=file), config=config, files=()
    )
    return found


def test_a_link_out_of_docs_goes_to_the_repository(hooks: Any) -> None:
    text = "See [`jobs/`](../jobs/README.md#top) and [more](../results/imb.txt)."
    assert rendered(hooks, text, REPOSITORY) == (
        "See [`jobs/`](https://example.org/omb-py/blob/HEAD/jobs/README.md#top)"
        " and [more](https://example.org/omb-py/blob/HEAD/results/imb.txt)."
    )


def test_without_a_repository_it_is_text(hooks: Any) -> None:
    assert rendered(hooks, "See [`jobs/`](../jobs/README.md).") == "See `jobs/`."


@pytest.mark.parametrize(
    "text", ["[a](b.md#c)", "![a](../docs/figures/bw.svg)", "```\n[a](../jobs/README.md)\n```"]
)
def test_other_links_and_code_stay(hooks: Any, text: str) -> None:
    assert rendered(hooks, text) == text


def test_links_between_folders_of_docs_stay(hooks: Any) -> None:
    text = "[a](../compare.md) [b](../../README.md)"
    assert rendered(hooks, text, page="howto/page.md") == "[a](../compare.md) b"


def test_broken_link_fails_a_strict_build(hooks: Any, caplog: pytest.LogCaptureFixture) -> None:
    rendered(hooks, "[a](../jobs/none.md)", REPOSITORY)
    assert "page.md links to ../jobs/none.md, which does not exist" in caplog.text
