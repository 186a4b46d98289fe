"""Devices, streams and events, all of which are idle."""

from __future__ import annotations

import time
from typing import Any

from cupy.cuda import memory, nccl, runtime

__all__ = ["Device", "Event", "Stream", "get_elapsed_time", "memory", "nccl", "runtime"]


class UnownedMemory:
    def __init__(self, address: int, nbytes: int, owner: Any) -> None:
        self.address = address
        self.owner = owner


class MemoryPointer:
    def __init__(self, memory: UnownedMemory, offset: int) -> None:
        self.memory = memory
        self.ptr = memory.address + offset


class Device:
    def __init__(self, number: int) -> None:
        self.number = number

    def use(self) -> None:
        pass


class Stream:
    ptr = 4711

    def __init__(self, non_blocking: bool) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Event:
    def record(self, stream: Stream) -> None:
        self.time = time.perf_counter()


def get_elapsed_time(begun: Any, ended: Any) -> float:
    return float(1e3 * (ended.time - begun.time))


def is_available() -> bool:
    return True
