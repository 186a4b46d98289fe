"""NVLink and PCIe of GPUs, by NVIDIA's management library (NVML API reference guide).

The fields for NVLink count KiB of data over all links of a GPU since its driver was loaded, those
for PCIe count bytes and may begin anew.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from omb_py.tracing.counters.links import HOST, Link

LIBRARY = "libnvidia-ml.so.1"
ALL_LINKS = 0xFFFFFFFF
FIELDS = {"NVLink": (138, 139, 1024, ALL_LINKS), "PCIe": (197, 198, 1, 0)}
"""NVML's numbers of the fields for what was sent and received, bytes of a unit, and the scope."""

UNSIGNED = {1: 32, 2: 8 * ctypes.sizeof(ctypes.c_ulong), 3: 64}
"""Bits of NVML's types of values that are unsigned whole numbers."""

NAME_BYTES = 96


class Field(ctypes.Structure):
    """nvmlFieldValue_t; of its union only what is unsigned and whole."""

    _fields_ = (
        ("number", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("kind", ctypes.c_int),
        ("result", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    )


def links(root: Path) -> Sequence[Link]:
    """NVLink and PCIe of all GPUs; none where there is no NVML. ``root`` does not matter."""
    try:
        library = ctypes.CDLL(LIBRARY)
        if library.nvmlInit_v2() != 0:
            return []
    except (OSError, AttributeError):
        return []
    try:
        return list(_links(library))
    except AttributeError:  # a library that is too old
        return []
    finally:
        library.nvmlShutdown()


def _links(library: Any) -> Iterator[Link]:
    count = ctypes.c_uint()
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return
    for number in range(count.value):
        device = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(device)) != 0:
            continue  # a GPU that this user may not use
        for word, (sent_field, received_field, unit, scope) in FIELDS.items():
            fields = (Field * 2)(Field(sent_field, scope), Field(received_field, scope))
            if library.nvmlDeviceGetFieldValues(device, 2, fields) != 0:
                continue
            wire = link_of(f"GPU {number} {word}", fields[0], fields[1], unit)
            if wire is not None:
                yield wire


def link_of(name: str, sent: Field, received: Field, unit: int) -> Link | None:
    """A wire from two fields that NVML filled in; None where the GPU has no such wire."""
    values = []
    for one in (sent, received):
        bits = UNSIGNED.get(one.kind)
        if one.result != 0 or bits is None:
            return None
        values.append(one.value & ((1 << bits) - 1))
    bits = UNSIGNED[sent.kind]
    return Link("nvml", name, values[0] * unit, values[1] * unit, HOST, bits=bits, unit=unit)
