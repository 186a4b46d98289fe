"""What a start costs where files are slow, from the installation and from a bundle.

Usage: python -m perf.start_at_scale [--rounds 3] [--ranks 1,16,64] [--help]

A library (slow_opens.c) makes each open of a file of the installation, or of the bundle's folder,
take longer: by itself (--delay), or by the time that one server of all ranks needs for it (--rate).
Prints Markdown: the seconds that the slowest rank needed until MPI was ready, medians of rounds in
which everything takes turns, and what a model says of more ranks than there are here.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from omb_py.core.text.tables import markdown_rows
from omb_py.sweeps import bundle
from perf.families import THROTTLE
from perf.jobs import BIN, ENVIRONMENT

HERE = Path(__file__).parent
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Stands for storage of the node's own, which a disk that others use is not."""

PROJECTED = (100, 1000, 10_000)
INSTALLATION, FIRST, LATER = "installation", "bundle, first job", "bundle, later job"
STARTS = (INSTALLATION, FIRST, LATER)
LOCAL, DELAYED, SERVED = "local", "delay", "server"


@dataclass(frozen=True)
class Cost:
    """The start of one job: the slowest rank's seconds, and the opens of all ranks together."""

    seconds: float
    opens: int


class Setup:
    """The library that slows opens down, a bundle, and what a rank's environment says of them."""

    def __init__(self, folder: Path, node: Path, delay: float, rate: float) -> None:
        self.folder, self.node = folder, node
        self.written = bundle.write(folder / "shared", bundle.gather())
        self.library, self.state = folder / "slow_opens.so", folder / "state"
        build = ["cc", "-O2", "-shared", "-fPIC", "-o", str(self.library)]
        subprocess.run([*build, str(HERE / "slow_opens.c"), "-ldl"], check=True)
        self.slowness = {
            LOCAL: (0, 0),
            DELAYED: (int(delay * 1e9), 0),
            SERVED: (0, int(1e9 / rate)),
        }

    def cost(self, ranks: int, start: str, mode: str) -> Cost:
        """Start ranks once, and read what `import_time` says of it."""
        if start != LATER:
            for image in self.node.iterdir():
                shutil.rmtree(image)
        self.state.write_bytes(bytes(16))
        delay, each = self.slowness[mode]
        slow = (sys.prefix, sys.base_prefix, bundle.PACKAGE.parent, self.folder / "shared")
        settings = {
            "LD_PRELOAD": self.library,
            "LD_AUDIT": self.library,
            "SLOW_OPENS_UNDER": ":".join(map(str, slow)),
            "SLOW_OPENS_STATE": self.state,
            "SLOW_OPENS_DELAY": delay,
            "SLOW_OPENS_EACH": each,
            "OMB_PY_NODE_DIR": self.node,
        }
        program = BIN / "omb-py" if start == INSTALLATION else self.folder / "shared" / "omb-py"
        table = self.folder / "rows.csv"
        command = ["env", *(f"{name}={value}" for name, value in settings.items()), str(program)]
        command += ["import_time", "-q", "--force", "--output", str(table)]
        subprocess.run(
            [str(BIN / "mpiexec"), "-n", str(ranks), *command],
            env=ENVIRONMENT | THROTTLE,
            check=True,
            stderr=subprocess.DEVNULL,
        )
        with table.open() as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        (total,) = [row for row in rows if row["part"] == "total"]
        opens, _ = struct.unpack("qq", self.state.read_bytes())
        return Cost(float(total["latency_max_us"]) / 1e6, opens)


Costs = dict[tuple[int, str, str], Cost]


def measured(setup: Setup, ranks: Sequence[int], rounds: int) -> Costs:
    """The median of each kind of start, by ranks, start and mode."""
    found: dict[tuple[int, str, str], list[Cost]] = {}
    for number in range(rounds):
        for count in ranks:
            for mode in (LOCAL, DELAYED, SERVED):
                for start in STARTS:
                    cost = setup.cost(count, start, mode)
                    found.setdefault((count, start, mode), []).append(cost)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return {
        key: Cost(median(one.seconds for one in costs), int(median(one.opens for one in costs)))
        for key, costs in found.items()
    }


