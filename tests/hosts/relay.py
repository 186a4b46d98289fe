"""A switch in user space that delays and loses frames, for kernels without ``tc netem``.

Each host's network card is a TAP device made here; what a host sends waits for the delay and then
goes to the host with the destination's address, or to all. Between the hosts A and B, which count
from 1, it waits longer; with one host, or three and more, between these and all others. A card
sends, and gets, RATE bits per second, 0 for as many as there are.
Usage: relay.py HOSTS SECONDS LOST RATE [SECONDS A [B …]]
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
LONGEST_FRAME = 65600
MAX_WAITING = 10_000
"""Frames that may wait at once; as netem's queue, it drops what comes on top."""


def tap(name: str) -> int:
    """A new network device; what is read from the descriptor is what its host sends."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


def forward(
    devices: list[int],
    delay: float,
    lost: float,
    rate: float,
    slow: frozenset[int],
    slow_delay: float,
) -> None:
    """Carry frames between the devices until the input ends; ``lost`` is a share of all frames.

    Frames between the two ``slow`` devices take ``slow_delay`` more, or those between one, or three
    and more, and all others. One
    after the other, they leave their device, and then enter another, at ``rate`` bits per second,
    unless that is 0.
    """
    waiting: list[tuple[float, int, int, bytes]] = []
    device_of: dict[bytes, int] = {}
    sends_until: dict[int, float] = {}
    gets_until: dict[int, float] = {}
    arrived = 0
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([*devices, 0], [], [], timeout)
        for device in readable:
            if device == 0:
                return  # the input's end is ours
            frame = os.read(device, LONGEST_FRAME)
            device_of[frame[6:12]] = device
            if random.random() >= lost and len(waiting) < MAX_WAITING:
                arrived += 1  # frames of one moment stay in order
                receiver = device_of.get(frame[:6], 0)
                due = time.monotonic()
                if rate:
                    seconds = 8 * len(frame) / rate
                    sends_until[device] = max(due, sends_until.get(device, 0.0)) + seconds
                    # the first bits are on their way while the last ones leave
                    first = sends_until[device] - seconds
                    gets_until[receiver] = max(first, gets_until.get(receiver, 0.0)) + seconds
                    due = gets_until[receiver]
                ends = slow & {device, receiver}
                far = len(ends) == 2 if len(slow) == 2 else len(ends) == 1
                due += delay + (slow_delay if far else 0.0)
                heapq.heappush(waiting, (due, arrived, device, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, source, frame = heapq.heappop(waiting)
            target = device_of.get(frame[:6])
            for device in devices if target is None else [target]:
                if device != source:
                    _deliver(device, frame)


def _deliver(device: int, frame: bytes) -> None:
    try:
        os.write(device, frame)
    except OSError:
        return  # its host takes no more, or is not up yet: the frame is lost


def main(hosts: str, delay: str, lost: str, rate: str, more: str = "0", *ends: str) -> None:
    """Make the devices ``port1`` … and forward until the input ends."""
    devices = [tap(f"port{number}") for number in range(1, int(hosts) + 1)]
    print("ready", flush=True)
    slow = frozenset(devices[int(number) - 1] for number in ends)
    forward(devices, float(delay), float(lost), float(rate), slow, float(more))


if __name__ == "__main__":
    main(*sys.argv[1:])
