"""The tensors of well-known networks are as many and as large as is published."""

from __future__ import annotations

from math import prod

import pytest

from omb_py.apps.training import CONVOLUTIONAL_MODELS, TRANSFORMERS, Training
from omb_py.apps.training.exchange import horovod, plan_of
from omb_py.apps.training.networks import network
from omb_py.core.errors import UsageError
from omb_py.core.text.units import MEBIBYTE
from tests.helpers.refusals import refuses

PUBLISHED = {
    "resnet18": (62, 11_689_512),
    "resnet34": (110, 21_797_672),
    "resnet50": (161, 25_557_032),
    "resnet101": (314, 44_549_160),
    "resnet152": (467, 60_192_808),
    "vgg16": (32, 138_357_544),
    "bert-base": (199, 109_482_240),
    "bert-large": (391, 335_141_888),
    "gpt2": (148, 124_439_808),
    "gpt2-medium": (292, 354_823_168),
    "resnet20": (82, 273_066),
    "resnet110": (442, 1_734_666),
    "resnet1001": (4008, 30_347_658),
    "mobilenet": (83, 4_231_976),
}
"""Tensors and parameters."""

MULTIPLICATIONS = {
    "resnet18": 1.81e9,
    "resnet34": 3.66e9,
    "resnet50": 4.1e9,
    "vgg16": 15.5e9,
    "mobilenet": 0.57e9,
    "resnet20": 41e6,
}
"""For an image, as is published; that includes no factors of normalization."""

BUCKETS = {
    "resnet50": (5, 2, 1),
    "resnet101": (8, 3, 2),
    "resnet152": (10, 4, 2),
    "vgg16": (6, 5, 3),
    "bert-base": (14, 7, 4),
    "bert-large": (38, 25, 11),
    "gpt2": (13, 7, 4),
    "gpt2-medium": (37, 25, 11),
    "resnet20": (2, 1, 1),
    "resnet110": (2, 1, 1),
    "resnet1001": (6, 2, 1),
    "mobilenet": (2, 1, 1),
}
"""DDP's buckets and Horovod's by default, and Horovod's of 128 MiB, by a program of its own."""


MODELS = CONVOLUTIONAL_MODELS + TRANSFORMERS


def test_every_model_is_known() -> None:
    assert set(MODELS) == set(PUBLISHED)


@pytest.mark.parametrize("model", MODELS)
def test_tensors_and_parameters_are_the_published_ones(model: str) -> None:
    net = network(model)
    assert (len(net.shapes), net.elements) == PUBLISHED[model]


@pytest.mark.parametrize("model", MODELS)
def test_names_are_told_apart(model: str) -> None:
    names = [name for name, _ in network(model).shapes]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("model", BUCKETS)
def test_frameworks_fuse_them_into_the_known_buckets(model: str) -> None:
    sizes = [4 * prod(shape) for _, shape in reversed(network(model).shapes)]
    found = (
        len(plan_of(Training(buckets="ddp"), sizes)),
        len(plan_of(Training(), sizes)),
        len(horovod(sizes, 128 * MEBIBYTE)),
    )
    assert found == BUCKETS[model]


def test_shapes_of_a_resnet_are_those_of_its_layers() -> None:
    shapes = dict(network("resnet50").shapes)
    assert shapes["conv1.weight"] == (7, 7, 3, 64)
    assert shapes["layer2.0.conv1.weight"] == (1, 1, 256, 128)
    assert shapes["layer2.0.downsample.0.weight"] == (1, 1, 256, 512)
    assert shapes["layer4.2.conv3.weight"] == (1, 1, 512, 2048)
    assert shapes["fc.weight"] == (2048, 1000)
    assert "layer2.1.downsample.0.weight" not in shapes


@pytest.mark.parametrize("model", MULTIPLICATIONS)
def test_the_work_of_a_model_is_the_published_one(model: str) -> None:
    layers = network(model).layers
    work = sum(layer.work for layer in layers if len(layer.tensors[0][1]) > 1)
    assert work == pytest.approx(MULTIPLICATIONS[model], rel=0.02)


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        *(("resnet20", 20), ("resnet110", 110), ("resnet1001", 1001)),
        *(("resnet20", 14), ("resnet110", 5000), ("resnet1001", 20), ("resnet1001", 4997)),
    ],
)
def test_a_residual_network_has_as_many_layers_as_it_says(model: str, layers: int) -> None:
    """Convolutions and the dense one, but for those around blocks."""
    net = network(model, layers)
    names = [one.name for one in net.layers if len(one.tensors[0][1]) == 4]
    assert len([name for name in names if not name.endswith("shortcut")]) == layers - 1
    assert len({one.name for one in net.layers}) == len(net.layers)


@pytest.mark.parametrize(
    ("model", "layers", "nearest"),
    [("resnet110", 5001, 5000), ("resnet20", 5, 14), ("resnet1001", 5000, 4997)],
)
def test_impossible_depth_is_refused_with_the_nearest(
    model: str, layers: int, nearest: int
) -> None:
    with refuses(UsageError, f"--layers {layers} {model} use --layers {nearest}"):
        network(model, layers)


def test_residual_block_passes_two_arrays() -> None:
    net = network("resnet50")
    given = {stage.layers[0].name: stage.given for stage in net.stages(len(net.layers))}
    assert given["layer2.0.conv1"] == (56 * 56 * 256, 56 * 56 * 256)
    assert given["layer2.0.bn2"] == (56 * 56 * 256, 28 * 28 * 128)
    assert given["layer2.1.conv1"] == (28 * 28 * 512, 28 * 28 * 512)
    assert given["fc"] == (2048,)
