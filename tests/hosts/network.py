"""The network between virtual hosts: a switch, a card for each host, and what packets suffer.

Where the kernel has ``tc netem``, the switch is a bridge, cards are ends of veth pairs, and netem
delays and loses what a host sends. Kernels of small virtual machines lack it: then a process of
ours is the switch (`relay`) and cards are TAP devices. Without delay and loss there is a bridge.
"""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

RELAY = Path(__file__).parent / "relay.py"
CARD = "eth0"
SUBNET = "10.77.0."
RESENT_AFTER = "10ms"
"""TCP's shortest wait for an answer before it sends a lost packet again, 200 ms by default."""

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

BRIDGE = """
set -e
ip link add bridge type bridge
ip link set bridge up
echo ready
exec cat > /dev/null
"""

Keep = Callable[[Sequence[str]], int]
"""Starts a command that lives as long as the hosts, waits until it is ready; its process number."""


@dataclass(frozen=True)
class Link:
    """What happens to a packet that a host sends: seconds of delay, and a share that is lost.

    Between the two hosts of ``slow``, which count from 1, or between its only one, or three and
    more, and all others, it takes ``slow_delay`` more. ``rate`` limits what a card sends, and what
    it gets, in bits per second; ``slow_rates`` by `tc tbf` what some hosts do, by their numbers.
    """

    delay: float = 0.0
    loss: float = 0.0
    rate: float | None = None
    slow: tuple[int, ...] = ()
    slow_delay: float = 0.0
    slow_rates: tuple[tuple[int, float], ...] = ()


PERFECT = Link()


def parse_delay(text: str) -> float:
    """Seconds from tc's way to write them, as in ``1ms``. Raises `ArgumentTypeError`."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?)(us|ms|s)", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not a time: write one as in 250us, 1ms or 0.5s")
    return float(found[1]) * SECONDS[found[2]]


def parse_loss(text: str) -> float:
    """A share from tc's way to write it, as in ``0.1%``. Raises `ArgumentTypeError`."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?)%", text)
    if found is None or float(found[1]) > 100:
        raise ArgumentTypeError(f"{text!r} is not a part of all packets: write one as in 0.1%")
    return float(found[1]) / 100


def address(number: int) -> str:
    """The address of host ``number``, which counts from 1."""
    return f"{SUBNET}{number}"


def kernel_has_netem() -> bool:
    """Whether tc can delay and lose packets here; tried in a network that is thrown away."""
    netem = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    tried = subprocess.run(["unshare", "--net", *netem], capture_output=True, check=False)
    return tried.returncode == 0


def connect(hosts: Sequence[int], link: Link, keep: Keep) -> None:
    """Give each host a card on one network; a host is told by the number of a process in it."""
    plain = replace(link, slow_rates=())
    by_kernel = plain == PERFECT or (not link.slow and kernel_has_netem())
    if by_kernel:
        switch = keep(["unshare", "--net", "sh", "-c", BRIDGE])
    else:
        words = [str(len(hosts)), str(link.delay), str(link.loss), str(link.rate or 0)]
        words += [str(link.slow_delay), *map(str, link.slow)]
        switch = keep(["unshare", "--net", sys.executable, "-I", "-S", str(RELAY), *words])
    for number, host in enumerate(hosts, 1):
        port = f"port{number}"
        if by_kernel:
            in_network(switch, f"ip link add {port} type veth peer name {CARD} netns {host}")
            in_network(switch, f"ip link set {port} master bridge up")
        else:
            in_network(switch, f"ip link set {port} name {CARD} netns {host}")
        in_network(host, f"ip addr add {address(number)}/24 dev {CARD}")
        in_network(host, f"ip link set {CARD} up")
        in_network(host, f"ip route change {SUBNET}0/24 dev {CARD} rto_min {RESENT_AFTER}")
        rates = dict(link.slow_rates)
        if number in rates:
            limit = f"tbf rate {rates[number]:.0f}bit burst 32kb latency 100ms"
            in_network(host, f"tc qdisc add dev {CARD} root {limit}")
            if by_kernel:
                in_network(switch, f"tc qdisc add dev {port} root {limit}")
        elif by_kernel and plain != PERFECT:
            suffers = f"delay {link.delay * 1e6:.0f}us loss {link.loss:.4%}"
            limit = f" rate {link.rate:.0f}bit" if link.rate else ""
            in_network(host, f"tc qdisc add dev {CARD} root netem {suffers}{limit}")
            if link.rate:
                in_network(switch, f"tc qdisc add dev {port} root netem{limit}")


def in_network(process: int, command: str) -> None:
    """Run a command in the network that ``process`` is in."""
    enter = ["nsenter", f"--net=/proc/{process}/ns/net", "--"]
    subprocess.run([*enter, *command.split()], check=True, capture_output=True)
