"""Asking an MPI library whether it takes memory on a device: the answers that there are."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import mpi4py
import pytest

from omb_py.core.errors import UnsupportedError
from tests.helpers.refusals import refuses


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that asks, with MPI loaded but not started in this process."""
    monkeypatch.setattr(mpi4py.rc, "initialize", False)
    from omb_py.core.mpi import gpu_aware

    return gpu_aware


def gpu_query(answer: int, code: int = 0, number: int = 0) -> Callable[..., int]:
    """MPIX_GPU_query_support of MPICH and its relatives."""

    def query(kind: Any, result: Any) -> int:
        assert kind.value == number
        result._obj.value = answer
        return code

    return query


def communicator(kinds: str = "") -> SimpleNamespace:
    """A communicator that tells these memory kinds."""
    info = SimpleNamespace(Get={"mpi_memory_alloc_kinds": kinds}.get, Free=lambda: None)
    return SimpleNamespace(Get_info=lambda: info)


NOT_SAID = "it does not say that it does"


@pytest.mark.parametrize(
    ("kind", "functions", "says"),
    [
        ("cuda", {"MPIX_Query_cuda_support": lambda: 1}, "MPIX_Query_cuda_support says yes"),
        ("cuda", {"MPIX_Query_cuda_support": lambda: 0}, "MPIX_Query_cuda_support says no"),
        ("cuda", {"MPIX_GPU_query_support": gpu_query(1)}, "MPIX_GPU_query_support says yes"),
        ("cuda", {"MPIX_GPU_query_support": gpu_query(1, 5)}, "MPIX_GPU_query_support says no"),
        ("cuda", {}, NOT_SAID),
        (
            *("rocm", {"MPIX_GPU_query_support": gpu_query(1, number=2)}),
            "MPIX_GPU_query_support says yes",
        ),
        ("rocm", {"MPIX_Query_hip_support": lambda: 1}, "MPIX_Query_hip_support says yes"),
        ("rocm", {"MPIX_Query_rocm_support": lambda: 1}, "MPIX_Query_rocm_support says yes"),
        ("rocm", {"MPIX_Query_rocm_support": lambda: 0}, "MPIX_Query_rocm_support says no"),
        (
            *("level_zero", {"MPIX_GPU_query_support": gpu_query(1, number=1)}),
            "MPIX_GPU_query_support says yes",
        ),
        ("level_zero", {"MPIX_Query_ze_support": lambda: 1}, "MPIX_Query_ze_support says yes"),
        ("rocm", {"MPIX_Query_cuda_support": lambda: 1}, NOT_SAID),
        ("opencl", {"MPIX_GPU_query_support": gpu_query(1)}, NOT_SAID),
    ],
)
def test_query_functions_decide_awareness(
    asking: ModuleType, kind: str, functions: dict[str, Any], says: str
) -> None:
    answer = asking._ask(SimpleNamespace(**functions), communicator(), kind)
    assert answer == (says.endswith("yes"), says)


@pytest.mark.parametrize(
    ("kind", "kinds", "aware"),
    [
        ("rocm", "mpi,system,rocm", True),
        ("rocm", "mpi,system,rocm:device,rocm:managed", True),
        ("level_zero", "mpi,system,level_zero", True),
        ("rocm", "mpi,system,cuda", False),
        ("opencl", "mpi,system,level_zero", False),
    ],
)
def test_memory_kinds_of_other_devices(
    asking: ModuleType, kind: str, kinds: str, aware: bool
) -> None:
    assert asking._ask(SimpleNamespace(), communicator(kinds), kind)[0] == aware


@pytest.mark.parametrize(
    ("kind", "words"),
    [("rocm", "built with ROCm Open MPI UCX"), ("level_zero", "built with Level Zero")],
)
def test_refusal_names_what_the_library_needs(asking: ModuleType, kind: str, words: str) -> None:
    with refuses(UnsupportedError, words):
        asking.Awareness(False, "no", runtime=asking.RUNTIMES[kind]).check(("send",))


@pytest.mark.parametrize(
    ("version", "variable"),
    [
        (
            "MPI VERSION    : CRAY MPICH version 8.1.28 (ANL base 3.4a2)",
            "MPICH_GPU_SUPPORT_ENABLED",
        ),
        ("MVAPICH2 Version      : 2.3.7-GDR", "MV2_USE_CUDA"),
        ("MVAPICH-Plus Version  : 4.0", "MVP_USE_CUDA"),
        ("Intel(R) MPI Library 2021.19 for Linux* OS", "I_MPI_OFFLOAD"),
    ],
)
def test_vendor_variable_decides_awareness(
    asking: ModuleType, monkeypatch: pytest.MonkeyPatch, version: str, variable: str
) -> None:
    library = SimpleNamespace(Get_library_version=lambda: version, Is_finalized=lambda: False)
    monkeypatch.setattr(asking, "MPI", library)
    monkeypatch.delenv(variable, raising=False)
    assert asking._ask(SimpleNamespace(), communicator(), "cuda") == (False, f"{variable} is not 1")
    monkeypatch.setenv(variable, "1")
    assert asking._ask(SimpleNamespace(), communicator(), "cuda") == (True, f"{variable}=1")
    denying = SimpleNamespace(MPIX_Query_cuda_support=lambda: 0)
    assert asking._ask(denying, communicator(), "cuda") == (
        False,
        "MPIX_Query_cuda_support says no",
    )


@pytest.mark.parametrize(
    ("kinds", "ended", "expected"),
    [
        ("mpi,system,cuda", False, (True, "its memory kinds include cuda")),
        ("mpi,system,cuda:device", False, (True, "its memory kinds include cuda")),
        (
            "mpi,system",
            False,
            (False, "it has no function that tells, and of memory kinds only mpi, system"),
        ),
        ("", False, (False, NOT_SAID)),
        ("cuda", True, (False, NOT_SAID)),
    ],
)
def test_memory_kinds_decide_without_a_function(
    asking: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    kinds: str,
    ended: bool,
    expected: tuple[bool, str],
) -> None:
    """MPI that has ended is not asked: MPICH ends the process that does."""
    library = SimpleNamespace(
        Get_library_version=lambda: "MPICH Version: 5.0.2", Is_finalized=lambda: ended
    )
    monkeypatch.setattr(asking, "MPI", library)
    assert asking._ask(SimpleNamespace(), communicator(kinds), "cuda") == expected


def test_a_yes_holds_but_for_what_crashes(asking: ModuleType) -> None:
    aware = asking.Awareness(True, "it says yes", asking.UNSAFE["Open MPI"])
    aware.check(("send", "allreduce", "ibcast", "bcast_init"))
    for name in ("iallreduce", "ireduce", "allreduce_init", "accumulate"):
        with pytest.raises(UnsupportedError, match=f"MPI_{name.capitalize()} crashes there"):
            aware.check(("send", name))
    with refuses(UnsupportedError, "does not take memory on a device (it says no)"):
        asking.Awareness(False, "it says no").check(("send",))


def test_the_user_s_word_counts(asking: ModuleType) -> None:
    insisted = asking.awareness("yes", communicator(), "rocm")
    assert insisted == asking.Awareness(True, "--gpu-aware yes")
    assert not asking.awareness("no", communicator(), "cuda").aware
    insisted.check(("iallreduce",))
