"""PyTorch's tensors, on a device of NVIDIA or AMD (``torch``) or on the host (``torch_cpu``).

The suite refers to this module only by two lines under ``[project.entry-points]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from omb_py.buffers import LONG_DOUBLES, PAGE, Buffer
from omb_py.buffers.device import DeviceBuffer
from omb_py.buffers.device.drivers import Cuda, Hip
from omb_py.buffers.numpy import NumpyMemory
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import MissingPackageError, OutOfMemoryError, installing


def package_folders(name: str) -> Sequence[str]:
    """Return the folders of a package, which is not imported; none if it is not installed."""
    spec = find_spec(name)
    return () if spec is None else spec.submodule_search_locations or ()


class OwnHip(Hip):
    """HIP as a wheel of PyTorch brings it: a second copy would not know its memory."""

    libraries = (
        *(f"{folder}/lib/libamdhip64.so" for folder in package_folders("torch")),
        *Hip.libraries,
    )


class Torch(DeviceBuffer):
    """Tensors of ``torch.empty`` on a device."""

    name = "torch"
    packages = ("torch",)
    extra = "torch"
    drivers = (Cuda, OwnHip)
    lacks = LONG_DOUBLES

    def start(self, number: int) -> None:
        import torch

        self._torch: Any = torch
        self._device = f"cuda:{number}"
        torch.cuda.set_device(number)
        torch.cuda.init()

    def empty(self, nbytes: int) -> Any:
        return self._torch.empty(nbytes, dtype=self._torch.uint8, device=self._device)

    def out_of_memory(self, error: Exception) -> bool:
        return isinstance(error, self._torch.OutOfMemoryError)

    def typed(self, array: Any, dtype: str) -> Any:
        return array.view(getattr(self._torch, dtype))

    def address(self, array: Any) -> int:
        address: int = array.data_ptr()
        return address

    def payload(self, array: Any) -> Any:
        return array.clone()

    def versions(self) -> dict[str, str]:
        runtimes = {
            "cuda_runtime": self._torch.version.cuda,
            "hip_runtime": self._torch.version.hip,
        }
        found = {name: version for name, version in runtimes.items() if version}
        return {"torch": self._torch.__version__, **found}


class TensorMemory(NumpyMemory):
    """A tensor on the host, filled and checked through the NumPy array that shares its bytes."""

    def __init__(self, tensor: Any, dtype: str) -> None:
        """Take a tensor of bytes as elements of NumPy's type ``dtype``."""
        import torch

        super().__init__(tensor.numpy().view(dtype))
        self._tensor = tensor
        self._dtype = dtype
        self.array = tensor.view(getattr(torch, dtype))

    def slice(self, start: int, nbytes: int) -> TensorMemory:
        return TensorMemory(self._tensor[start : start + nbytes], self._dtype)

    def payload(self) -> Any:
        return self.array.clone()  # a view would be pickled with all that it is a view of


class HostTensors(Buffer):
    """Tensors of ``torch.empty`` on the host."""

    name = "torch_cpu"
    lacks = LONG_DOUBLES

    def prepare(self, local_rank: int, devices: Sequence[int] = ()) -> Buffer:
        if find_spec("torch") is None:
            raise MissingPackageError("buffer torch_cpu", "torch", installing("torch"))
        return self

    def wrap(self, view: Any, datatype: Datatype) -> TensorMemory:
        import torch

        return TensorMemory(torch.frombuffer(view, dtype=torch.uint8), datatype.dtype)

    def allocate(self, nbytes: int, datatype: Datatype) -> TensorMemory:
        import torch

        self.check_elements(datatype)
        try:
            raw = torch.empty(nbytes + PAGE, dtype=torch.uint8)
        except RuntimeError as error:
            raise OutOfMemoryError(f"torch cannot allocate {nbytes} bytes: lower -m") from error
        start = -raw.data_ptr() % PAGE
        return TensorMemory(raw[start : start + nbytes], datatype.dtype)

    def describe(self) -> dict[str, str]:
        import torch

        return {"torch": torch.__version__}


CUDA = Torch()
CPU = HostTensors()
