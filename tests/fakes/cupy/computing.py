"""Arrays to compute with, and the functions that CuPy has for them.

NumPy computes, on the processor's view of the stand-in's memory. What CuPy refuses is refused: its
arrays together with NumPy's, and functions that are not in `NAMES`: those that the suite calls, all
of which CuPy 14 has.
"""

from __future__ import annotations

import ctypes
from functools import wraps
from typing import Any

import numpy as np
from cupy.cuda import runtime

NAMES = frozenset(
    "abs add arange argpartition argsort asarray bincount copyto cumsum divide empty flatnonzero "
    "matmul maximum multiply searchsorted square take_along_axis where zeros".split()
)
TAKES_HOST = frozenset({"asarray"})
"""Functions that copy an array of NumPy's to the device."""


class Computed(np.ndarray):
    """An array on the device, which nothing of NumPy's may touch."""

    owner: Any = None

    @classmethod
    def at(cls, pointer: Any, length: int, dtype: Any) -> Computed:
        """The elements at a pointer."""
        driver = ctypes.CDLL(runtime.DRIVER)
        driver.fakecuda_host.restype = ctypes.c_void_p
        place = driver.fakecuda_host(ctypes.c_void_p(pointer.ptr))
        memory = (ctypes.c_ubyte * (length * np.dtype(dtype).itemsize)).from_address(place)
        found = np.frombuffer(memory, dtype).view(cls)
        found.owner = pointer
        return found

    def __array_finalize__(self, origin: Any) -> None:
        self.owner = getattr(origin, "owner", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        refuse_host((*inputs, *keywords.get("out", ())))
        if "out" in keywords:
            keywords["out"] = tuple(map(plain, keywords["out"]))
        return on_device(getattr(ufunc, method)(*map(plain, inputs), **keywords), keywords)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        raise TypeError(f"numpy.{function.__name__} of an array on the device")

    def __setitem__(self, place: Any, value: Any) -> None:
        refuse_host((place, value))
        super().__setitem__(place, value)

    def __getitem__(self, place: Any) -> Any:
        refuse_host(place if isinstance(place, tuple) else (place,))
        return super().__getitem__(place)

    def get(self) -> np.ndarray:
        """A copy for the host."""
        return np.array(plain(self))


def plain(value: Any) -> Any:
    """NumPy's own view of an array on the device, also inside tuples and lists."""
    if isinstance(value, Computed):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    return value


def on_device(value: Any, keywords: dict[str, Any] | None = None) -> Any:
    """A result of NumPy's as CuPy would return it."""
    if isinstance(value, tuple):
        return tuple(map(on_device, value))
    return value.view(Computed) if isinstance(value, np.ndarray) else value


def refuse_host(values: Any) -> None:
    """Raise `TypeError` for an array of NumPy's, but for a scalar."""
    for value in values:
        if isinstance(value, tuple | list):
            refuse_host(value)
        elif isinstance(value, np.ndarray) and not isinstance(value, Computed) and value.ndim:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")


def function(name: str) -> Any:
    """The function, or type, of CuPy called ``name``."""
    of_numpy: Any = getattr(np, name, None)
    if name not in NAMES:
        if isinstance(of_numpy, type | float | type(None)) and of_numpy is not np.ndarray:
            return of_numpy
        raise AttributeError(f"module 'cupy' has no attribute {name!r}")

    @wraps(of_numpy)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if name not in TAKES_HOST:
            refuse_host((*arguments, *keywords.values()))
        arguments, keywords = plain(arguments), {key: plain(keywords[key]) for key in keywords}
        return on_device(of_numpy(*arguments, **keywords))

    if isinstance(of_numpy, np.ufunc):
        for method in ("at", "reduce", "accumulate", "outer", "reduceat"):
            setattr(call, method, _of_ufunc(getattr(of_numpy, method)))
    return call


def _of_ufunc(method: Any) -> Any:
    def call(*arguments: Any, **keywords: Any) -> Any:
        refuse_host((*arguments, *keywords.values()))
        return on_device(method(*plain(arguments), **{k: plain(v) for k, v in keywords.items()}))

    return call
