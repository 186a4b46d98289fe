"""Wrappers of MPI's functions in C, written for those functions that a library's header declares.

A wrapper records a call's arguments (``before``, functions of ``recorder_calls.c``), makes the
call, records its result (``after``, unless it failed), and keeps state that is needed even while
nothing is recorded (``always``). Functions with large counts are wrapped only if they are declared:
mpi4py calls them whenever a library defines them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from omb_py.tracing.recorder.wrapped_routines import (
    COLLECTIVES,
    COMMUNICATORS,
    COUNTED,
    FILES,
    MESSAGE,
    NONBLOCKING_FILES,
    ONE_SIDED,
    OTHERS,
    RECEIVES,
    SENDRECV,
    SENDS,
    WINDOWS,
    WITH_REQUESTS,
)

HAND_WRITTEN = (
    "Comm_free Comm_disconnect Win_free File_close Request_free Wait Test Waitall Testall Waitany "
    "Testany Waitsome Testsome Start Startall Pcontrol"
).split()
"""Recorded by wrappers that stand in ``recorder_wrappers.c``; all versions of MPI have them."""

PROBES = "probes(&call, comm, source);"


DECLARATION = re.compile(r"\bint\s+(MPI_\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)[^;{}]*;")
PARAMETER = re.compile(r"(.*?)(\w+)?\s*((?:\[[^\]]*\]\s*)*)", re.DOTALL)
ALONE = {"int", "char", "void", "double", "long", "short", "unsigned"}
"""Words that are types also where no name follows."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a declaration: the text before and after its name."""

    before: str
    behind: str = ""

    def named(self, name: str) -> str:
        """Return the parameter under a name."""
        return f"{self.before} {name}{self.behind}"


@dataclass(frozen=True)
class Declaration:
    """A function ``int name(parameters)``."""

    name: str
    parameters: tuple[Parameter, ...]


def declarations(preprocessed: str) -> dict[str, Declaration]:
    """Return MPI's functions that return an int, by name, from a C preprocessor's output."""
    lines = (line for line in preprocessed.splitlines() if not line.startswith("#"))
    found = {}
    for match in DECLARATION.finditer("\n".join(lines)):
        name, inside = match.groups()
        given = () if inside.strip() in ("", "void") else tuple(inside.split(","))
        found[name] = Declaration(name, tuple(map(_parameter, given)))
    return found


def _parameter(text: str) -> Parameter:
    match = PARAMETER.fullmatch(text.strip())
    assert match is not None
    before, name, behind = (part or "" for part in match.groups())
    if not before.strip() or name in ALONE or before.split()[-1:] == ["const"]:
        before, name = f"{before}{name}", ""
    return Parameter(" ".join(before.split()), behind.strip())


@dataclass(frozen=True)
class Wrapper:
    """A routine's parameters, and the code of its wrapper around the call."""

    routine: str
    parameters: tuple[str, ...]
    before: str = ""
    after: str = ""
    always: str = ""


def wrappers() -> Iterator[Wrapper]:
    """Yield all routines that are recorded by generated wrappers."""
    yield from _sends()
    yield from _receives()
    yield from _collectives()
    yield from _one_sided()
    yield from _files()
    yield from _communicators()
    for name, parameters in OTHERS.items():
        words = parameters.split()
        before = "on_communicator(&call, comm);" if "comm" in words else ""
        yield _made(name, parameters, PROBES if "source" in words else before)


def _made(routine: str, parameters: str, *snippets: str) -> Wrapper:
    return Wrapper(routine, tuple(parameters.split()), *snippets)


def _operation(
    routine: str, parameters: str, before: str, after: str, collective: bool = False
) -> Wrapper:
    """Return a routine of an operation that it prepares, begins or makes, by its parameters."""
    if routine.endswith("_init"):
        after += f"prepared(&call, *request, {str(collective).lower()});"
        return _made(routine, parameters, f"call.prepares = true;{before}", after)
    begun = "begun(&call, *request);" if "request" in parameters else ""
    return _made(routine, parameters, before, after + begun)


def _sends() -> Iterator[Wrapper]:
    for name, (parameters, nbytes) in SENDS.items():
        after = f"call.half.nbytes = dest == MPI_PROC_NULL ? 0 : {nbytes};"
        yield _operation(name, parameters, "sends(&call, comm, dest, tag);", after)


