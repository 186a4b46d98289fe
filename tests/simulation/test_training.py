"""Steps of trainings: what is computed, what is hidden, and what efficiency follows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from omb_py.apps import APPLICATIONS
from omb_py.apps.training import Training
from omb_py.core.errors import UsageError
from omb_py.simulation.engine import Outcome
from omb_py.simulation.network import ROUND_FIGURES
from omb_py.simulation.program import Background, Compute, Wait
from omb_py.simulation.training import Step, Trained, layers_of, sheet
from omb_py.simulation.workers import Job, run_jobs

RESNET = Training(model="resnet50", batch=64, sample_time=2.0)


def step(training: Training, scaling: str, ranks: int) -> Step:
    return Step(training, scaling, ranks, layers_of(training))


def test_weak_scaling_gives_every_rank_the_batch_and_strong_scaling_a_share() -> None:
    assert (step(RESNET, "weak", 8).samples, step(RESNET, "weak", 8).all_samples) == (64, 512)
    assert (step(RESNET, "strong", 8).samples, step(RESNET, "strong", 8).all_samples) == (8, 64)
    assert step(RESNET, "strong", 8).compute_s == pytest.approx(8 * 2e-3)


def test_a_bucket_is_averaged_beside_what_is_computed_after_it() -> None:
    operations = list(step(replace(RESNET, overlap=True), "weak", 4).program().operations(0))
    forward, *_, last = operations
    assert isinstance(forward, Compute)
    assert forward.seconds == pytest.approx(64 * 2e-3 / 3)
    begun = [place for place, one in enumerate(operations) if isinstance(one, Background)]
    assert len(begun) == 2  # 97 MiB of gradients in buckets of 64 MiB
    assert any(isinstance(one, Compute) for one in operations[begun[0] :])
    assert last == Wait((0, 1))


def test_without_overlap_gradients_are_averaged_at_the_end() -> None:
    operations = list(step(RESNET, "weak", 4).program().operations(0))
    last = max(place for place, one in enumerate(operations) if isinstance(one, Compute))
    assert not any(isinstance(one, Background | Wait) for one in operations[:last])
    assert any(isinstance(one, Wait) for one in operations[last:])


@pytest.mark.usefixtures("simgrid")
def test_overlap_hides_most_of_the_communication() -> None:
    problems = (RESNET, replace(RESNET, overlap=True), replace(RESNET, allreduce="rabenseifner"))
    steps = [step(problem, "weak", 8) for problem in problems]
    found: dict[int, Outcome] = {}

    def done(job: int, place: int, outcome: Any) -> None:
        found[place] = outcome

    tasks = tuple(partial(Step.simulate, one) for one in steps)
    run_jobs([Job(0, ROUND_FIGURES, tuple(range(8)), tasks)], 1, done)
    apart, beside, own = (
        Trained("", one, max(found[place].ends)) for place, one in enumerate(steps)
    )
    computed = 64 * 2e-3
    added = 7 / 8 * 25_557_032 * 4
    alone = 2 * added / 12_500e6 + added * 1e-10
    assert apart.seconds - computed == pytest.approx(alone, rel=0.05)
    assert computed < beside.seconds < apart.seconds
    assert beside.efficiency > apart.efficiency
    assert own.seconds == pytest.approx(apart.seconds, rel=0.02)
    row = apart.row("run", APPLICATIONS.load("train"))
    assert (row.scaling, row.ranks, row.binding) == ("weak", 8, "simulated")
    assert row.speedup == pytest.approx(8 * apart.efficiency)
    assert len(sheet([apart, beside], []).rows) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"strategy": "model"}, "has no --strategy"),
        ({"negotiation": "cached"}, "has no --negotiation"),
        ({"overlap": True, "allreduce": "ring"}, "leave out --overlap"),
        ({"model": "mlp"}, "nobody knows how long mlp computes"),
    ],
)
def test_what_cannot_be_simulated_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        step(replace(RESNET, **changes), "weak", 4).program()
