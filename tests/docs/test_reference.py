"""What the documentation says to do works as it says."""

from __future__ import annotations

from tests import ROOT

DOCS = ROOT / "docs"


def test_every_binding_is_documented() -> None:
    from omb_py.bindings import BINDINGS

    pages = ("overhead.md", "gpu.md", "beyond-mpi.md")
    text = "".join((DOCS / page).read_text() for page in pages)
    assert all(f"`{name}`" in text for name in BINDINGS.builtin())
