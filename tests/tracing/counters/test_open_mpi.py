"""When Open MPI is told to count, and when that is left alone."""

from __future__ import annotations

import pytest

from omb_py.tracing.counters.collector import before_mpi

ONE_HOST = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
TWO_HOSTS = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
ENABLE = "OMPI_MCA_pml_monitoring_enable"


def after(environ: dict[str, str]) -> dict[str, str]:
    """The environment with what is set in it."""
    made = dict(environ)
    before_mpi(made)
    return made


@pytest.mark.parametrize(
    "environ",
    [
        {},
        ONE_HOST,
        {"SLURM_STEP_NUM_NODES": "1", "PMIX_RANK": "0"},
        TWO_HOSTS | {"OMPI_MCA_coll": "^han"},
        TWO_HOSTS | {"OMPI_MCA_coll": "tuned,libnbc,basic"},
        TWO_HOSTS | {"OMPI_MCA_coll_han_priority": "0"},
    ],
    ids=str,
)
def test_messages_are_counted(environ: dict[str, str]) -> None:
    assert after(environ) == environ | {ENABLE: "1"}


@pytest.mark.parametrize(
    "environ",
    [
        TWO_HOSTS,
        TWO_HOSTS | {"OMPI_MCA_coll": "^hcoll"},
        TWO_HOSTS | {"OMPI_MCA_coll": "han,tuned,libnbc,basic"},
        TWO_HOSTS | {"OMPI_MCA_coll_han_priority": "40"},
        {"SLURM_STEP_NUM_NODES": "2"},
        {"PMIX_RANK": "0"},
    ],
    ids=str,
)
def test_nothing_is_done_where_counting_would_end_in_a_fault(environ: dict[str, str]) -> None:
    assert after(environ) == environ


def test_what_a_user_chose_stays() -> None:
    assert after({ENABLE: "0"})[ENABLE] == "0"
    assert after({"OMPI_MCA_pml": "^cm"})["OMPI_MCA_pml"] == "^cm"
    assert after({"OMPI_MCA_pml": "ob1"})["OMPI_MCA_pml"] == "ob1,monitoring"
