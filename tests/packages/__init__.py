"""What `contrib/` and a build make of the project, compared with pyproject.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from tests import ROOT


@cache
def project() -> dict[str, Any]:
    """Table [project] of pyproject.toml."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(tables["project"])
