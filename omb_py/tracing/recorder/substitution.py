"""Observed classes in the place of mpi4py's own.

mpi4py's classes cannot be changed, but they can be derived from, and the names in ``mpi4py.MPI``
can be given to the derived ones. An observed object is a copy of the handle, as mpi4py makes it
from any object; it is equal to the original, and an instance of both classes. ``isinstance`` of an
observed class asks for the original one, so that objects that escaped are still instances.

Observed communicators, windows, files and messages have ``_number``, that of their communicator's
name; requests have ``_operations``, what they stand for in a timeline, and persistent ones
``_starts``, what counts each time that they are started: routine, communicator, peer and bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import getattr_static
from time import thread_time_ns
from types import ModuleType
from typing import Any

from omb_py.tracing.recorder import methods
from omb_py.tracing.recorder.collective_calls import collective
from omb_py.tracing.recorder.fast_paths import fast_path
from omb_py.tracing.recorder.message_sizes import Pickled
from omb_py.tracing.recorder.method import Method, Observed
from omb_py.tracing.recorder.other_calls import (
    managing,
    matching_probe,
    on_file,
    on_message,
    on_window,
)
from omb_py.tracing.recorder.point_to_point import point_to_point
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.request_calls import (
    cancelling,
    completion_of_one,
    completion_of_several,
    freeing,
    starting,
    starting_several,
)
from omb_py.tracing.records.routines import Role, role

COMMUNICATORS = "Comm Intracomm Topocomm Cartcomm Graphcomm Distgraphcomm Intercomm".split()
REQUESTS = ("Request", "Prequest", "Grequest")
CLASSES = (*COMMUNICATORS, *REQUESTS, "Message", "Win", "File")
KEPT = "MESSAGE_NO_PROC"
"""A constant whose copies are used up when they are received."""

FROM_HANDLES = ("fromhandle", "fromint", "f2py")


class Substituted(type):
    """The type of observed classes, whose instances include those of the originals."""

    originals: dict[type, type] = {}  # noqa: RUF012 - of all classes together

    def __instancecheck__(cls, instance: object) -> bool:
        original = Substituted.originals.get(cls)
        if original is None:
            return type.__instancecheck__(cls, instance)
        return isinstance(instance, original)

    def __subclasscheck__(cls, subclass: type) -> bool:
        original = Substituted.originals.get(cls)
        if original is None:
            return type.__subclasscheck__(cls, subclass)
        return issubclass(subclass, original)


class Substitution:
    """Observed classes for a module ``mpi4py.MPI``, whose calls a recorder keeps."""

    def __init__(
        self,
        module: ModuleType,
        recorder: PythonRecorder,
        cpu_time: bool = False,
    ) -> None:
        """``cpu_time``: the CPU time of calls is added up, too."""
        self._recorder = recorder
        self._cpu_time = cpu_time
        self._pickled = Pickled()
        self._module = module
        self._observed: dict[type, type] = {}
        self._makers: dict[type, Callable[[Any], Any]] = {}
        self._constants: dict[int, str] = {}
        self._methods: dict[tuple[str, Any, str], Observed] = {}
        for name in CLASSES:
            original = getattr(module, name)
            observed = self._observed[original] = self._derived(name, original)
            self._makers[original] = partial(original.__new__, observed)

    def install(self) -> None:
        """Give the module's names to observed classes."""
        for original, observed in self._observed.items():
            setattr(self._module, original.__name__, observed)

    def install_objects(self) -> None:
        """Observe the module's own objects, such as COMM_WORLD; MPI has been started."""
        for name, value in list(vars(self._module).items()):
            if type(value) in self._observed and name != KEPT:
                observed = self.adopt(value)
                setattr(self._module, name, observed)
                self._constants[id(observed)] = name

    def adopt(self, value: Any) -> Any:
        """An observed object of one of mpi4py's, also in a tuple; anything else as it is."""
        make = self._makers.get(type(value))
        if make is not None:
            return make(value)
        if type(value) is tuple:
            return tuple(map(self.adopt, value))
        return value

    def _derived(self, name: str, original: type) -> type:
        attributes: dict[str, Any] = {
            "__module__": original.__module__,
            "__doc__": original.__doc__,
            "__new__": self._making(original),
            "__reduce__": self._reducing(original),
            "free": self._freeing(original),
        }
        for plain in FROM_HANDLES:
            attributes[plain] = classmethod(self._found(getattr(original, plain)))
        if name in REQUESTS:
            for plain in ("Cancel", "cancel"):
                found = getattr(original, plain)
                attributes[plain] = wraps(found)(cancelling(found))
        for row, parameters in _rows(name).items():
            plain = row.removesuffix("!")
            of_class = row.endswith("!")
            static = (getattr_static if of_class else getattr)(original, plain, None)
            if static is None:
                continue  # of a later mpi4py
            routine = methods.routine_of(name, row)
            makes = of_class and name not in REQUESTS
            key = (plain, static if makes or not of_class else name, routine)
            if key in self._methods:  # what a class has from another is the same for both
                attributes[plain] = self._methods[key]
                continue
            target = _bound_to(static) if makes else getattr(original, plain)
            if self._cpu_time:
                target = _with_cpu_time(target, self._recorder)
            method = Method(plain, routine, tuple(parameters.split()), target, self.adopt)
            made = wraps(getattr(original, plain))(self._observe(name, method, of_class))
            attributes[plain] = classmethod(made) if of_class else made
            self._methods[key] = attributes[plain]
        derived = Substituted(original.__name__, (original,), attributes)
        Substituted.originals[derived] = original
        return derived

    def _making(self, original: Any) -> Callable[..., Any]:
        """How to make an observed object, whose class mpi4py may choose by what it is made of."""
        adopt = self.adopt

        def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            return adopt(original.__new__(cls, *args, **kwargs))

        return __new__

    def _reducing(self, original: Any) -> Callable[[Any], Any]:
        """How to pickle an observed object: a constant by its name, which stands for it here."""
        constants, module = self._constants, self._module

        @wraps(original.__reduce__)
        def __reduce__(self_: Any) -> Any:  # noqa: N807
            if id(self_) in constants:
                return constants[id(self_)]
            for name in constants.values():
                if getattr(module, name) == self_:
                    return type(self_), (getattr(module, name),)
            return original.__reduce__(self_)

        return __reduce__

    def _freeing(self, original: Any) -> Callable[[Any], None]:
        """How to free an object if it may be: constants may not, which a copy does not know."""
        constants = self._constants

        @wraps(original.free)
        def free(self_: Any) -> None:
            if id(self_) not in constants:
                original.free(self_)

        return free

    def _found(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """How to make an object of a handle."""

        @wraps(original)
        def found(cls: type, *args: Any) -> Any:
            return self.adopt(original(*args))

        return found

    def _observe(self, kind: str, method: Method, of_class: bool) -> Observed:
        general = self._general(kind, method, of_class)
        others = kind in ("Win", "File", "Message")
        if others or self._recorder.sites:
            return general
        return fast_path(method, self._recorder, self._pickled, general)

    def _general(self, kind: str, method: Method, of_class: bool) -> Observed:
        recorder, what = self._recorder, role(method.routine)
        if kind == "Win":
            return on_window(method, recorder)
        if kind == "File":
            return on_file(method, recorder)
        if kind in REQUESTS:
            return _on_request(method, recorder, of_class)
        if what is Role.PROBE and (kind == "Message" or "mprobe" in method.name.lower()):
            return matching_probe(method, recorder, of_class)
        if kind == "Message":
            return on_message(method, recorder, self._pickled)
        if what is Role.COLLECTIVE:
            return collective(method, recorder, self._pickled)
        if what in (Role.SEND, Role.RECEIVE, Role.SENDRECV, Role.PROBE):
            return point_to_point(method, recorder, self._pickled)
        return managing(method, recorder)


def _on_request(method: Method, recorder: PythonRecorder, of_class: bool) -> Observed:
    if method.name in ("Start", "Startall"):
        return starting_several(method, recorder) if of_class else starting(method, recorder)
    if method.name == "Free":
        return freeing(method, recorder)
    if method.name == "Parrived":
        return managing(method, recorder)
    if of_class:
        return completion_of_several(method, recorder)
    return completion_of_one(method, recorder)


def _rows(name: str) -> dict[str, str]:
    """The methods that a class of this name may have."""
    if name in COMMUNICATORS:
        return methods.COMMUNICATOR | methods.OBJECTS | methods.MAKING
    if name in REQUESTS and name != "Prequest":
        return methods.REQUEST
    tables = {"Message": methods.MESSAGE, "Win": methods.WINDOW, "File": methods.FILE}
    return methods.REQUEST | methods.PERSISTENT if name == "Prequest" else tables[name]


def _bound_to(static: Any) -> Callable[..., Any]:
    """A class method as a function whose first argument is the class."""

    def call(cls: type, *args: Any, **kwargs: Any) -> Any:
        return static.__get__(None, cls)(*args, **kwargs)

    return call


def _with_cpu_time(original: Callable[..., Any], recorder: PythonRecorder) -> Callable[..., Any]:
    """A function that calls another, and adds its CPU time to the recorder's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        began = thread_time_ns()
        try:
            return original(*args, **kwargs)
        finally:
            recorder.inside_ns += thread_time_ns() - began

    return call
