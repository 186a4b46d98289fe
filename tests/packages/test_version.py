"""The version: `omb_py.core.VERSION` has it, and files that cannot read it there agree."""

from __future__ import annotations

import re

import pytest

from omb_py.core import VERSION
from tests import ROOT


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("CITATION.cff", r"^version: (\S+)$"),
        ("CHANGELOG.md", r"^## \[([^\]]+)\]"),
        ("contrib/conda-forge/recipe.yaml", r'^  version: "(.*)"$'),
        ("contrib/apptainer/omb-py.def", r"omb_python-([^-]+)-py3"),
        ("contrib/ramble/ramble.yaml", r"omb_python-([^-]+)-py3"),
        ("docs/using.md", r"omb_python-([^-]+)-py3"),
    ],
)
def test_file_names_the_version(name: str, pattern: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert re.findall(pattern, text, re.MULTILINE)[0] == VERSION
