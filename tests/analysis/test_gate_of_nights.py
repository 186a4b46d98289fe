"""Results of gates beside those of other jobs: a node keeps its series, whatever ranks it had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("otava", reason="the extra history is not installed")

from omb_py.analysis.gate import expected, verdicts
from omb_py.analysis.history import history
from omb_py.analysis.references_learned import from_runs
from omb_py.analysis.table import Results, of_rows

NODES = ("n1", "n2", "n3", "n4")


def gates(nights: int, nodes: tuple[str, ...] = NODES, slow: str = "n3") -> Results:
    """Gates whose nodes get other ranks each night; one node is slower from the eighth on."""
    runs: dict[str, dict[str, str]] = {}
    rows: list[dict[str, Any]] = []
    for night in range(nights):
        run = f"202611{night + 1:02d}T020000Z-{night:06x}"
        order = nodes[night % len(nodes) :] + nodes[: night % len(nodes)]
        hosts = " ".join(f"{node}:1" for node in order)
        runs[run] = {"turn": "complete", "ranks": str(len(order)), "hosts": hosts}
        for rank, node in enumerate(order):
            time = 100 + (night * 7 + rank) % 5 / 10
            row = {"run": run, "benchmark": "pack", "bytes": 1024, "ranks": 1, "split": "node"}
            row |= {"group": str(rank), "buffer": "numpy", "binding": "buffer"}
            rows.append(row | {"latency_us": time * (2 if node == slow and night >= 7 else 1)})
    return of_rows(rows, runs)


def test_history_names_the_node_that_became_slow() -> None:
    found = history(gates(14))
    assert {one.point["host"] for one in found.series} == {*NODES}
    assert found.rows[["kind", "host"]].to_numpy().tolist() == [["change", "n3"]]


def test_references_are_of_any_rank() -> None:
    assert "group" not in from_runs(gates(6).comparable, "site")


@pytest.mark.parametrize(
    ("value", "verdict", "code"), [(100.0, "ok", 0), (10.0, "SLOW", 4), (None, "not judged", 7)]
)
def test_single_node_is_judged_by_expected_values(
    tmp_path: Path, value: float | None, verdict: str, code: int
) -> None:
    path = tmp_path / "site.json"
    whole = {"allreduce bytes=8 hosts=512": [9.0, None, 0.1, "us"]}
    own = {} if value is None else {"pack bytes=1024 split=node": [value, None, 0.1, "us"]}
    path.write_text(json.dumps({"site": own | whole}))
    results = gates(1, ("n1",))
    judged = expected.compared(verdicts.gate(results), results, str(path))
    assert judged.verdict("n1") == verdict
    assert judged.conclusion.exit_code == code
    assert judged.drained == (("n1",) if code == 4 else ())
