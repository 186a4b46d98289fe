"""What cannot be measured inside somebody's program is refused before MPI is touched."""

from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.measure.in_program import measure
from tests.helpers.refusals import refuses


def test_verifying_an_algorithm_gives_no_rows() -> None:
    options = Options(verify_algorithm=True, library_algorithm="ring")
    with refuses(UsageError, "no rows: alone"):
        measure(find_benchmark("allreduce"), options)
