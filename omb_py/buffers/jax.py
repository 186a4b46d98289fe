"""JAX's arrays on the host, each an array of NumPy's that shares its bytes by DLPack.

Arrays of JAX do not change, so no MPI call receives in one: a program sends a ``jax.Array``,
receives in an array of NumPy, and makes one of JAX of that (`jax.dlpack.from_dlpack`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from omb_py.buffers import LONG_DOUBLES, Buffer
from omb_py.buffers.numpy import NumpyBuffer, NumpyMemory
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import UnsupportedError

ALIGNMENT = 64
"""Bytes that divide the address of each array that XLA shares instead of copying it."""


def choose_processor() -> None:
    """Put JAX's arrays on the host unless ``JAX_PLATFORMS`` is set, with elements of 8 bytes."""
    jax.config.update("jax_enable_x64", True)
    if jax.config.jax_platforms is None:
        jax.config.update("jax_platforms", "cpu")


class JaxMemory(NumpyMemory):
    """An array of NumPy in which messages arrive, sent as a ``jax.Array`` of the same bytes."""

    @property
    def sent(self) -> Any:
        if self._bytes.ctypes.data % ALIGNMENT and self.nbytes:
            raise UnsupportedError(
                f"JAX shares no array at an address that {ALIGNMENT} does not divide: choose "
                "other --sizes, without --offset, or --buffer numpy"
            )
        return jax.dlpack.from_dlpack(self.array, copy=False if self.nbytes else None)

    def slice(self, start: int, nbytes: int) -> JaxMemory:
        return JaxMemory(self._bytes[start : start + nbytes].view(self.array.dtype))

    def payload(self) -> Any:
        return jax.numpy.array(self.array)


class JaxBuffer(NumpyBuffer):
    """Arrays of ``jax.dlpack.from_dlpack`` that begin at a page."""

    name = "jax"
    memory = JaxMemory
    lacks = LONG_DOUBLES

    def prepare(self, local_rank: int, devices: Sequence[int] = ()) -> Buffer:
        choose_processor()
        if "cpu" not in str(jax.config.jax_platforms).split(","):
            raise UnsupportedError(
                f"buffer jax has arrays on the host, and JAX_PLATFORMS is "
                f"{jax.config.jax_platforms}: unset it, or use --buffer cupy for a device"
            )
        return self

    def allocate(self, nbytes: int, datatype: Datatype) -> NumpyMemory:
        self.check_elements(datatype)
        return super().allocate(nbytes, datatype)

    def describe(self) -> dict[str, str]:
        return super().describe() | {"jax": jax.__version__}


BUFFER = JaxBuffer()
