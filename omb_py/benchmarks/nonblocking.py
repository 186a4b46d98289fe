"""Non-blocking collectives: started, overlapped with computing, and waited for."""

from omb_py.benchmarks import collective
from omb_py.benchmarks._forms import nonblocking_form

BENCHMARKS = tuple(map(nonblocking_form, collective.BENCHMARKS))
