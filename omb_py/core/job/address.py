"""The choice of the address by which other ranks reach a rank."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

from omb_py.core.errors import UsageError
from omb_py.core.job import Job

GET_ADDRESS = 0x8915
"""Linux's SIOCGIFADDR: the IPv4 address of an interface, netdevice(7)."""

SOMEWHERE = ("192.0.2.1", 9)
"""An address for documentation (RFC 5737): the kernel looks up its route and sends no packet."""


def address_of(job: Job, interface: str | None) -> str:
    """Return this rank's address, as `own_address` chooses it; collective."""
    # not by on_host: this job of a binding has no end, which would free what on_host keeps
    elsewhere = job.text_of(host_identity(), 0) != host_identity()
    return own_address(job.total(int(elsewhere)) == 0, interface)


def host_identity() -> str:
    """Return a text that identifies this host, even if several hosts have one name."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            identity = file.read().strip()
    except OSError:
        identity = ""
    return f"{os.uname().nodename} {identity}"


def own_address(one_host: bool, interface: str | None) -> str:
    """Return this process's address, on ``interface`` if one is named.

    It is loopback if all ranks are on one host, otherwise the address by which the host reaches
    others. Raises `UsageError` if there is none.
    """
    if interface is not None:
        return _of_interface(interface)
    if one_host:
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with suppress(OSError):
            probe.connect(SOMEWHERE)
            return str(probe.getsockname()[0])
        try:
            return socket.gethostbyname(socket.gethostname())
        except OSError as error:
            raise UsageError(
                f"{socket.gethostname()} has no default route, and its name has no address "
                f"({error.strerror}): choose a network by --interface"
            ) from error


def interface_of(address: str) -> str | None:
    """Return the interface that has an IPv4 address."""
    for _, name in socket.if_nameindex():
        with suppress(UsageError):
            if _of_interface(name) == address:
                return name
    return None


def _of_interface(name: str) -> str:
    from fcntl import ioctl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            found = ioctl(probe, GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
        except OSError as error:
            names = ", ".join(known for _, known in socket.if_nameindex())
            raise UsageError(
                f"--interface: {name} has no IPv4 address here ({error.strerror}): choose from "
                f"{names}"
            ) from error
    return socket.inet_ntoa(found[20:24])