def _receives() -> Iterator[Wrapper]:
    receives = "receives(&call, comm, source, tag);"
    for name, (parameters, nbytes) in RECEIVES.items():
        if "request" in parameters:
            after = f"call.half.nbytes = source == MPI_PROC_NULL ? 0 : {nbytes};"
            yield _operation(name, parameters, receives, after)
        else:
            status = "need_status(&call, &call.half, &status, &own);"
            after = f"half_received(&call, &call.half, source, status, {nbytes});"
            yield _made(name, parameters, receives + status, after)
    both = "sends(&call, comm, dest, sendtag); receives_too(&call, source, recvtag);"
    status = "need_status(&call, &call.second, &status, &own);"
    for routine, parameters in SENDRECV.items():
        sent = "bytes_of(sendcount, sendtype)"
        got = "bytes_of(recvcount, recvtype)" if "recvcount" in parameters else sent
        after = f"call.half.nbytes = dest == MPI_PROC_NULL ? 0 : {sent};"
        received = f"half_received(&call, &call.second, source, status, {got});"
        later = f"call.second.nbytes = source == MPI_PROC_NULL ? 0 : {got};"
        blocking = f"{parameters} comm status"
        yield _made(routine.capitalize(), blocking, both + status, after + received)
        yield _operation(f"I{routine}", f"{parameters} comm request", both, after + later)
    matched = "receives_matched(&call, *message);"
    own = "if (status == MPI_STATUS_IGNORE) status = &own;"
    match = "match(&call, *message, status);"
    yield _made("Mprobe", "source tag comm message status", PROBES + own, match)
    probed = "source tag comm flag message status"
    yield _made("Improbe", probed, PROBES + own, f"if (*flag) {match}")
    received, posted = "count_received(&call.half, status);", f"call.half.nbytes = {COUNTED};"
    yield _made("Mrecv", f"{MESSAGE} message status", matched + own, received)
    yield _operation("Imrecv", f"{MESSAGE} message request", matched, posted)


def _collectives() -> Iterator[Wrapper]:
    for routine, (parameters, nbytes) in COLLECTIVES.items():
        root = "root" if "root" in parameters.split() else "NOBODY"
        around = f"collective(&call, comm, {root});", f"call.half.nbytes = {nbytes};"
        parameters = f"{parameters} comm".strip()
        name = routine.capitalize()
        yield _made(name, parameters, *around)
        yield _operation(f"I{routine}", f"{parameters} request", *around)
        yield _operation(f"{name}_init", f"{parameters} info request", *around, collective=True)


def _one_sided() -> Iterator[Wrapper]:
    for name, (parameters, nbytes) in ONE_SIDED.items():
        before = "on_window(&call, win, target);"
        after = f"call.half.nbytes = target == MPI_PROC_NULL ? 0 : {nbytes};"
        yield _made(name, f"{parameters} win", before, after)
        if name in WITH_REQUESTS:
            yield _operation(f"R{name.lower()}", f"{parameters} win request", before, after)
    for name, parameters in WINDOWS.items():
        words = parameters.split()
        if "comm" in words:
            always = "made_of(&windows, KEY_OF(*win), comm);"
            yield _made(name, parameters, "on_communicator(&call, comm);", "", always)
        else:
            target = "target" if "target" in words else "NOBODY"
            yield _made(name, parameters, f"on_window(&call, win, {target});")


def _files() -> Iterator[Wrapper]:
    always = "made_of(&files, KEY_OF(*file), comm);"
    opening = "comm filename amode info file"
    yield _made("File_open", opening, "on_communicator(&call, comm);", "", always)
    requested = f"call.half.nbytes = {COUNTED};"
    for name, parameters in FILES.items():
        words = parameters.split()
        before = "on_file(&call, file);" if "file" in words else ""
        after = requested if "count" in words else ""
        if "read" in name and {"count", "status"} <= set(words):  # less at the end of a file
            before += "if (status == MPI_STATUS_IGNORE) status = &own;"
            after = "call.half.nbytes = count ? bytes_received(status) : 0;"
        yield _made(name, parameters, before, after)
    for name, parameters in NONBLOCKING_FILES.items():
        yield _operation(name, parameters, "on_file(&call, file);", requested)


def _communicators() -> Iterator[Wrapper]:
    for name, parameters in COMMUNICATORS.items():
        words = parameters.split()
        before = "on_communicator(&call, comm);" if "comm" in words else ""
        if "request" in words:
            always = "coming_communicator(comm, made, *request);"
        else:
            always = "made_communicator(*made);"
        yield _made(name, parameters, before, "", always)


def declared_wrappers(
    declared: Mapping[str, Declaration],
) -> Iterator[tuple[Wrapper, Declaration]]:
    """Every wrapper with each function it is for that is declared as it has to be."""
    for wrapper in wrappers():
        for suffix in ("", "_c"):
            function = declared.get(f"MPI_{wrapper.routine}{suffix}")
            if function is not None and len(function.parameters) == len(wrapper.parameters):
                yield wrapper, function


def definition(wrapper: Wrapper, function: Declaration) -> str:
    """Return the wrapper's text in C."""
    named = zip(function.parameters, wrapper.parameters, strict=True)
    parameters = ", ".join(parameter.named(name) for parameter, name in named)
    arguments = ", ".join(wrapper.parameters)
    own = "MPI_Status own;" if "&own" in wrapper.before or "= &own" in wrapper.before else ""
    after = f"if (result == MPI_SUCCESS) {{ {wrapper.after} }}" if wrapper.after else ""
    always = f"if (result == MPI_SUCCESS) {{ {wrapper.always} }}" if wrapper.always else ""
    return f"""
int {function.name}({parameters})
{{
    struct call call; {own}
    bool recorded = call_begins(&call, ROUTINE_{wrapper.routine});
    if (recorded) {{ {wrapper.before} call_starts(&call); }}
    int result = P{function.name}({arguments});
    if (recorded) {{ call_returns(&call); {after} }}
    {always}
    if (recorded) call_ends(&call);
    return result;
}}
"""
