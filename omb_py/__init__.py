"""omb-py: what communication costs from Python, on this machine, with these arrays."""

from omb_py.core import VERSION

__version__ = VERSION

API = {
    "OmbError": "omb_py.core.errors",
    "check": "omb_py.analysis.references_check",
    "compare": "omb_py.analysis.compare.side_by_side",
    "figures": "omb_py.analysis.charts.figures",
    "gate": "omb_py.analysis.gate.verdicts",
    "guidelines": "omb_py.analysis.guidelines.check",
    "history": "omb_py.analysis.history",
    "load": "omb_py.api",
    "model": "omb_py.analysis.model.parameters",
    "phase": "omb_py.tracing.recorder.annotation",
    "report": "omb_py.analysis.report.page",
    "run": "omb_py.api",
}
"""What can be had here, and the module that is imported for it, not before: every rank of a program
may name a phase, and needs nothing else of `omb_py.api`."""

TYPE_CHECKING = False  # typing's own would be one more module for each rank to load
if TYPE_CHECKING:
    from omb_py.analysis.charts.figures import figures as figures
    from omb_py.analysis.compare.side_by_side import compare as compare
    from omb_py.analysis.gate.verdicts import gate as gate
    from omb_py.analysis.guidelines.check import guidelines as guidelines
    from omb_py.analysis.history import history as history
    from omb_py.analysis.model.parameters import model as model
    from omb_py.analysis.references_check import check as check
    from omb_py.analysis.report.page import report as report
    from omb_py.api import OmbError as OmbError
    from omb_py.api import load as load
    from omb_py.api import phase as phase
    from omb_py.api import run as run


def __getattr__(name: str) -> object:
    if name not in API:
        raise AttributeError(f"module 'omb_py' has no attribute {name!r}")
    from importlib import import_module

    if API[name].startswith("omb_py.analysis"):
        from omb_py.core.errors import needing

        with needing("analysis"):
            import_module(API[name])
    found: object = getattr(import_module(API[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *API})
