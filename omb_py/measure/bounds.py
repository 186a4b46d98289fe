"""The limits of this host: copies, caches, links.

This module works without MPI. Limits that the system does not report, or that need a missing
package, are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import fsum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UnsupportedError
from omb_py.measure.conditions import content

if TYPE_CHECKING:
    from omb_py.buffers.device.drivers import Cuda

SYS = Path("/sys")

SMALLEST, LARGEST, STEP = 1 << 16, 1 << 28, 4
"""Sizes of copies in bytes: each so many times the one before. The call of NumPy takes a good part
of the time of shorter ones."""

COPY_SECONDS = 0.01
COPY_REPEATS = 5
"""Seconds of copies of each size, and their repeats: the fastest repeat counts."""

FEWEST_COPIES = 3
START_SECONDS = 60.0
"""Seconds that the processes that copy wait for each other."""

MEMORY_SHARE = 8
"""Copies take this part of the free memory at most."""

DEVICE_COPY_BYTES = 1 << 26
DEVICE_COPIES = 10

GIGABIT = 1e3 / 8
"""MB/s."""

PCIE_LANE_MBPS = {1: 250, 2: 500, 3: 984.6, 4: 1969, 5: 3938, 6: 7563}
"""Payload of a lane in one direction by generation: transfer rate less the coding (8b/10b to
generation 2, 128b/130b to 5; PCI-SIG's specifications)."""


@dataclass(frozen=True)
class Copy:
    """Bytes copied per second, in MB/s, by one core and by all at once, each its own bytes."""

    bytes: int
    one_core: float
    all_cores: float


def cores() -> list[int]:
    """Return the cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


def copies() -> list[Copy]:
    """Return rates of `memcpy`, as NumPy calls it, over sizes; memory was written before."""
    usable = cores()
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    sizes = [SMALLEST]
    while sizes[-1] < LARGEST:
        sizes.append(sizes[-1] * STEP)
    sizes = [size for size in sizes if 2 * size * len(usable) <= free // MEMORY_SHARE]
    if not sizes:
        return []
    one, every = copy_rates(sizes, usable[:1]), copy_rates(sizes, usable)
    return list(map(Copy, sizes, one, every))


def copy_rates(sizes: Sequence[int], on: Sequence[int]) -> list[float]:
    """Return MB/s of copies of each size by some cores together, a process on each.

    All begin a repeat at the same time; the fastest repeat counts.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    context = get_context("spawn")
    start = context.Barrier(len(on), timeout=START_SECONDS)
    shared = (start, tuple(sizes), len(on) == 1)
    with ProcessPoolExecutor(len(on), context, keep_shared, shared) as pool:
        return fastest(list(pool.map(rates_of_core, on)), len(sizes))


def fastest(rates: Sequence[Sequence[float]], sizes: int) -> list[float]:
    """Return the highest sum over cores of each size, from each core's rates in each repeat.

    >>> fastest([[10.0, 1.0, 40.0, 2.0], [20.0, 3.0, 5.0, 4.0]], sizes=2)
    [45.0, 6.0]
    """
    sums = [fsum(repeat) for repeat in zip(*rates, strict=True)]
    return [max(sums[place::sizes]) for place in range(sizes)]


SHARED: list[Any] = []
"""Objects that the processes of `copy_rates` share."""


def keep_shared(*objects: Any) -> None:
    SHARED[:] = objects


def rates_of_core(core: int) -> list[float]:
    """Return MB/s of this process on a core, of all sizes in each repeat.

    The fastest copy counts if only one core copies, the mean of copies otherwise. The time of a
    call with a single byte is subtracted.
    """
    import numpy as np

    start, sizes, alone = SHARED
    os.sched_setaffinity(0, {core})
    source, target = np.full(sizes[-1], 1, np.uint8), np.full(sizes[-1], 255, np.uint8)
    rates = []
    for size in COPY_REPEATS * sizes:
        start.wait()
        call = min(copy_times(target[:1], source[:1], 0.0))
        times = copy_times(target[:size], source[:size], COPY_SECONDS)
        took = min(times) if alone else fsum(times) / len(times)
        rates.append(size / max(took - call, took / 2) / 1e6)
    return rates


def copy_times(target: Any, source: Any, seconds: float) -> list[float]:
    """Return the seconds of each copy, as many as ``seconds`` allow, `FEWEST_COPIES` at least."""
    import numpy as np

    found: list[float] = []
    now = perf_counter()
    end = now + seconds
    while now < end or len(found) < FEWEST_COPIES:
        before = now
        np.copyto(target, source)
        now = perf_counter()
        found.append(now - before)
    return found


def caches(root: Path = SYS) -> dict[str, int]:
    """Return the bytes of the caches of data that the first core has, by name, as in ``L1``."""
    found = {}
    for folder in sorted(root.glob("devices/system/cpu/cpu0/cache/index*")):
        kind, level, size = (content(folder / name) for name in ("type", "level", "size"))
        number = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind != "Instruction" and level and number:
            found[f"L{level}"] = int(number[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[number[2]]
    return found


def interfaces(root: Path = SYS) -> dict[str, float]:
    """Return MB/s of each network interface that is up and not virtual, by its link speed."""
    found = {}
    for folder in sorted(root.glob("class/net/*")):
        virtual = "/virtual/" in str(folder.resolve())
        with suppress(ValueError):
            megabits = int(content(folder / "speed"))
            if megabits > 0 and not virtual and content(folder / "operstate") == "up":
                found[folder.name] = megabits / 8
    return found


def infiniband(root: Path = SYS) -> dict[str, float]:
    """Return MB/s of each active InfiniBand port, by name, as in ``mlx5_0:1``."""
    found = {}
    for folder in sorted(root.glob("class/infiniband/*/ports/*")):
        rate = re.match(r"([\d.]+) Gb/sec", content(folder / "rate"))
        if rate and "ACTIVE" in content(folder / "state"):
            found[f"{folder.parent.parent.name}:{folder.name}"] = float(rate[1]) * GIGABIT
    return found


def gpus() -> dict[str, dict[str, float]]:
    """Return MB/s of each GPU's PCIe and NVLink in one direction, by number and name; from NVML."""
    try:
        import pynvml
    except ImportError:
        return {}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return {}
    try:
        return dict(of_gpus(pynvml))
    except pynvml.NVMLError:
        return {}
    finally:
        pynvml.nvmlShutdown()


def of_gpus(nvml: Any) -> Iterator[tuple[str, dict[str, float]]]:
    """Return `gpus`, from a library that was initialized."""
    for number in range(nvml.nvmlDeviceGetCount()):
        device = nvml.nvmlDeviceGetHandleByIndex(number)
        name = nvml.nvmlDeviceGetName(device)
        name = name.decode() if isinstance(name, bytes) else name
        lane = PCIE_LANE_MBPS.get(nvml.nvmlDeviceGetMaxPcieLinkGeneration(device))
        found = {}
        if lane is not None:
            found["PCIe"] = lane * nvml.nvmlDeviceGetMaxPcieLinkWidth(device)
        fields = [nvml.NVML_FI_DEV_NVLINK_LINK_COUNT, nvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON]
        with suppress(nvml.NVMLError):
            links, speed = nvml.nvmlDeviceGetFieldValues(device, fields)
            if links.nvmlReturn == speed.nvmlReturn == 0 and links.value.uiVal:
                found["NVLink"] = float(links.value.uiVal * speed.value.uiVal)
        yield f"{number} {name}", found


def device_copies() -> dict[str, dict[str, float]]:
    """Return MB/s of copies between page-locked host memory and each GPU, and within it.

    By number and name; none without a driver. A copy within a GPU counts each byte once.
    """
    from omb_py.buffers.device import NVIDIA_OR_AMD
    from omb_py.buffers.device.drivers import load

    try:
        driver = load(NVIDIA_OR_AMD)
    except UnsupportedError:
        return {}
    found = {}
    for number in range(driver.devices()):
        device = driver.activate(number)
        host = driver.pinned(DEVICE_COPY_BYTES)
        first, second = (driver.allocate(DEVICE_COPY_BYTES) for _ in range(2))
        found[f"{number} {device.name}"] = {
            "from page-locked memory": device_rate(driver, first, host),
            "to page-locked memory": device_rate(driver, host, first),
            "within": device_rate(driver, second, first),
        }
        driver.free(first)
        driver.free(second)
        driver.free_pinned(host)
    return found


def device_rate(driver: Cuda, target: int, source: int) -> float:
    """Return MB/s of the fastest of some copies to or from a device."""

    def once() -> float:
        begin = perf_counter()
        driver.copy(target, source, DEVICE_COPY_BYTES)
        driver.synchronize()
        return perf_counter() - begin

    return DEVICE_COPY_BYTES / min(once() for _ in range(DEVICE_COPIES)) / 1e6
