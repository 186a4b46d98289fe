"""What this host can do at most: copies, caches, cache lines between cores, links.

Nothing here needs MPI. What the system does not say, or what no package is there for, is left out.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import fsum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UnsupportedError
from omb_py.measure.conditions import content
from omb_py.measure.host_load import core_mask, cores_in

if TYPE_CHECKING:
    from omb_py.buffers.device.driver import Driver

SYS = Path("/sys")

SMALLEST, LARGEST, STEP = 1 << 16, 1 << 28, 4
"""Sizes of copies in bytes: each so many times the one before. The call of NumPy takes a good part
of the time of shorter ones."""

COPY_SECONDS = 0.05
"""How long each size is copied."""

FEWEST_COPIES = 5

MEMORY_SHARE = 8
"""Copies take this part of the free memory at most."""

DEVICE_COPY_BYTES = 1 << 26
DEVICE_COPIES = 10

LINE_BYTES = 64
PAIRS = 28
TRIPS = 20_000
REPEATS = 5
"""Pairs of cores, evenly spread; round trips of a cache line, and how often the minimum counts."""

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
    """The cores that this process may use."""
    return sorted(cores_in(core_mask())) or list(range(os.cpu_count() or 1))


def copies() -> list[Copy]:
    """Rates of `memcpy`, as NumPy calls it, over sizes; memory was written before."""
    usable = cores()
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found = []
    size = SMALLEST
    while size <= LARGEST and 2 * size * len(usable) <= free // MEMORY_SHARE:
        (one,) = copy_rates(size, usable[:1])
        found.append(Copy(size, one, max(one, sum(copy_rates(size, usable)))))
        size *= STEP
    return found


def copy_rates(size: int, on: Sequence[int]) -> list[float]:
    """MB/s of a thread on each of some cores, all at once: NumPy copies without Python's lock.

    The minimum of the times of a single thread counts, the mean of several. What the call of a
    single byte takes is no copy's.
    """
    import numpy as np

    start = threading.Barrier(len(on))
    rates = [0.0] * len(on)

    def run(place: int) -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {on[place]})  # of this thread alone
        source, target = np.full(size, place, np.uint8), np.full(size, 255, np.uint8)
        start.wait()
        call = min(timed(target[:1], source[:1], 0.0))
        times = timed(target, source, COPY_SECONDS)
        took = min(times) if len(on) == 1 else fsum(times) / len(times)
        rates[place] = size / max(took - call, took / 2) / 1e6

    def timed(target: Any, source: Any, seconds: float) -> list[float]:
        found: list[float] = []
        now = perf_counter()
        end = now + seconds
        while now < end or len(found) < FEWEST_COPIES:
            before = now
            np.copyto(target, source)
            now = perf_counter()
            found.append(now - before)
        return found

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(on))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rates


def caches(root: Path = SYS) -> dict[str, int]:
    """Bytes of the caches of data that the first core has, by name, as in ``L1``."""
    found = {}
    for folder in sorted(root.glob("devices/system/cpu/cpu0/cache/index*")):
        kind, level, size = (content(folder / name) for name in ("type", "level", "size"))
        number = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind != "Instruction" and level and number:
            found[f"L{level}"] = int(number[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[number[2]]
    return found


def interfaces(root: Path = SYS) -> dict[str, float]:
    """MB/s of each network interface that is up and no virtual one, by the speed of its link."""
    found = {}
    for folder in sorted(root.glob("class/net/*")):
        virtual = "/virtual/" in str(folder.resolve())
        with suppress(ValueError):
            megabits = int(content(folder / "speed"))
            if megabits > 0 and not virtual and content(folder / "operstate") == "up":
                found[folder.name] = megabits / 8
    return found


def infiniband(root: Path = SYS) -> dict[str, float]:
    """MB/s of each active InfiniBand port, by name, as in ``mlx5_0:1``."""
    found = {}
    for folder in sorted(root.glob("class/infiniband/*/ports/*")):
        rate = re.match(r"([\d.]+) Gb/sec", content(folder / "rate"))
        if rate and "ACTIVE" in content(folder / "state"):
            found[f"{folder.parent.parent.name}:{folder.name}"] = float(rate[1]) * GIGABIT
    return found


def gpus() -> dict[str, dict[str, float]]:
    """MB/s of PCIe and NVLink of each GPU in one direction, by number and name; from NVML."""
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
    """`gpus`, from a library that was initialized."""
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
    """MB/s of copies between page-locked host memory and each visible GPU, and within it.

    By number and name; none without a driver. A copy within a GPU counts each byte once.
    """
    from omb_py.buffers.device.driver import Driver

    try:
        driver = Driver.load()
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


def device_rate(driver: Driver, target: int, source: int) -> float:
    """MB/s of the fastest of some copies to or from a device."""

    def once() -> float:
        begin = perf_counter()
        driver.copy(target, source, DEVICE_COPY_BYTES)
        driver.synchronize()
        return perf_counter() - begin

    return DEVICE_COPY_BYTES / min(once() for _ in range(DEVICE_COPIES)) / 1e6


def cache_lines() -> list[float]:
    """Nanoseconds that a written cache line takes from one core to another, of pairs of cores.

    Half the round trip of a word that two threads wait for by turns; none without Numba or with
    one core.
    """
    usable = cores() if hasattr(os, "sched_setaffinity") else []
    pairs = [(a, b) for index, a in enumerate(usable) for b in usable[index + 1 :]]
    if not pairs:
        return []
    bounce = bouncing()
    if bounce is None:
        return []
    step = max(1, len(pairs) // PAIRS)
    return [bounced(bounce, *pair) for pair in pairs[::step][:PAIRS]]


def bouncing() -> Callable[[int, int, int], None] | None:
    """Wait for one's turn at a word of memory and hand it on, so often; None without Numba."""
    try:
        from llvmlite import ir
        from numba import njit, types
        from numba.extending import intrinsic
    except ImportError:
        return None
    make_intrinsic: Any = intrinsic
    compiled: Any = njit(nogil=True)
    word = ir.IntType(64).as_pointer()

    def typed_load(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load_atomic(builder.inttoptr(arguments[0], word), "acquire", 8)

        return types.int64(types.int64), generate

    def typed_store(typing_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = builder.inttoptr(arguments[0], word)
            builder.store_atomic(arguments[1], place, "release", 8)
            return arguments[1]

        return types.int64(types.int64, types.int64), generate

    load, store = make_intrinsic(typed_load), make_intrinsic(typed_store)

    def bounce(address: int, turn: int, trips: int) -> None:
        for trip in range(trips):
            while load(address) != 2 * trip + turn:
                pass
            store(address, 2 * trip + turn + 1)

    return compiled(bounce)  # type: ignore[no-any-return]


def bounced(bounce: Callable[[int, int, int], None], first: int, second: int) -> float:
    """Nanoseconds of one direction between two cores, the minimum of `REPEATS`."""
    import numpy as np

    line = np.zeros(2 * LINE_BYTES // 8, np.int64)  # a line of its own within
    place = -(-line.ctypes.data // LINE_BYTES) * LINE_BYTES - line.ctypes.data
    word = line[place // 8 :]
    times: list[float] = []

    def run(core: int, turn: int) -> None:
        os.sched_setaffinity(0, {core})  # of this thread alone
        bounce(word.ctypes.data, turn, 1)
        begin = perf_counter()
        bounce(word.ctypes.data + 8, turn, TRIPS)
        times.append((perf_counter() - begin) / TRIPS / 2)

    for _ in range(REPEATS):
        line[:] = 0
        threads = [threading.Thread(target=run, args=end) for end in ((first, 0), (second, 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return min(times) * 1e9
