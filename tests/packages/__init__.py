"""What `contrib/` and a build make of the project, compared with pyproject.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from packaging.requirements import Requirement

from tests import ROOT


@cache
def project() -> dict[str, Any]:
    """Table [project] of pyproject.toml, each extra with what it takes from others."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = dict(tables["project"])
    extras = found["optional-dependencies"]
    for name, texts in extras.items():  # others stand above
        own = [text for text in texts if Requirement(text).name != found["name"]]
        taken = {extra for text in set(texts) - set(own) for extra in Requirement(text).extras}
        extras[name] = [*own, *(text for extra in taken for text in extras[extra])]
    return found
