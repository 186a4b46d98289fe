"""A rank that is observed, from the import of mpi4py.MPI to the end of MPI."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
import zlib
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from omb_py.core.errors import OmbError, sentence
from omb_py.core.mpi import granted_level, launcher
from omb_py.tracing.recorder import annotation
from omb_py.tracing.recorder.interception import Recorder
from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.records.layout import NS_PER_SECOND, path_in

if TYPE_CHECKING:
    from omb_py.tracing.counters import TrafficCollector


NAME = "mpi4py.MPI"

SECONDS_BETWEEN_LOOKS, STUCK_SECONDS = 0.01, 10.0
"""Seconds between two looks for the other ranks at the end, and those for which all of them stay
in one call of MPI if they wait for a rank that has failed."""


def surrounded(
    call: Callable[..., Any],
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
) -> Callable[..., Any]:
    """Return a function that makes a call between two others."""

    @wraps(call)
    def made(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before()
        result = call(*args, **kwargs)
        if after is not None:
            after()
        return result

    return made


class ImportHook:
    """A hook that calls back around a program's import of ``mpi4py.MPI``, and not before.

    A program's settings until then (``mpi4py.rc`` and environment variables) must take effect, so
    the module cannot be imported earlier. It is found as without the hook.
    """

    def __init__(self, before: Callable[[], None], after: Callable[[ModuleType], None]) -> None:
        self._before = before
        self._after = after
        self._loader: Any = None  # a type of importlib.abc, whose import takes 5 ms

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's own specification, loaded by this object."""
        if name != NAME:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None and spec.loader is not None:
                    self._loader = spec.loader
                    spec.loader = self  # type: ignore[assignment]
                    return spec
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Load the library, after a call of ``before``."""
        assert self._loader is not None
        self._before()
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then call ``after``."""
        assert self._loader is not None
        self._loader.exec_module(module)
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        sys.meta_path.remove(self)
        self._after(module)


