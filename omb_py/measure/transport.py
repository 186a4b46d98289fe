"""The transport of a run's messages: the library's choice, and what its ranks opened for it.

Read from the MPI library that mpi4py loaded, and from Linux's files of each rank after its last
message (proc(5), Documentation/ABI/stable/sysfs-class-infiniband). Facts that these lack are left
out.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable

from omb_py.core.job import Job
from omb_py.measure.conditions import NETWORKS, content, names_in
from omb_py.results.metadata import NOT_OPENED, TCP

METADATA = "transport"
"""The key of the transport in metadata."""

FABRICS = re.compile(r"/dev/(?:infiniband/uverbs\d+|cxi\d+|hfi1_\d+|xpmem|knem)")
"""Devices by which messages leave a process: those of `NETWORKS`, and memory of others."""

WITHIN_HOST = ("xpmem", "knem")
"""Devices by which messages stay on a host."""

COMPONENT_BYTES = 148
TYPE_AT, NAME_AT = 40, 84
"""Offsets of two texts in Open MPI's `mca_base_component_t` (opal/mca/mca.h of 4.0 to 5.0)."""


def of_library() -> str:
    """Return the MPI library's word for its transport: Open MPI's PML, MPICH's device."""
    from mpi4py import MPI

    version = MPI.Get_library_version()
    if MPI.get_vendor()[0] == "Open MPI":
        return pml(ctypes.CDLL(MPI.__file__))
    device = re.search(r"MPICH Device:\s*(.+)", version)
    if device is None:
        return ""
    chosen = os.environ.get("MPIR_CVAR_CH4_NETMOD")
    name, _, modules = device[1].strip().partition(":")
    return f"device {name}:{chosen or modules.split()[0]}" if modules else f"device {name}"


def pml(library: ctypes.CDLL) -> str:
    """Return the selected point-to-point layer of Open MPI; empty if the library hides it."""
    try:
        component = (ctypes.c_char * COMPONENT_BYTES).in_dll(
            library, "mca_pml_base_selected_component"
        )
    except ValueError:
        return ""
    kind, name = (component.raw[at:].partition(b"\0")[0] for at in (TYPE_AT, NAME_AT))
    return f"pml {name.decode(errors='replace')}" if kind == b"pml" else ""


def opened_by_process(root: str = "") -> list[str]:
    """Return the network devices that this process has open, and whether it has TCP to others.

    ``root`` is before the names of the system's folders.
    """
    folder = f"{root}/proc/self/fd"
    found, sockets = set(), []
    for name in names_in(folder):
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:  # the descriptor of this listing is closed
            continue
        if FABRICS.fullmatch(target):
            found.add(device_name(target, root))
        elif target.startswith("socket:"):
            sockets.append(int(name))
    return sorted(found) + ([TCP] if any(map(leads_elsewhere, sockets)) else [])


def device_name(path: str, root: str) -> str:
    """Return a device's usual name: ``mlx5_0`` for ``/dev/infiniband/uverbs0``."""
    name = path.rpartition("/")[2]
    return content(f"{root}/sys/class/infiniband_verbs/{name}/ibdev") or name


def leads_elsewhere(descriptor: int) -> bool:
    """Return whether a socket is a TCP connection whose ends have different addresses."""
    # /proc/net/tcp has all sockets of the host, and takes milliseconds to read
    import socket

    try:
        with socket.socket(fileno=os.dup(descriptor)) as one:
            if one.family not in (socket.AF_INET, socket.AF_INET6):
                return False
            ends = one.getsockname()[0], one.getpeername()[0]
            return one.type == socket.SOCK_STREAM and ends[0] != ends[1]
    except OSError:  # it is not connected
        return False


def network_devices(root: str = "") -> list[str]:
    """Return the devices of this host that are faster than its sockets, and have a link."""
    found = set()
    for kind in (*NETWORKS, "cxi_user"):
        folder = f"{root}/sys/class/{kind}"
        for device in names_in(folder):
            ports = f"{folder}/{device}/ports"
            states = [content(f"{ports}/{port}/state") for port in names_in(ports)]
            if not any(states) or any("ACTIVE" in state for state in states):
                found.add(device)
    return sorted(found)


def used(job: Job, asked: bool) -> tuple[dict[str, str], str | None]:
    """Return the transport of a job's messages as metadata, and a sentence if it surprises.

    Both are empty on ranks other than 0, and if no host has a network device, unless it is
    ``asked`` for on rank 0. Collective, after the last message.
    """
    devices = network_devices()
    if job.total(int(bool(devices) or (asked and job.rank == 0))) == 0:
        return {}, None
    library = of_library() if job.rank == 0 and "mpi_library" in job.describe() else ""
    told = job.gather("\n".join([library, ",".join(devices), *opened_by_process()]).encode())
    return judged(text.decode() for text in told) if job.rank == 0 else ({}, None)


def judged(told: Iterable[str]) -> tuple[dict[str, str], str | None]:
    """Return metadata and a sentence from what each rank told: library, devices, what it opened."""
    ranks = [text.split("\n") for text in told]
    opened = sorted({one for _, _, *own in ranks for one in own})
    devices = sorted({name for _, idle, *_ in ranks for name in idle.split(",") if name})
    by_sockets = TCP in opened and not {*opened} - {TCP, *WITHIN_HOST}
    words = [ranks[0][0], *opened]
    if not (by_sockets and devices):
        return {METADATA: ", ".join(filter(None, words))}, None
    return {METADATA: ", ".join(filter(None, [*words, NOT_OPENED + " ".join(devices)]))}, (
        f"messages between hosts went over TCP, and no rank opened {', '.join(devices)}: choose "
        "the transport of that device, as by UCX_TLS, FI_PROVIDER or OMPI_MCA_pml"
    )
