"""Persistent requests, set up once, outside the time, and started in every iteration."""

from __future__ import annotations

from omb_py.benchmarks import collective, pt2pt
from omb_py.benchmarks._forms import persistent_form
from omb_py.core.calls import Call

POINT_TO_POINT = ("latency", "bw", "bibw")


def carries_data(call: Call) -> bool:
    """Whether a call is not the short answer to a window, which stays as it is."""
    return call.tag != pt2pt.ACKNOWLEDGE_TAG


BENCHMARKS = (
    *(
        persistent_form(plain, applies=carries_data)
        for plain in pt2pt.BENCHMARKS
        if plain.name in POINT_TO_POINT
    ),
    *(
        persistent_form(plain, native=plain.name != "reduce_scatter_block")
        for plain in collective.BENCHMARKS
    ),
)
