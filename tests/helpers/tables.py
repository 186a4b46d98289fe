"""Tables as a pipe gets them."""

from __future__ import annotations

import io

import pandas as pd

from omb_py.analysis.compare.summary import endings, sheets
from omb_py.core.text.tables import on_console


def comparison_text(points: pd.DataFrame, base: str) -> str:
    """A comparison as text."""
    out = io.StringIO()
    on_console(list(sheets(points, base)), endings(points, base), out)
    return out.getvalue()
