"""omb-py: what communication costs from Python, on this machine, with these arrays."""

from omb_py.core import VERSION

__version__ = VERSION

API = {
    "OmbError": "omb_py.core.errors",
    "compare": "omb_py.api",
    "figures": "omb_py.api",
    "guidelines": "omb_py.api",
    "load": "omb_py.api",
    "model": "omb_py.api",
    "phase": "omb_py.tracing.recorder.annotation",
    "run": "omb_py.api",
}
"""What can be had here, and the module that is imported for it, not before: every rank of a program
may name a phase, and needs nothing else of `omb_py.api`."""

TYPE_CHECKING = False  # typing's own would be one more module for each rank to load
if TYPE_CHECKING:
    from omb_py.api import OmbError as OmbError
    from omb_py.api import compare as compare
    from omb_py.api import figures as figures
    from omb_py.api import guidelines as guidelines
    from omb_py.api import load as load
    from omb_py.api import model as model
    from omb_py.api import phase as phase
    from omb_py.api import run as run


def __getattr__(name: str) -> object:
    if name not in API:
        raise AttributeError(f"module 'omb_py' has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(API[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *API})