class Session:
    """Observes this process: `prepare` before the program runs, `end` after it.

    Recording begins when MPI has been started, and ends just before it is finalized. ``traffic``
    counts the bytes on the rank's network meanwhile.
    """

    def __init__(
        self,
        folder: str,
        about: dict[str, Any],
        events: int = 0,
        sites: bool = False,
        traffic: TrafficCollector | None = None,
    ) -> None:
        """Raise `UsageError` if calls cannot be intercepted.

        ``folder`` is that of the record, ``events`` the room for a timeline, 0 for none; ``sites``
        records lines of the program.
        """
        self.folder = folder
        self._about = about
        self._events = events
        self._traffic = traffic
        self._recorder = Recorder(sites)
        self._world: Any = None
        self._file: RecordFile | None = None
        self.rank = 0
        self.ranks = 1
        self.ended = False
        self.aborting = False
        """True if mpi4py will abort the job at exit, as ``python -m mpi4py`` does."""

    @property
    def begun(self) -> bool:
        """Return whether MPI was started."""
        return self._file is not None

    @property
    def replaced(self) -> bool:
        """Return whether another job has replaced this rank's record."""
        return self._file is not None and not self._file.in_place()

    @property
    def finalized(self) -> bool:
        """Return whether MPI was started and finalized."""
        return self.begun and bool(self._module.Is_finalized())

    def abort(self, code: int) -> None:
        """End the whole job, or only this process if MPI cannot."""
        if self.begun and not self.finalized:
            self._world.Abort(code)
        os._exit(code)

    def prepare(self, finalizing: Callable[[], object]) -> None:
        """Wait for the program to import mpi4py.MPI; ``finalizing`` comes before its Finalize."""
        import mpi4py  # noqa: F401 - its own finder, which must come after ours

        hook = ImportHook(self._recorder.load, partial(self._imported, finalizing))
        sys.meta_path.insert(0, hook)

    def _imported(self, finalizing: Callable[[], object], module: Any) -> None:
        self._module = module
        self._world = module.COMM_WORLD
        for name in ("Init", "Init_thread"):
            setattr(module, name, surrounded(getattr(module, name), after=self._begin))
        module.Finalize = surrounded(module.Finalize, finalizing)
        aborts = partial(setattr, self, "aborting", True)
        module._set_abort_status = surrounded(module._set_abort_status, aborts)
        os.register_at_fork(after_in_child=self._forked)
        if module.Is_initialized():
            self._begin()

    def _begin(self) -> None:
        self.rank, self.ranks = self._world.Get_rank(), self._world.Get_size()
        try:
            self._create()
            self._align()
            self._open()
        except (OmbError, OSError) as error:
            self._fail(error)

    def _create(self) -> None:
        """Create the record: that of rank 0, the first, keeps other jobs out of the folder."""
        self._apart = self._world.Dup()
        if self.rank > 0:
            self._apart.Barrier()
        path, about = path_in(self.folder, self.rank), self._about | self._library()
        self._file = RecordFile(path, self.rank, self.ranks, self._events, about)
        if self.rank == 0:
            self._apart.Barrier()

    def _align(self) -> None:
        from omb_py.core.mpi.clock import SharedClock

        self._clock = SharedClock(self._apart)
        self._compare_clocks("first")
        if self._traffic is not None:
            self._traffic.begin(self._world, self.folder)

    def _open(self) -> None:
        """Let the library record into the file, and publish from now on."""
        assert self._file is not None
        self._publisher = Publisher(self._file)
        self._file.set("began", time.monotonic_ns())
        self._file.set("began_epoch", time.time_ns())
        self._recorder.open(self._file)
        annotation.attach(self._recorder)
        # threading does not list it: a program may join all the threads that it lists
        start_new_thread(self._publisher.run, ())

    def _library(self) -> dict[str, Any]:
        import mpi4py

        version = " ".join(self._module.Get_library_version().replace("\0", " ").split())
        return {
            "mpi": version[:200],
            "mpi4py": mpi4py.__version__,
            "standard": ".".join(map(str, self._module.Get_version())),
            "thread_level": granted_level(),
        }

    def _fail(self, error: BaseException) -> None:
        self.ended = True
        launcher.stagger(self.rank)
        print(f"omb-py: rank {self.rank}: {sentence(error)}", file=sys.stderr, flush=True)
        time.sleep(launcher.SECONDS_TO_BE_HEARD)
        self._world.Abort(1)
        os._exit(1)

    def _compare_clocks(self, which: str) -> None:
        from omb_py.core.mpi.clock import clock_key

        assert self._file is not None
        offset = self._clock.align()
        file = self._file
        file.set(f"{which}_at", round(offset.reference * NS_PER_SECOND))
        file.set(f"{which}_offset", offset.seconds)
        file.set(f"{which}_error", offset.error)
        file.set("clock", zlib.crc32(f"{os.uname().nodename} {clock_key()}".encode()) + 1)

    def end(self, together: bool = True, failed: bool = False) -> bool:
        """Record the end; return whether all ranks came to it.

        ``together``: they do, as far as known, so that clocks can be compared; ``failed``: an
        exception ended this rank.
        """
        if self._file is None or self.ended:
            return False
        self.ended = True
        if not self.finalized:
            self._module.Pcontrol(1)  # a stop ends here
        ended = time.monotonic_ns()
        self._recorder.pause()
        annotation.detach()
        self._publisher.stop()
        together = together and not self.aborting and (self.finalized or self._meet(failed))
        comparing = together and not self.finalized
        if self._traffic is not None:
            self._traffic.end(comparing)
        if comparing:
            self._compare_clocks("last")
            self._clock.free()
            self._apart.Free()
        if together:
            self._file.set("ended", ended)
        self._recorder.close()
        return together

    def _meet(self, failed: bool) -> bool:
        """Wait for all ranks, as MPI_Finalize would; return False if they wait for this one.

        They do if it has ``failed``, and all of them stay in the same calls of MPI.
        """
        file = self._file
        assert file is not None
        self._recorder.enter("MPI_Finalize")
        arrived, due, before = self._apart.Ibarrier(), 0.0, None
        while not arrived.Test():
            file.set("updated", time.monotonic_ns())
            if failed and time.monotonic() > due:
                from omb_py.tracing.records.run import read_records

                calls = [one.stays() for one in read_records(self.folder, events=False)[0]]
                if calls == before and all(calls):
                    return False
                due, before = time.monotonic() + STUCK_SECONDS, calls
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return True

    def _forked(self) -> None:
        """A child of this process records nothing: the file is its parent's."""
        self.ended = True
        annotation.detach()
        self._recorder.pause()


PUBLISHING_SECONDS = 0.25
"""Seconds between two publications."""

PUBLISHING_SHARE = 0.01
"""Maximum share of the time that publishing may take."""

KIBIBYTE = 1024


class Publisher:
    """A thread that writes the system's values of this process into its record now and then.

    Other programs (`omb-py watch`) read them, also after the rank was killed.
    """

    def __init__(self, file: RecordFile) -> None:
        self._file = file
        self._first = self._usage()
        self._stopped = threading.Event()
        self._done = threading.Event()

    def stop(self) -> None:
        """Publish a last time, and end."""
        self._stopped.set()
        self._done.wait()
        self.publish()

    def run(self) -> None:
        """Publish now and then until `stop`."""
        pause = PUBLISHING_SECONDS
        while not self._stopped.wait(pause):
            began = time.thread_time()
            self.publish()
            pause = max(PUBLISHING_SECONDS, (time.thread_time() - began) / PUBLISHING_SHARE)
        self._done.set()

    def publish(self) -> None:
        """Write everything now."""
        file, first, usage = self._file, self._first, self._usage()
        for name in ("user_ns", "system_ns", "switches"):
            file.set(name, usage[name] - first[name])
        file.set("memory_bytes", usage["memory_bytes"])
        file.set("updated", time.monotonic_ns())

    def _usage(self) -> dict[str, int]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "user_ns": round(used.ru_utime * NS_PER_SECOND),
            "system_ns": round(used.ru_stime * NS_PER_SECOND),
            "memory_bytes": used.ru_maxrss * KIBIBYTE,
            "switches": used.ru_nivcsw,
        }
