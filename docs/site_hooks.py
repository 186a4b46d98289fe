"""What mkdocs does for the site beyond its settings in mkdocs.yml."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
LOG = logging.getLogger("mkdocs.plugins.omb-py")
"""Its warnings fail a strict build."""

CODE = re.compile(r"^(```+|~~~+).*?^\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?\)"
)


def on_config(config: Any) -> Any:
    """Name the version in the footer, and headings as code hosts name them."""
    from pymdownx.slugs import slugify

    source = (ROOT / "omb_py/core/__init__.py").read_text(encoding="utf-8")
    version = re.search(r'VERSION = "([^"]+)"', source)
    assert version, "omb_py/core/__init__.py defines VERSION"
    config.copyright = f"omb-py {version[1]}, BSD-3-Clause"
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Point links that leave docs/ to the repository.

    Without a repository, such links become text.
    """
    folder = (DOCS / page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / link["target"]))
        if target.is_relative_to(DOCS):
            return link[0]
        if not target.exists():
            LOG.warning("%s links to %s, which does not exist", page.file.src_uri, link["target"])
        if not config.repo_url:
            return link["text"]
        path = target.relative_to(ROOT).as_posix()
        address = f"{config.repo_url.rstrip('/')}/blob/HEAD/{path}{link['anchor'] or ''}"
        return f"[{link['text']}]({address})"

    parts, end = [], 0
    for code in CODE.finditer(markdown):
        parts += [LINK.sub(replaced, markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, LINK.sub(replaced, markdown[end:])])
