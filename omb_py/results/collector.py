"""Results in memory: for programs that measure, and for what is drawn at the end."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from omb_py.results.writer import Writer


class Collector(Writer[Any]):
    """Keeps rows, as a reader of files would give them, and metadata by run."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.runs: dict[str, dict[str, str]] = {}

    def start(self, metadata: dict[str, str]) -> None:
        self.runs[metadata["run"]] = metadata

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        self.runs.setdefault(run, {}).update(metadata)

    def row(self, row: Any) -> None:
        values = asdict(row)
        if "percentiles" in values:
            words = [f"p{percent:g}={value:.9g}" for percent, value in row.percentiles]
            values["percentiles"] = " ".join(words) or None
        self.rows.append(values)