def fitted(costs: Costs, mode: str) -> float:
    """Seconds that an open adds to a start, by least squares over what was measured.

    With a delay these are of a rank's opens, where each rank has a core, since ranks that share
    cores also wait for them. With a server they are of all ranks' opens.
    """
    added, opens = [], []
    for (ranks, start, kind), cost in costs.items():
        if kind == mode and (mode == SERVED or ranks <= (os.cpu_count() or 1)):
            added.append(cost.seconds - costs[ranks, start, LOCAL].seconds)
            opens.append(cost.opens / (1 if mode == SERVED else ranks))
    return sum(x * y for x, y in zip(opens, added, strict=True)) / sum(x * x for x in opens)


@dataclass(frozen=True)
class Model:
    """T(n) = cpu + a rank's opens * delay + all opens / rate + all nodes' bytes / bandwidth."""

    delay: float
    rate: float
    bandwidth: float
    ranks_per_node: int

    def seconds(self, ranks: int, cpu: float, opens: float, of_node: float, nbytes: int) -> float:
        """A start in which each rank opens files, each node some more, and reads so many bytes."""
        nodes = -(-ranks // self.ranks_per_node)
        waiting = (opens + of_node) * self.delay
        served = (ranks * opens + nodes * of_node) / self.rate
        return cpu + waiting + served + nodes * nbytes / self.bandwidth


def projection(costs: Costs, model: Model, nbytes: int) -> Iterator[tuple[str, ...]]:
    """The rows of the model's table."""
    one = {start: costs[1, start, LOCAL] for start in STARTS}
    of_node = {INSTALLATION: 0, FIRST: one[FIRST].opens - one[LATER].opens, LATER: 0}
    for ranks in PROJECTED:
        seconds = [
            model.seconds(
                ranks,
                one[start].seconds,
                one[start].opens - of_node[start],
                of_node[start],
                nbytes if start == FIRST else 0,
            )
            for start in STARTS
        ]
        yield f"{ranks}", *(f"{value:.2f}" for value in seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", default="1,16,64", help="numbers of ranks, of which 1 is one")
    parser.add_argument(
        "--delay", type=float, default=1e-3, help="seconds that an open takes longer"
    )
    parser.add_argument("--rate", type=float, default=2000, help="opens per second of the server")
    parser.add_argument("--real-rate", type=float, default=50_000, help="the same in the model")
    parser.add_argument(
        "--bandwidth", type=float, default=50e9, help="of reading, bytes per second"
    )
    parser.add_argument("--ranks-per-node", type=int, default=64)
    given = parser.parse_args()
    ranks = sorted({1, *map(int, given.ranks.split(","))})
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=MEMORY) as node:
        setup = Setup(Path(folder), Path(node), given.delay, given.rate)
        costs = measured(setup, ranks, given.rounds)
        nbytes = (setup.folder / "shared" / bundle.IMAGE).stat().st_size
    slow = (f"s, {given.delay * 1e3:g} ms per open", f"s, server of {given.rate:g} opens/s")
    columns = ("ranks", "from", "opens per rank", "s, local", *slow)
    rows = [
        (
            f"{count}",
            start,
            f"{costs[count, start, LOCAL].opens / count:.1f}",
            *(f"{costs[count, start, mode].seconds:.2f}" for mode in (LOCAL, DELAYED, SERVED)),
        )
        for count in ranks
        for start in STARTS
    ]
    print("\n".join(markdown_rows(columns, rows, [True, False, *[True] * 4])))
    print(
        f"\n{os.cpu_count()} cores. By least squares an open adds "
        f"{fitted(costs, DELAYED) * 1e3:.2f} ms to the start of its rank with the delay of "
        f"{given.delay * 1e3:g} ms, and {fitted(costs, SERVED) * 1e3:.2f} ms to that of all ranks "
        f"with the server, which takes {1e3 / given.rate:g} ms for it: less, where ranks compute "
        "meanwhile.\n"
    )
    model = Model(given.delay, given.real_rate, given.bandwidth, given.ranks_per_node)
    heads = ("ranks", *(f"s, {start}" for start in STARTS))
    print("\n".join(markdown_rows(heads, projection(costs, model, nbytes), [True] * 4)))
    print(
        f"\nT(n) = cpu + a rank's opens * {given.delay * 1e3:g} ms + all opens / "
        f"{given.real_rate:g} per s + {nbytes / 1e6:.0f} MB for each node / "
        f"{given.bandwidth / 1e9:g} GB/s (first job), {given.ranks_per_node} ranks per node. "
        "Assumed: a rank has a core and takes the time of one rank here on a local filesystem, for "
        "the first job with extracting; terms do not overlap; nodes do not cache names; MPI_Init "
        "does not grow."
    )


if __name__ == "__main__":
    main()
