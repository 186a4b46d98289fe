"""The library that intercepts calls: what it is made of, without making it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.core.mpi import abi
from omb_py.tracing.recorder import compilation, library
from omb_py.tracing.recorder.wrappers import HAND_WRITTEN, declarations, declared_wrappers, wrappers
from omb_py.tracing.records.routines import COLLECTIVES, Role, base, nonblocking, role
from tests.conftest import BIN
from tests.helpers.refusals import refuses

MPICC, MPICC_ABI = BIN / "mpicc", BIN / "mpicc_abi"
UNITS = sorted(compilation.HERE.glob("*.c"))
HEADER = """
# 12 "/usr/include/mpi.h" 3
typedef int (MPI_Copy_function)(MPI_Comm oldcomm, int keyval, void *flag);
int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag,
             MPI_Comm comm) __attribute__((pointer_with_type_tag(MPI,1,3)));
__attribute__((visibility("default"))) int MPI_Barrier(MPI_Comm comm);
int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status *);
int MPI_Alltoallw(const void *, const int[], const int [], const MPI_Datatype sendtypes[],
    void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[],
    MPI_Comm comm) ;
double MPI_Wtime(void);
int MPI_Finalize(void);
int PMPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
"""


def test_a_header_tells_its_functions() -> None:
    found = declarations(HEADER)
    assert set(found) == {"MPI_Send", "MPI_Barrier", "MPI_Waitall", "MPI_Alltoallw", "MPI_Finalize"}
    assert [p.named("x") for p in found["MPI_Send"].parameters][:2] == ["const void * x", "int x"]
    assert found["MPI_Waitall"].parameters[1].named("all") == "MPI_Request all[]"
    assert found["MPI_Waitall"].parameters[2].named("all") == "MPI_Status * all"
    alltoallw = [parameter.named("x") for parameter in found["MPI_Alltoallw"].parameters]
    assert alltoallw[:4] == [
        "const void * x",
        "const int x[]",
        "const int x[]",
        "const MPI_Datatype x[]",
    ]
    assert found["MPI_Finalize"].parameters == ()


@given(
    types=st.lists(
        st.sampled_from(["int", "const void *", "MPI_Comm", "MPI_Comm *", "const MPI_Count"])
    ),
    arrays=st.booleans(),
    named=st.booleans(),
)
def test_parameters_keep_types_by_other_names(types: list[str], arrays: bool, named: bool) -> None:
    behind = "[]" if arrays else ""
    texts = [f"{kind} {'name' if named else ''}{behind}" for kind in types]
    found = declarations(f"int MPI_Do({', '.join(texts) or 'void'});")["MPI_Do"]
    assert [p.named("other") for p in found.parameters] == [f"{k} other{behind}" for k in types]


@given(st.text())
def test_no_text_makes_the_reader_of_headers_fail(text: str) -> None:
    declarations(f"int MPI_{text}({text});\n{text}")


def test_a_function_with_other_parameters_is_left_alone() -> None:
    declared = declarations("int MPI_Barrier(MPI_Comm comm, int more);")
    assert list(declared_wrappers(declared)) == []


def test_all_that_moves_data_or_waits_is_recorded() -> None:
    recorded = {f"MPI_{wrapper.routine}" for wrapper in wrappers()}
    recorded |= {f"MPI_{name}" for name in HAND_WRITTEN}
    found = {base(name) for name in recorded}
    assert set(COLLECTIVES) <= found
    for name in COLLECTIVES:
        assert {f"MPI_{name.capitalize()}", f"MPI_I{name}"} <= recorded
        assert f"MPI_{name.capitalize()}_init" in recorded
    kinds = {role(name) for name in recorded}
    assert kinds == set(Role)
    begun = {wrapper.routine for wrapper in wrappers() if "request" in wrapper.parameters}
    for name in begun - {"Parrived", "Comm_idup", "Comm_idup_with_info"}:
        assert nonblocking(f"MPI_{name}") or name.startswith("File_i"), name
    assert not recorded & {"MPI_Comm_rank", "MPI_Type_size", "MPI_Get_count", "MPI_Wtime"}


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_each_unit_compiles_without_a_warning(unit: Path, tmp_path: Path) -> None:
    (tmp_path / "mpi.c").write_text("#include <mpi.h>\n")
    declared = subprocess.run(
        [MPICC, "-E", tmp_path / "mpi.c"], capture_output=True, text=True, check=True
    )
    for name, text in compilation.generated(declarations(declared.stdout)).items():
        (tmp_path / name).write_text(text)
    warnings = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-variable")
    command = [str(MPICC), "-fsyntax-only", *warnings, f"-I{tmp_path}", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("standard", "name"), [(False, "mpicc"), (True, "mpicc_abi")])
def test_without_a_compiler_for_mpi4py_s_abi_the_fix_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, standard: bool, name: str
) -> None:
    monkeypatch.setattr(abi, "is_standard", lambda: standard)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("mpi4py.get_config", dict)
    with pytest.raises(UsageError, match=f"{name}, which is neither beside "):
        library.cached_library()
    beside = tmp_path / name
    beside.write_text("#!/bin/sh\n")
    beside.chmod(0o755)
    assert library.compiler() == str(beside)


def test_a_compiler_that_is_changed_means_another_library(tmp_path: Path) -> None:
    mpicc = tmp_path / "bin" / "mpicc"
    mpicc.parent.mkdir()
    mpicc.write_text("#!/bin/sh\n")
    before = library.fingerprint(str(mpicc))
    assert library.fingerprint(str(mpicc)) == before
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "mpi.h").write_text("int MPI_Send(void);")
    assert library.fingerprint(str(mpicc)) != before


@pytest.mark.slow
@pytest.mark.skipif(not MPICC_ABI.exists(), reason="an MPI library without the standard's ABI")
def test_library_has_the_standard_abi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compilation, "FLAGS", ("-O0", *compilation.FLAGS[1:]))
    assert abi.is_linked(str(compilation.build(str(MPICC_ABI), tmp_path)))
    own = MPICC_ABI.with_name("mpicc")
    assert library.fingerprint(str(MPICC_ABI)) != library.fingerprint(str(own))


def test_unwritable_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OMB_PY_CACHE_DIR", str(tmp_path / "file" / "folder"))
    monkeypatch.setenv("PMI_RANK", "0")
    with refuses(UsageError, "OMB_PY_CACHE_DIR"):
        library.cached_library()


def test_library_of_another_user_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMB_PY_CACHE_DIR", str(tmp_path))
    path = tmp_path / f"recorder-{library.fingerprint(library.compiler())}.so"
    path.write_text("not compiled")
    path.chmod(0o666)
    compiled: list[str] = []

    def compile_library(mpicc: str, path: str) -> str:
        compiled.append(path)
        return path

    monkeypatch.setattr(compilation, "compile_library", compile_library)
    library.cached_library()
    assert compiled == [str(path)]
