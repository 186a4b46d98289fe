"""The parameters of well-known networks: names and shapes, in order of declaration.

Each family generates them from how its networks are built; nothing is computed with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from omb_py.training.cifar import cifar_first, cifar_second
from omb_py.training.residual import bottlenecks
from omb_py.training.tensors import Tensor
from omb_py.training.transformers import bert, gpt2
from omb_py.training.vgg import vgg

ARCHITECTURES: dict[str, Callable[[], Iterator[Tensor]]] = {
    "resnet50": partial(bottlenecks, (3, 4, 6, 3)),
    "resnet101": partial(bottlenecks, (3, 4, 23, 3)),
    "resnet152": partial(bottlenecks, (3, 8, 36, 3)),
    "vgg16": vgg,
    "bert-base": partial(bert, layers=12, width=768),
    "bert-large": partial(bert, layers=24, width=1024),
    "gpt2": partial(gpt2, layers=12, width=768),
    "gpt2-medium": partial(gpt2, layers=24, width=1024),
    "resnet110": partial(cifar_first, 110),
    "resnet1001": partial(cifar_second, 1001),
}
"""By the names that ``--model`` has for them."""


def tensors_of(model: str) -> tuple[Tensor, ...]:
    """The tensors of one of `ARCHITECTURES`, in order of declaration."""
    return tuple(ARCHITECTURES[model]())
