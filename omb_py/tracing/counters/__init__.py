"""Below MPI: traffic of links during a program, of TCP connections of its ranks, and of storage.

`collector.TrafficCollector` reads counters when a program begins and ends. Each rank writes them to
a file in the folder of the profile, which `omb_py.tracing.traffic` reads.
"""

VERSION = 2


def path_in(folder: str, rank: int) -> str:
    """Return the file of a rank in the folder of a run."""
    return f"{folder}/traffic-{rank:06d}.json"
