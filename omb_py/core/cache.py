"""The folder in which omb-py keeps compiled code between runs."""

from __future__ import annotations

import os


def cache_directory() -> str:
    """Return ``OMB_PY_CACHE_DIR``, or the user's folder for caches."""
    named = os.environ.get("OMB_PY_CACHE_DIR")
    if named:
        return named
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if caches.startswith("~"):  # no home
        import tempfile

        return os.path.join(tempfile.gettempdir(), f"omb-py-{os.getuid()}")
    return os.path.join(caches, "omb-py")
