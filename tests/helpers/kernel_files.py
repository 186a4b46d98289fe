"""Folders as the kernel shows them, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(root: Path, files: Mapping[str, object]) -> Path:
    """Write files below ``root``, each with what it holds."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    return root


def interface(name: str, sent: int, received: int) -> dict[str, object]:
    """The files of a network interface."""
    folder = f"sys/class/net/{name}"
    return {
        f"{folder}/statistics/tx_bytes": sent,
        f"{folder}/statistics/rx_bytes": received,
        f"{folder}/statistics/tx_packets": sent // 1000,
        f"{folder}/statistics/rx_packets": received // 1000,
    }


def port(place: str, **counters: int) -> dict[str, object]:
    """The files of a port of an adapter."""
    return {f"sys/class/infiniband/{place}/{name}": value for name, value in counters.items()}
