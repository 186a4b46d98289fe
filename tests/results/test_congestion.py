"""The text of a victim and its congestors."""

from __future__ import annotations

import io

from omb_py.benchmarks import find_benchmark
from omb_py.core.datatypes import find_types
from omb_py.core.options import Options
from omb_py.results.row import Row
from omb_py.results.text import CongestionWriter


def row(congestor: str, **values: object) -> Row:
    return Row(bytes=8, congestor=congestor, **values)


def test_a_line_has_both_times_and_the_factors_of_median_and_tail() -> None:
    stream = io.StringIO()
    options = Options(split="mod:2", congestor=("alltoall", 1024))
    groups = ["# Victim: ranks 0-2:2; congestor alltoall:1024: ranks 1-3:2"]
    writer = CongestionWriter(stream, find_benchmark("allreduce"), options, groups)
    writer.start({"ranks": "4"})
    writer.section(find_types(["mpi_int"])[0])
    alone = row("none", sample_p50_us=2.0, sample_p99_us=4.0, congestor_iterations=0)
    factors = {"impact": 1.5, "impact_low": 1.4, "impact_high": 1.6, "impact_p99": 2.5}
    congested = row(
        "alltoall:1024", sample_p50_us=3.0, sample_p99_us=10.0, **factors, congestor_iterations=70
    )
    writer.together([alone, congested])
    lines = stream.getvalue().splitlines()
    assert lines[1] == "# Victim: ranks 0-2:2; congestor alltoall:1024: ranks 1-3:2"
    assert lines[-2].split() == "8 none 2.00 - - - 4.00 - - - 0".split()
    assert lines[-1].split() == ("8 alltoall:1024 3.00 1.50 1.40 1.60 10.00 2.50 - - 70".split())
    assert lines[-3].index("Impact") + len("Impact") == lines[-1].index(" 1.50") + len(" 1.50")
