"""Ranks of torchrun do what a gate does, without the packages that judge: texts and turns."""

from __future__ import annotations

import time
from typing import Any

from omb_py.core.dataclass import replace
from omb_py.core.options import Options
from omb_py.measure import gate, gate_turns
from omb_py.measure.launch import launch

SMALL = 8


class NotKept:
    """Results that nobody keeps."""

    def begin(self, turn: int, split: str) -> None:
        """Forget the turn."""

    def keep(self, rows: Any) -> None:
        """Forget rows."""


def main() -> None:
    """Print what was measured, and what binding torch lacks."""
    options = replace(Options(), binding="torch")
    with launch("gate", options) as launched:
        job = launched.job
        nodes = gate_turns.nodes_of(job)
        if job.rank:
            gate.Team(launched, options, 30).follow()
            return
        team = gate.Gate(launched, options, 30, nodes, time.monotonic() + 10)
        all_of_it = team.lead((SMALL,), 1, lambda _: gate.Suspects(), NotKept())  # type: ignore[arg-type]
        for one in all_of_it.measured:
            print(one.row["benchmark"], one.row["bytes"], one.row["latency_us"] > 0)
        print("lacking", *all_of_it.lacking, "failed", *all_of_it.failed)
        team.end(0, None)


if __name__ == "__main__":
    main()
