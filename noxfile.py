"""Unit tests on each Python and MPI library: ``nox -s tests --no-error-on-missing-interpreters``.

Words after ``--`` go to pytest, as in ``nox -s "tests-3.12(mpi='openmpi')" -- tests/mpi``.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"

PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
QUICK = [
    "-m",
    "smoke or not (ranks or aware or hosts or scheduler or browser or long or exhaustive)",
]
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


@nox.session(python=PYTHONS)
@nox.parametrize("mpi", ["mpich", "openmpi"])
def tests(session: nox.Session, mpi: str) -> None:
    """What ``make check`` tests."""
    session.install("-c", "constraints.txt", "-e", f".[test,{mpi}]")
    words = session.posargs or QUICK
    session.run(
        *("python", "-m", "pytest", "-n", "auto", "--maxprocesses", "8", "--dist", "loadgroup"),
        *words,
        env=ENVIRONMENT,
    )
