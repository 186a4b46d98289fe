"""Below MPI: what the library moved for a program, what links carried, which algorithms ran.

While a program runs, `collector.TrafficCollector` reads counters at its beginning and end, and
`probe.Probe` around some collective calls. Each rank writes them to a file in the folder of the
profile, which `omb_py.tracing.traffic` reads.
"""

VERSION = 1


def path_in(folder: str, rank: int) -> str:
    """The file of a rank in the folder of a run."""
    return f"{folder}/traffic-{rank:06d}.json"
