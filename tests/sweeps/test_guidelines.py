"""Sweeps that measure what guidelines compare."""

from __future__ import annotations

from omb_py.analysis.guidelines.rules import chosen
from omb_py.sweeps import guidelines as sweeping
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import plan

HERE = Machine.model_validate({"name": "here", "launcher": "mpich", "oversubscribe": True})


def test_right_sides_get_the_sizes_that_they_need() -> None:
    found = sweeping.sizes_of(chosen(("emulation", "bcast", "gather")), (16, 1024), 4)
    assert found == {
        "bcast": (16, 1024),
        "scatter": (4, 256),
        "allgather": (4, 16, 256, 1024),
        "allreduce": (16, 1024),
        "gather": (16, 1024),
        "gatherv": (16, 1024),
        "reduce": (64,),  # 4096 bytes would be more than the largest size
    }


def test_a_job_of_two_ranks_alone_has_a_ping_pong() -> None:
    rules = chosen(("monotony",))
    assert "latency" in sweeping.sizes_of(rules, (8,), 2)
    assert "latency" not in sweeping.sizes_of(rules, (8,), 3)


def test_algorithms_are_measured_at_the_sizes_of_violations() -> None:
    words = {"gather": ("binomial",), "barrier": ("dissemination",)}
    found = plan(sweeping.sweep("mine", {"gather": (64,), "barrier": ()}, 4, 1, {}, words), HERE)
    assert {(one.benchmark, one.library_algorithm, one.sizes) for one in found.points} == {
        *(("gather", "binomial", (64,)), ("barrier", "dissemination", ()))
    }
