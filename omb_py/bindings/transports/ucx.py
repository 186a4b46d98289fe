"""UCX through RAPIDS' ucxx: what its bindings share."""

from __future__ import annotations

import os

from omb_py.bindings.transports import KEY_BYTES, mark
from omb_py.core.errors import MissingPackageError, UnsupportedError, installing
from omb_py.core.job import Job
from omb_py.core.job.network import address_of, interface_of
from omb_py.core.options import Options

os.environ.setdefault("UCX_WARN_UNUSED_ENV_VARS", "n")  # UCX warns of variables that ucxx sets
try:
    import ucxx
    from ucxx._lib import libucxx
    from ucxx._lib.arr import Array
except ModuleNotFoundError as error:
    raise MissingPackageError("a binding of UCX", "ucxx", installing("ucxx")) from error
except OSError as error:
    raise UnsupportedError(
        f"ucxx cannot load its UCX next to that of the MPI library ({error}): import ucxx before "
        "mpi4py.MPI in programs, or start the ranks with torchrun"
    ) from error

__all__ = ["Array", "choose_interface", "libucxx", "not_connected", "tags_of", "ucxx", "versions"]

TAG_BYTES = 8


def choose_interface(job: Job, options: Options) -> None:
    """Set the network of UCX, before its context is made: ``--interface``, or only loopback if all
    ranks are on one host; collective."""
    if options.interface is not None:
        os.environ.setdefault("UCX_NET_DEVICES", options.interface)
    elif (own := address_of(job, None)) == "127.0.0.1":
        os.environ.setdefault("UCX_NET_DEVICES", interface_of(own) or "all")


def tags_of(job: Job) -> list[int]:
    """Return the tag of each rank's messages, unique to this job: UCX takes any sender's."""
    key = job.bcast(os.urandom(KEY_BYTES))
    marks = (mark(key, b"", rank, rank) for rank in range(job.ranks))
    return [int.from_bytes(one[:TAG_BYTES], "little") for one in marks]


def not_connected(error: Exception) -> UnsupportedError:
    """Return the error if there is no endpoint from one rank to another."""
    return UnsupportedError(
        f"UCX cannot connect the ranks ({error}): choose other transports by UCX_TLS, or "
        "--interface"
    )


def versions() -> dict[str, str]:
    """Return the versions and settings of UCX that the metadata of results contain."""
    return {
        "ucxx": ucxx.__version__,
        "ucx": ".".join(map(str, ucxx.get_ucx_version())),
        "ucx_tls": str(libucxx.get_current_options().get("TLS", "")),
        "ucx_net_devices": os.environ.get("UCX_NET_DEVICES", "all"),
    }
