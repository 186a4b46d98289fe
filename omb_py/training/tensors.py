"""A parameter of a network, and those of the layers that all families have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Tensor:
    """A parameter, and so its gradient: a name and a shape."""

    name: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Its numbers."""
        return prod(self.shape)


def weighted(name: str, *shape: int, bias: int = 0) -> Iterator[Tensor]:
    """The weights of a layer, and so many numbers of bias where it has one."""
    yield Tensor(f"{name}.weight", shape)
    if bias:
        yield Tensor(f"{name}.bias", (bias,))


def normalization(name: str, features: int) -> Iterator[Tensor]:
    """What a batch or layer normalization learns: a factor and an offset for each feature."""
    return weighted(name, features, bias=features)
