# mypy: ignore-errors
# ruff: noqa: RUF012 - ReFrame wants lists
"""What ReFrame's and EESSI's OSU tests ask of native OMB's programs, by their documentation.

Two ranks run ``osu_NAME -m SIZE -x WARM-UP -i ITERATIONS -c``; point-to-point programs of ReFrame's
have ``D D`` behind, on CPUs too. The line of SIZE says Pass, and its second column is the value.
"""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_after, sanity_function, variable


class Osu(rfm.RunOnlyRegressionTest):
    """A program of native OMB at its largest size."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    num_tasks = 2
    num_warmup_iters = variable(int, value=10)
    num_iters = variable(int, value=1000)
    bandwidth_iters = variable(int, value=10)
    placement = variable(bool, value=True)
    program = parameter(["osu_latency", "osu_bw", "osu_allreduce", "osu_alltoall"])

    @run_after("init")
    def choose(self):
        """Set the command line and the value."""
        bandwidth = self.program == "osu_bw"
        self.size = 4_194_304 if bandwidth else 8
        iterations = self.bandwidth_iters if bandwidth else self.num_iters
        self.executable = self.program
        self.executable_opts = [
            *("-m", str(self.size), "-x", str(self.num_warmup_iters), "-i", str(iterations), "-c")
        ]
        if self.placement and self.program in ("osu_latency", "osu_bw"):
            self.executable_opts += ["D", "D"]
        value = sn.extractsingle(rf"^{self.size}\s+(\S+)", self.stdout, 1, float)
        metric, unit = ("bandwidth", "MB/s") if bandwidth else ("latency", "us")
        self.perf_variables = {metric: sn.make_performance_function(value, unit)}
        self.reference = {"*": {metric: (1, -0.999, None, unit)}}

    @sanity_function
    def passed(self):
        """No data was wrong."""
        return sn.assert_found(rf"^{self.size}.*Pass", self.stdout)


@rfm.simple_test
class OfReFrame(Osu):
    """As ReFrame's."""


@rfm.simple_test
class OfEessi(Osu):
    """As EESSI's."""

    num_warmup_iters = 5
    num_iters = 10
    bandwidth_iters = 2
    placement = False
