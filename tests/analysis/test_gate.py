"""A gate's verdicts from the rows in its file."""

from __future__ import annotations

from omb_py.analysis.gate.verdicts import gate
from omb_py.analysis.table import of_rows
from omb_py.core.job.groups import ranks_text
from omb_py.measure.gate_turns import halves

HOSTS = [f"node{number:02}" for number in range(12)]
RUN = {"run": {"omb_py": "1", "hosts": " ".join(f"{host}:1" for host in HOSTS), "ranks": "12"}}


def test_two_hosts_were_measured_and_cannot_be_judged() -> None:
    rows = [
        {"run": "run", "benchmark": "pack", "bytes": 8, "ranks": 1, "split": "node"}
        | {"group": str(number), "latency_us": 1.0}
        for number in range(2)
    ]
    found = gate(of_rows(rows, RUN), hosts=["node00", "node99"]).conclusion
    assert (found.undecided, found.missing) == (("node00", "node01"), ("node99",))
    assert found.exit_code == 7


def test_halves_of_different_sizes_in_a_file_are_one_point() -> None:
    rows = [
        {"run": "run", "benchmark": "allreduce", "bytes": 8, "ranks": len(half), "split": "halves"}
        | {"group": ranks_text(half), "latency_us": (3.0 if 6 in half else 1.0) + turn / 1000}
        for turn, split in enumerate(halves(range(12)))
        for half in split
    ]
    found = gate(of_rows(rows, RUN))
    assert [one.point.name for one in found.judgement.costs] == ["allreduce 8 B in halves"]
    assert found.drained == ("node06",)
