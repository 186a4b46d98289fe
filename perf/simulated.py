"""Simulations beside measurements on virtual hosts, whose links are known.

    python perf/simulated.py [FOLDER]

measures latency, bandwidth and own algorithms of collectives on 2 to 8 ranks of hosts that are
joined by limited links, writes a network file from the first, and compares simulations of the
others with what was measured: the table of docs/simulate.md. Takes about 4 minutes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conftest import BIN
from tests.hosts.jobs import job
from tests.hosts.network import Link
from tests.hosts.virtual_hosts import Hosts, virtual_hosts

HOSTS = 4
LINKS = {"fast": Link(delay=2e-3, rate=40e6), "slow": Link(delay=2e-3, rate=8e6)}
"""With a latency beside which it does not matter that the hosts share two cores."""

COLLECTIVES = {
    "allreduce": ("ring", "recursive_doubling", "rabenseifner"),
    "bcast": ("binomial", "scatter_ring"),
    "allgather": ("ring",),
    "alltoall": ("pairwise",),
    "gather": ("linear",),
    "barrier": ("dissemination",),
}
PAIRS = {
    "latency": ("-m", "1:256K", "-i", "20", "-x", "3"),
    "bw": ("-m", "1:64K", "-i", "8", "-x", "1", "-W", "16"),
    "bcast": ("-m", "1:256K", "-i", "10", "-x", "2", "--p2p-algorithm", "binomial"),
}
SIZES = "8,1K,16K,128K"
RANKS = (2, 4, 8)


def measure(hosts: Hosts, folder: Path) -> None:
    """Everything, into files of the folder."""
    for name, per_host in (("between", 1), ("within", 2)):
        for benchmark, arguments in PAIRS.items():
            run(hosts, 2, per_host, folder / f"{benchmark}-{name}.csv", benchmark, *arguments)
    for ranks in RANKS:
        for collective, algorithms in COLLECTIVES.items():
            for algorithm in algorithms:
                sizes = () if collective == "barrier" else ("--sizes", SIZES)
                run(
                    *(hosts, ranks, -(-ranks // HOSTS)),
                    folder / f"{collective}-{algorithm}-{ranks}.csv",
                    *(collective, "--p2p-algorithm", algorithm, *sizes, "-i", "10", "-x", "2"),
                )


def run(hosts: Hosts, ranks: int, per_host: int, output: Path, *arguments: str) -> None:
    """One benchmark."""
    words = (*arguments, "--output", str(output), "--force", "-q")
    done = job(hosts, ranks, per_host, *words, folder=output.parent)
    if done.code:
        raise SystemExit(done.err)
    print(output.name, flush=True)


def main() -> None:
    """Measure with each kind of link, and compare."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/simulated").resolve()
    for name, link in LINKS.items():
        part = folder / name
        part.mkdir(parents=True, exist_ok=True)
        with virtual_hosts(HOSTS, link) as hosts:
            measure(hosts, part)
        network = part / "network.toml"
        simple = sorted(part.glob("*-between.csv")) + sorted(part.glob("*-within.csv"))
        sums = part / "allreduce-recursive_doubling-2.csv"
        table = ("--network", str(network), "-o", str(part / "model.txt"))
        omb_py("model", *map(str, (*simple, sums)), *table)
        print(f"== {name}")
        omb_py("simulate", "--check", str(part), "--network", str(network))


def omb_py(*arguments: str) -> None:
    """A command of omb-py, whose output is ours."""
    subprocess.run([str(BIN / "omb-py"), *arguments], check=True)


if __name__ == "__main__":
    main()
