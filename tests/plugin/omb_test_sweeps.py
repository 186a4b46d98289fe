"""A launcher and an algorithm as another distribution would add them."""

from dataclasses import replace

from omb_py.benchmarks.algorithms import BCAST
from omb_py.sweeps.launchers import Launcher, Placement


def words(place: Placement) -> list[str]:
    """Eight ranks are started by ``corral --head 8``."""
    return ["--head", str(place.ranks)]


LAUNCHER = Launcher("corral", words)
ALGORITHM = replace(BCAST[0], word="relay")
BROKEN = "no launcher"
