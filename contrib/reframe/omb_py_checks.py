"""Benchmarks of omb-py as ReFrame tests: see README.md beside this file."""

import csv
import json
import re
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import (
    deferrable,
    parameter,
    run_after,
    sanity_function,
    variable,
)

# ruff: noqa: N801, RUF012 - names and types as ReFrame has them

BENCHMARKS = {
    "latency": (8, "sample_p50_us", "us"),
    "bw": (4_194_304, "bandwidth_MBps", "MB/s"),
    "allreduce": (8, "sample_p50_us", "us"),
    "alltoall": (8, "sample_p50_us", "us"),
}
"""Message size in bytes, column of the result and unit of each benchmark."""

BUFFERS = {"numpy": "*", "cupy": "+gpu", "numba": "+gpu"}
"""Buffer libraries, and the ReFrame partitions that can run them."""

RESULTS = "rows.csv"


class omb_py_benchmark(rfm.RunOnlyRegressionTest):
    """A benchmark at one message size, its data checked on every rank.

    A subclass names ``benchmark``, ``buffer`` and ``binding``.
    """

    #: Ranks in total and on each node; point-to-point benchmarks take two.
    num_tasks = 2
    num_tasks_per_node = 1

    #: Message size in bytes; 0 takes the one of `BENCHMARKS`.
    message_size = variable(int, value=0)

    #: Timed iterations and those before them; 0 takes omb-py's own.
    num_iters = variable(int, value=0)
    num_warmup_iters = variable(int, value=0)

    #: Whether every message is checked: with ``False`` memory is as warm as in a program.
    validate = variable(bool, value=True)

    #: Reference values by system and test, a file beside this one or an absolute path.
    references = variable(str, value="references.json")

    valid_prog_environs = ["*"]
    executable = "omb-py"

    @run_after("init")
    def choose(self):
        """Set the command line, where it may run, and what its result is compared with."""
        size, self.column, self.unit = BENCHMARKS[self.benchmark]
        self.message_size = self.message_size or size
        self.valid_systems = [BUFFERS[self.buffer]]
        self.executable_opts = [
            self.benchmark,
            *("-m", f"{self.message_size}:{self.message_size}"),
            *("--buffer", self.buffer, "--binding", self.binding),
            *("--output", RESULTS, "--force"),
        ]
        if self.num_iters:
            self.executable_opts += ["-i", str(self.num_iters)]
        if self.num_warmup_iters:
            self.executable_opts += ["-x", str(self.num_warmup_iters)]
        if self.validate:
            self.executable_opts += ["-c"]
        self.keep_files = [RESULTS]
        self.metric = "bandwidth" if self.unit == "MB/s" else "latency"
        self.perf_variables = {
            self.metric: sn.make_performance_function(self.result(self.column, float), self.unit)
        }
        path = Path(__file__).parent / self.references
        known = json.loads(path.read_text()) if path.exists() else {}
        self.reference = {
            system: {self.metric: tuple(limits)}
            for system, variables in known.items()
            for name, limits in variables.items()
            if self.is_about(name)
        }

    def is_about(self, name):
        """Return whether a reference of ``omb-py check --update`` is of this test.

        Its name is a benchmark and columns of results with their values; those that a test does not
        choose are ignored.
        """
        benchmark, _, columns = name.partition(" ")
        own = {"bytes": self.message_size, "ranks": self.num_tasks, "validated": self.validate}
        own |= {"buffer": self.buffer, "binding": self.binding}
        said = re.findall(r"(\w+)=(\S+)", columns)
        return benchmark == self.benchmark and all(
            value == str(own[column]) for column, value in said if column in own
        )

    @deferrable
    def result(self, column, convert=str):
        """A column of the row in the file of results."""
        with (Path(self.stagedir) / RESULTS).open() as file:
            (row,) = csv.DictReader(line for line in file if not line.startswith("#"))
        return convert(row[column])

    @sanity_function
    def measured(self):
        """The row is there, and no rank received wrong data."""
        expected = "Pass" if self.validate else ""
        return sn.all(
            [
                sn.assert_eq(self.job.exitcode, 0, "omb-py ended with exit code {0}"),
                sn.assert_eq(self.result("bytes", int), self.message_size),
                sn.assert_eq(self.result("validation"), expected),
            ]
        )


@rfm.simple_test
class omb_py(omb_py_benchmark):
    """Each benchmark, buffer library and binding."""

    benchmark = parameter(BENCHMARKS, loggable=True)
    buffer = parameter(BUFFERS, loggable=True)
    binding = parameter(["buffer", "native"], loggable=True)


@rfm.simple_test
class omb_py_suite(rfm.RunOnlyRegressionTest):
    """All `BENCHMARKS` in one launch, with a value for each: one start of MPI instead of four."""

    num_tasks = 2
    num_tasks_per_node = 1
    num_iters = variable(int, value=0)
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "omb-py"
    binding = parameter(["buffer", "native"], loggable=True)

    @run_after("init")
    def choose(self):
        """Set the command line and the values."""
        entries = [f"'{name} -m {size}:{size}'" for name, (size, _, _) in BENCHMARKS.items()]
        words = ["--binding", self.binding, "-c", "--output", RESULTS, "--force"]
        words += ["-i", str(self.num_iters)] if self.num_iters else []
        self.executable_opts = ["run", *entries, *words]
        self.keep_files = [RESULTS]
        self.perf_variables = {
            name: sn.make_performance_function(self.value(name, column), unit)
            for name, (_, column, unit) in BENCHMARKS.items()
        }

    @deferrable
    def value(self, benchmark, column):
        """A column of a benchmark's row."""
        with (Path(self.stagedir) / RESULTS).open() as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        return next(float(row[column]) for row in rows if row["benchmark"] == benchmark)

    @sanity_function
    def measured(self):
        """Every benchmark was measured, and its data arrived."""
        return sn.assert_eq(self.job.exitcode, 0, "omb-py ended with exit code {0}")


@rfm.simple_test
class omb_py_gate(rfm.RunOnlyRegressionTest):
    """Every node of the job judged against all others; fails by the gate's verdict."""

    #: One rank on each node; set ``num_tasks`` to the number of nodes, or 0 for all idle ones.
    num_tasks = 0
    num_tasks_per_node = 1

    #: Options of omb-py gate, such as ``--expected FILE`` or ``--groups FILE``.
    gate_options = variable(typ.List[str], value=[])

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "omb-py"

    @run_after("init")
    def choose(self):
        """Set the command line and the values."""
        self.executable_opts = ["gate", "--results", RESULTS, "--drain", "drain", "--force"]
        self.executable_opts += ["-o", "gate.json", *self.gate_options]
        self.keep_files = [RESULTS, "drain", "gate.json"]
        self.perf_variables = {
            "slowest": sn.make_performance_function(self.of(max, "ratio"), "times the median"),
            "named_from": sn.make_performance_function(self.of(min, "limit"), "times the median"),
        }

    @deferrable
    def of(self, choose, column):
        """The chosen value of a column of the gate's table, 0 if no host was compared."""
        rows = json.loads((Path(self.stagedir) / "gate.json").read_text())["rows"]
        return choose((row[column] for row in rows if row.get(column) is not None), default=0)

    @sanity_function
    def judged(self):
        """The last conclusion is PASS; otherwise the lines of the hosts that fail are shown."""
        said = r"(?m)^(?:FAIL|CANNOT TELL): .*"
        lines = "\n".join(sn.evaluate(sn.extractall(said, self.stdout)))
        return sn.assert_found(r"^PASS: ", self.stdout, lines or "the gate did not end")
