"""NVLink and PCIe of GPUs, by NVIDIA's management library (NVML API reference guide).

The fields for NVLink count KiB of data over all links of a GPU since its driver was loaded, those
for PCIe count bytes and may begin anew.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from omb_py.tracing.counters.links import Link

ALL_LINKS = 0xFFFFFFFF
FIELDS = {
    "NVLink": ("NVLINK_THROUGHPUT_DATA_TX", "NVLINK_THROUGHPUT_DATA_RX", 1024, ALL_LINKS),
    "PCIe": ("PCIE_COUNT_TX_BYTES", "PCIE_COUNT_RX_BYTES", 1, 0),
}
"""NVML's fields for sent and received data, bytes of a unit, and the scope."""

UNSIGNED = {1: ("uiVal", 32), 2: ("ulVal", 8 * ctypes.sizeof(ctypes.c_ulong)), 3: ("ullVal", 64)}
"""Attributes of NVML's unsigned types, and their bits."""


def links(root: Path) -> Sequence[Link]:
    """NVLink and PCIe of all GPUs; none without NVML or pynvml. ``root`` does not matter."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return list(_links(pynvml))
    except pynvml.NVMLError:  # a library that is too old
        return []
    finally:
        pynvml.nvmlShutdown()


def _links(nvml: Any) -> Iterator[Link]:
    for number in range(nvml.nvmlDeviceGetCount()):
        for word, (sent, received, unit, scope) in FIELDS.items():
            fields = [(getattr(nvml, f"NVML_FI_DEV_{name}"), scope) for name in (sent, received)]
            try:
                device = nvml.nvmlDeviceGetHandleByIndex(number)
                out, into = map(_value, nvml.nvmlDeviceGetFieldValues(device, fields))
            except nvml.NVMLError:  # a GPU that this user may not use
                continue
            if out is not None and into is not None:
                name, bits = f"GPU {number} {word}", out[1]
                yield Link("nvml", name, out[0] * unit, into[0] * unit, bits=bits, unit=unit)


def _value(field: Any) -> tuple[int, int] | None:
    """Return the count of a field and its bits; None if the GPU has no such link."""
    if field.nvmlReturn != 0 or field.valueType not in UNSIGNED:
        return None
    name, bits = UNSIGNED[field.valueType]
    return getattr(field.value, name), bits
