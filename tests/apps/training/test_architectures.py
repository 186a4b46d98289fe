"""The tensors of well-known networks are as many and as large as is published."""

from __future__ import annotations

import pytest

from omb_py.apps.training import REPLAYED_MODELS
from omb_py.apps.training.architectures import ARCHITECTURES, tensors_of
from omb_py.apps.training.fusion import ddp, horovod
from omb_py.core.text.numbers import MEBIBYTE

PUBLISHED = {
    "resnet50": (161, 25_557_032),
    "resnet101": (314, 44_549_160),
    "resnet152": (467, 60_192_808),
    "vgg16": (32, 138_357_544),
    "bert-base": (199, 109_482_240),
    "bert-large": (391, 335_141_888),
    "gpt2": (148, 124_439_808),
    "gpt2-medium": (292, 354_823_168),
    "resnet110": (442, 1_734_666),
    "resnet1001": (4008, 30_347_658),
}
"""Tensors and parameters."""

BUCKETS = {
    "resnet50": (5, 2, 1),
    "resnet101": (8, 3, 2),
    "resnet152": (10, 4, 2),
    "vgg16": (6, 5, 3),
    "bert-base": (14, 7, 4),
    "bert-large": (38, 25, 11),
    "gpt2": (13, 7, 4),
    "gpt2-medium": (37, 25, 11),
    "resnet110": (2, 1, 1),
    "resnet1001": (6, 2, 1),
}
"""DDP's buckets of 1 and 25 MiB, Horovod's of 64 and of 128 MiB, by a program of its own."""


def test_every_replayed_model_is_known() -> None:
    assert set(ARCHITECTURES) == set(REPLAYED_MODELS) == set(PUBLISHED)


@pytest.mark.parametrize("model", REPLAYED_MODELS)
def test_tensors_and_parameters_are_the_published_ones(model: str) -> None:
    tensors = tensors_of(model)
    assert (len(tensors), sum(tensor.elements for tensor in tensors)) == PUBLISHED[model]


@pytest.mark.parametrize("model", REPLAYED_MODELS)
def test_names_are_told_apart(model: str) -> None:
    names = [tensor.name for tensor in tensors_of(model)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("model", REPLAYED_MODELS)
def test_frameworks_fuse_them_into_the_known_buckets(model: str) -> None:
    sizes = [4 * tensor.elements for tensor in reversed(tensors_of(model))]
    found = (
        len(ddp(sizes, 25 * MEBIBYTE)),
        len(horovod(sizes, 64 * MEBIBYTE)),
        len(horovod(sizes, 128 * MEBIBYTE)),
    )
    assert found == BUCKETS[model]


def test_shapes_of_a_resnet_are_those_of_its_layers() -> None:
    shapes = {tensor.name: tensor.shape for tensor in tensors_of("resnet50")}
    assert shapes["conv1.weight"] == (64, 3, 7, 7)
    assert shapes["layer2.0.conv1.weight"] == (128, 256, 1, 1)
    assert shapes["layer2.0.downsample.0.weight"] == (512, 256, 1, 1)
    assert shapes["layer4.2.conv3.weight"] == (2048, 512, 1, 1)
    assert shapes["fc.weight"] == (1000, 2048)
    assert "layer2.1.downsample.0.weight" not in shapes
