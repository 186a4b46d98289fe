"""What cannot be measured inside somebody's program is refused before MPI is touched."""

import pytest

from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.measure.in_program import measure


def test_verifying_an_algorithm_gives_no_rows() -> None:
    options = Options(verify_algorithm=True, library_algorithm="ring")
    with pytest.raises(UsageError, match="gives no rows: run it alone"):
        measure(find_benchmark("allreduce"), options)
