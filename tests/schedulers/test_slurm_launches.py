"""Ranks on two nodes, started by each launcher in jobs that `sbatch` and `qsub` submit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from omb_py.sweeps.launchers import detect
from tests.conftest import rows_of
from tests.schedulers.batch import (
    Slurm,
    end_at_walltime,
    output,
    state,
    submit,
    wait_for_end,
    wait_until,
)

DIRECTIVES = {
    "sbatch": "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node={}\n#SBATCH --time=5\n",
    "qsub": "#PBS -N launch\n#PBS -l nodes=2:ppn={}\n#PBS -l walltime=00:05:00\n",
}
MPICH = {"mpiexec": "mpiexec -n {0} -ppn {1}", "srun": "srun --mpi=pmi2 -n {0}"}
# Debian's srun and Open MPI have no way in common to tell ranks of each other.
OPEN_MPI = {"mpiexec": "mpiexec -n {0} --map-by ppr:{1}:node"}
LAUNCHERS = OPEN_MPI if detect() == "openmpi" else MPICH
# Each rank says where it is before it becomes the benchmark.
RANK = """\
#!/bin/bash
echo "$SLURMD_NODENAME" > "node-of-${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"
exec omb-py "$@"
"""
SIZES = ["4", "8", "16"]
SECONDS = 240.0


def job_script(folder: Path, text: str) -> str:
    """Write a script for a batch system and return its name."""
    (folder / "job.sh").write_text(f"#!/bin/bash\n{text}\n")
    return "job.sh"


@pytest.mark.long
@pytest.mark.product(strength=1)
@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("command", DIRECTIVES)
@pytest.mark.parametrize(("benchmark", "ranks"), [("latency", 2), ("allreduce", 4)])
def test_ranks_share_both_nodes_and_write_their_rows(
    slurm: Slurm, tmp_path: Path, command: str, launcher: str, benchmark: str, ranks: int
) -> None:
    (tmp_path / "rank.sh").write_text(RANK)
    (tmp_path / "rank.sh").chmod(0o755)
    run = f"{LAUNCHERS[launcher].format(ranks, ranks // 2)} ./rank.sh {benchmark}"
    text = f"{DIRECTIVES[command].format(ranks // 2)}{run} -m 4:16 -i 5 -x 1 --output rows.csv"

    job = submit(slurm, tmp_path, command, job_script(tmp_path, text))

    assert wait_for_end(slurm, job, SECONDS) == "COMPLETED", output(tmp_path, job)
    rows = rows_of(tmp_path / "rows.csv")
    assert [row["bytes"] for row in rows] == SIZES
    assert {(row["benchmark"], row["ranks"]) for row in rows} == {(benchmark, str(ranks))}
    nodes = Counter(file.read_text().strip() for file in tmp_path.glob("node-of-*"))
    assert nodes == {"n1": ranks // 2, "n2": ranks // 2}


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("command", DIRECTIVES)
def test_failed_job_is_known_as_failed(slurm: Slurm, tmp_path: Path, command: str) -> None:
    script = job_script(tmp_path, "mpiexec -n 2 omb-py latency --no-such-option")
    job = submit(slurm, tmp_path, command, script)

    assert wait_for_end(slurm, job, SECONDS) == "FAILED"
    assert "--no-such-option" in output(tmp_path, job)


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("command", DIRECTIVES)
def test_running_job_submits_its_own_script(slurm: Slurm, tmp_path: Path, command: str) -> None:
    again = f'export ROUND=$((ROUND + 1)); [ "$ROUND" -ge 3 ] || {command} "$0"'
    submit(slurm, tmp_path, command, job_script(tmp_path, f"echo . >> rounds; {again}"))

    def rounds() -> int:
        file = tmp_path / "rounds"
        return len(file.read_text().split()) if file.exists() else 0

    wait_until(lambda: rounds() == 3, SECONDS, lambda: slurm.run("squeue"))


@pytest.mark.usefixtures("long_time")
def test_job_at_its_walltime_gets_term_then_kill(slurm: Slurm, tmp_path: Path) -> None:
    obstinate = (
        "bash -c 'trap \"echo TERM >> rank-said\" TERM; touch up; while :; do sleep 0.2; done'"
    )
    text = (
        f"#SBATCH --nodes=2\n#SBATCH --time=5\ntrap 'echo TERM > script-said' TERM\n"
        f"{LAUNCHERS['mpiexec'].format(2, 1)} {obstinate} &\nwhile :; do wait; done"
    )
    job = submit(slurm, tmp_path, "sbatch", job_script(tmp_path, text))
    wait_until((tmp_path / "up").exists, SECONDS, lambda: state(slurm, job))

    end_at_walltime(slurm, job, seconds=1)

    assert wait_for_end(slurm, job, SECONDS) == "TIMEOUT"
    assert (tmp_path / "script-said").read_text() == "TERM\n"
    assert len((tmp_path / "rank-said").read_text().split()) >= 2
