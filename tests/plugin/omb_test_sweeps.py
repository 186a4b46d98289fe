"""A launcher, a scheduler and an algorithm as another distribution would add them."""

from dataclasses import replace

from omb_py.benchmarks.algorithms import BCAST
from omb_py.sweeps.launchers import Launcher, Placement
from omb_py.sweeps.schedulers import BUILTIN


def words(place: Placement) -> list[str]:
    """Eight ranks are started by ``corral --head 8``."""
    return ["--head", str(place.ranks)]


LAUNCHER = Launcher("corral", words)
SCHEDULER = replace(
    BUILTIN["slurm"],
    title="Corral",
    sentinel="#CORRAL",
    submit=("drive",),
    template="""\
{% extends "job.sh.j2" %}
{% block directives %}
#CORRAL --fields={{ nodes }} --until={{ settings.walltime | clock }}
{% endblock %}
""",
)
ALGORITHM = replace(BCAST[0], word="relay")
BROKEN = "no launcher"
