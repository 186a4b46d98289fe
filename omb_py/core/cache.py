"""Where omb-py keeps what it has compiled between runs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_directory() -> Path:
    """``OMB_PY_CACHE_DIR``, or the user's folder for caches."""
    named = os.environ.get("OMB_PY_CACHE_DIR")
    if named:
        return Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "omb-py"
    except RuntimeError:  # no home
        return Path(tempfile.gettempdir()) / f"omb-py-{os.getuid()}"
