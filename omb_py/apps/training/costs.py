"""How long each layer of a network computes for a sample, forward and backward."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omb_py.apps.runtime.team import Team, alone, together
from omb_py.apps.training import MILLISECOND, Training
from omb_py.apps.training.networks import NeuralNetwork
from omb_py.core.errors import UsageError

FORWARD = 1 / 3
"""Of the time of a step. The backward pass takes about twice as long as the forward pass: for each
product of a layer it has two of the same size, for the gradients of weights and of inputs."""


@dataclass(frozen=True)
class Cost:
    """Seconds of a layer for a sample."""

    forward: float = 0.0
    backward: float = 0.0

    @property
    def whole(self) -> float:
        """Both ways."""
        return self.forward + self.backward


def layer_costs(team: Team, training: Training, network: NeuralNetwork) -> list[Cost]:
    """The cost of each layer, the same on all ranks; collective.

    Raises `SharedError` on all ranks for a file that is not about this network.
    """
    if training.layer_times == "work":
        return by_work(network, training.sample_time * MILLISECOND)
    on_one_rank = partial(alone, partial(from_file, network, training.layer_times), team.comm)
    found: list[Cost] = team.comm.bcast(together(team.comm, on_one_rank), root=0)
    return found


def by_work(network: NeuralNetwork, seconds: float) -> list[Cost]:
    """The seconds of a sample, divided in proportion to the layers' multiplications."""
    unit = seconds / max(1, network.work)
    return [
        Cost(FORWARD * unit * layer.work, (1 - FORWARD) * unit * layer.work)
        for layer in network.layers
    ]


def from_file(network: NeuralNetwork, path: str) -> list[Cost]:
    """The milliseconds that a CSV file has for each layer that learns.

    Its columns are ``layer``, ``forward_ms`` and ``backward_ms``; layers that it lacks, and that
    learn nothing, take no time. Raises `UsageError` for anything else.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = {row["layer"]: _read(row) for row in csv.DictReader(file)}
    except OSError as error:
        raise UsageError(
            f"--layer-times {path}: {error.strerror}: choose work, or another file"
        ) from None
    except (KeyError, TypeError, ValueError, csv.Error):
        raise UsageError(
            f"--layer-times {path} is no table of layers: its columns are layer, forward_ms and "
            "backward_ms, with numbers that are not negative"
        ) from None
    learning = [layer.name for layer in network.layers if layer.tensors]
    for name in learning:
        if name not in rows:
            raise UsageError(
                f"--layer-times {path} has no layer {name}: the network has {len(learning)} layers "
                f"that learn, {learning[0]} to {learning[-1]}"
            )
    return [rows.get(layer.name, Cost()) for layer in network.layers]


def _read(row: dict[str, str]) -> Cost:
    seconds = [MILLISECOND * float(row[name]) for name in ("forward_ms", "backward_ms")]
    if not all(0 <= one < float("inf") for one in seconds):
        raise ValueError
    return Cost(*seconds)


def of_stages(costs: Sequence[Cost], stages: Sequence[NeuralNetwork]) -> list[list[Cost]]:
    """The costs of each stage's layers."""
    left: Iterator[Any] = iter(costs)
    return [[next(left) for _ in stage.layers] for stage in stages]
