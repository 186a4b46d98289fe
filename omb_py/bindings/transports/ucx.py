"""UCX through RAPIDS' ucxx: what its bindings share."""

from __future__ import annotations

import os

from omb_py.core.errors import MissingPackageError, UnsupportedError, installing
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
        f"ucxx cannot load its UCX beside that of the MPI library ({error}): import ucxx before "
        "mpi4py.MPI in programs, or start without MPI, by RANK, WORLD_SIZE, MASTER_ADDR and "
        "MASTER_PORT"
    ) from error

__all__ = ["Array", "choose_interface", "libucxx", "not_connected", "ucxx", "versions"]


def choose_interface(options: Options) -> None:
    """Let UCX use the network that ``--interface`` names; before its context is made."""
    if options.interface is not None:
        os.environ.setdefault("UCX_NET_DEVICES", options.interface)


def not_connected(error: Exception) -> UnsupportedError:
    """What to say where there is no endpoint from one rank to another."""
    return UnsupportedError(
        f"UCX cannot connect the ranks ({error}): choose other transports by UCX_TLS, or "
        "--interface"
    )


def versions() -> dict[str, str]:
    """What the metadata say of UCX."""
    return {
        "ucxx": ucxx.__version__,
        "ucx": ".".join(map(str, ucxx.get_ucx_version())),
        "ucx_tls": str(libucxx.get_current_options().get("TLS", "")),
    }
