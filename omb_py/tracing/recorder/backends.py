"""Where calls are seen: in Python, by observed classes, or in C, by a library before MPI's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import ModuleType
from typing import TYPE_CHECKING, Any

from omb_py.core.dataclass import dataclass
from omb_py.tracing.recorder import annotation
from omb_py.tracing.recorder.record_file import PYTHON, C, RecordFile

if TYPE_CHECKING:
    from omb_py.tracing.recorder.recorder import PythonRecorder


EVENTS = 100_000
"""Events of a timeline that each rank keeps, 64 bytes each."""


@dataclass(frozen=True)
class Settings:
    """What is recorded, and the folder that it goes to.

    ``level`` is ``python`` or ``c``; ``events`` is the room for a timeline, 0 for none; ``sites``
    records lines of the program; ``cpu_time`` the CPU time inside MPI.
    """

    folder: str
    level: str = "python"
    events: int = 0
    sites: bool = False
    cpu_time: bool = False


class Backend(ABC):
    """A way of seeing calls. `before` and `imported` come when the program imports mpi4py.MPI."""

    number: int
    recorder: PythonRecorder | None = None

    def before(self) -> None:  # noqa: B027 - one needs nothing
        """MPI's library is about to be loaded."""

    @abstractmethod
    def imported(self, module: ModuleType) -> None:
        """The module is there, MPI may have been started or not."""

    @abstractmethod
    def attach(self, file: RecordFile, world: Any) -> None:
        """Record into a file from now on; ``world`` is the communicator of all ranks."""

    @abstractmethod
    def inside_ns(self) -> int:
        """The CPU time of the thread within MPI, where it is measured."""

    @abstractmethod
    def pause(self) -> None:
        """Record nothing until `resume`."""

    @abstractmethod
    def resume(self) -> None:
        """Go on."""

    def finish(self) -> None:  # noqa: B027 - one needs nothing
        """The last call was made."""


class PythonBackend(Backend):
    """Observed classes of mpi4py's; nothing to compile."""

    number = PYTHON

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def imported(self, module: ModuleType) -> None:
        from omb_py.tracing.recorder.recorder import PythonRecorder
        from omb_py.tracing.recorder.substitution import Substitution

        settings = self._settings
        self.recorder = PythonRecorder(settings.sites, settings.events > 0)
        self._substitution = Substitution(module, self.recorder, settings.cpu_time)
        self._substitution.install()

    def attach(self, file: RecordFile, world: Any) -> None:
        assert self.recorder is not None
        self.recorder.attach(file, world)
        self._substitution.install_objects()
        annotation.attach(self.recorder)

    def inside_ns(self) -> int:
        return 0 if self.recorder is None else self.recorder.inside_ns

    def pause(self) -> None:
        if self.recorder is not None:
            self.recorder.pause()

    def resume(self) -> None:
        if self.recorder is not None:
            self.recorder.resume()


class CBackend(Backend):
    """A small library of ours, compiled once, between mpi4py (and all others) and MPI."""

    number = C

    def __init__(self, settings: Settings) -> None:
        """Compile the library; raises `UsageError` where that cannot be done."""
        from omb_py.tracing.recorder import interception

        self._settings = settings
        self._library = interception.library()

    def before(self) -> None:
        from omb_py.tracing.recorder import interception

        interception.load(self._library)

    def imported(self, module: ModuleType) -> None:
        from omb_py.tracing.recorder.interception import CRecorder

        self._calls = CRecorder()

    def attach(self, file: RecordFile, world: Any) -> None:
        self._calls.open(file, self._settings.sites, self._settings.cpu_time)
        annotation.attach(self._calls)

    def inside_ns(self) -> int:
        return self._calls.inside_ns()

    def pause(self) -> None:
        self._calls.pause()

    def resume(self) -> None:
        self._calls.resume()

    def finish(self) -> None:
        self._calls.close()
