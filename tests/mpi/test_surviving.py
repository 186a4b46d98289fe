"""Applications whose ranks are killed, and whose results are right all the same."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from omb_py.apps.runtime.faults import schedule
from tests.conftest import rows_of
from tests.mpi.fixtures import Outliving, assert_goes_well, sentences_of
from tests.mpi.vendor import on_open_mpi

SMALL = {
    "halo": "--rows 61 --columns 47 --steps 12 --checkpoint-every 3",
    "train": "--data generated --samples 60 --batch 12 --hidden 8 --epochs 2",
}
ALL_TRANSPORTS = {"OMPI_MCA_btl": "self,sm,tcp"}


@on_open_mpi
@pytest.mark.parametrize(
    ("name", "words", "after"),
    [
        ("halo", "--faults 3 --overlap --repeats 2", [3, 2, 1]),
        ("halo", "--faults 2 --recover respawn --repeats 1 --binding persistent", [4, 4]),
        ("train", "--faults 2 --repeats 2", [3, 2]),
        ("train", "--faults 1 --recover respawn --repeats 1 --negotiation cached", [4]),
    ],
)
def test_an_application_survives(
    outliving: Outliving, tmp_path: Path, name: str, words: str, after: list[int]
) -> None:
    options = f"{SMALL[name]} {words} --output rows.csv".split()
    job = outliving(4, name, *options, **ALL_TRANSPORTS)
    assert_goes_well(job)
    whole, *parts = rows_of(tmp_path / "rows.csv")
    assert (whole["ranks"], whole["check"], whole["repeats"]) == ("4", "Pass", "1")
    assert len([one for one in parts if one["part"] == "rank"]) == after[-1]
    found = {one["part"]: one for one in parts}
    for number, ranks in enumerate(after, start=1):
        assert int(float(found[f"Failure {number}: ranks after"]["value"])) == ranks
        before = float(found[f"Failure {number}: ranks before"]["value"])
        assert int(before) == [4, *after][number - 1]
        stages = ["detection", "shrink", "rebuild", "restore", "checkpoint"]
        stages += ["spawn", "merge", "reorder"] * ("respawn" in words)
        times = [float(found[f"Failure {number}: {stage}"]["time_s"]) for stage in stages]
        recovery = float(found[f"Failure {number}: time to recover"]["time_s"])
        assert 0 < sum(times) == pytest.approx(recovery)
        assert 0 < recovery < float(whole["time_s"])
        assert float(found[f"Failure {number}: lost work"]["time_s"]) > 0
    assert ("Without failures" in found) == ("--repeats 2" in words)


@on_open_mpi
def test_what_two_partners_had_is_lost(outliving: Outliving) -> None:
    """They fail in the first of few calls of the only step, so that both do before anybody knows.

    Where one of them still learns of the other's failure, nothing is lost.
    """
    at_once = (seed for seed in count() if all(one.call == 0 for one in schedule(seed, 2, 3, 1)))
    words = "--rows 61 --columns 47 --steps 1 --faults 2 --repeats 1 --warmup-repeats 0 --seed"
    job = outliving(3, "halo", *words.split(), f"{next(at_once)}")
    assert job.code == 1, job.out
    (sentence,) = sentences_of(job)
    assert "ranks 1 and 2 failed between two checkpoints" in sentence
    assert "Traceback" not in job.err


@on_open_mpi
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("--faults 1 --binding tcp", 5, "binding tcp does not say when a rank has failed"),
        ("--faults 2", 2, "of 2 ranks at most 1 can fail"),
        ("--faults 1 --recover respawn", 2, "OMPI_MCA_btl=self,sm excludes: add it"),
    ],
)
def test_what_cannot_survive_is_one_sentence(
    outliving: Outliving, words: str, code: int, says: str
) -> None:
    job = outliving(2, "halo", *words.split())
    assert job.code == code
    (sentence,) = job.sentences
    assert says in sentence


def test_a_job_that_ends_with_its_ranks_says_how_to_start_it(mpiexec: Outliving) -> None:
    job = mpiexec(2, "halo", "--faults", "1")
    assert job.code == 5
    (sentence,) = job.sentences
    assert "when a rank fails" in sentence
    assert "mpirun --with-ft ulfm" in sentence
