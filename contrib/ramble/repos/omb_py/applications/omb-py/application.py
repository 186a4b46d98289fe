"""omb-py, installed by pip: rows are read as JSON, and the log has native OMB's text."""

from ramble.appkit import *

POINT_TO_POINT = """
    latency bw bibw multi_lat mbw_mr latency_persistent bw_persistent bibw_persistent latency_mt
    latency_mp bw_fan_in bw_fan_out
""".split()
ONE_SIDED = """
    put_latency get_latency acc_latency get_acc_latency put_bw get_bw put_bibw
""".split()
COLLECTIVE = """
    allgather allgatherv allreduce alltoall alltoallv alltoallw bcast gather gatherv reduce
    reduce_scatter reduce_scatter_block scatter scatterv
    iallgather iallgatherv iallreduce ialltoall ialltoallv ialltoallw ibcast igather igatherv
    ireduce ireduce_scatter ireduce_scatter_block iscatter iscatterv
    allgather_persistent allgatherv_persistent allreduce_persistent alltoall_persistent
    alltoallv_persistent alltoallw_persistent bcast_persistent gather_persistent gatherv_persistent
    reduce_persistent reduce_scatter_persistent scatter_persistent scatterv_persistent
    neighbor_allgather neighbor_allgatherv neighbor_alltoall neighbor_alltoallv neighbor_alltoallw
    ineighbor_allgather ineighbor_allgatherv ineighbor_alltoall ineighbor_alltoallv
    ineighbor_alltoallw
""".split()
ONE_SIZE = "barrier ibarrier barrier_persistent fop_latency cas_latency".split()
START_UP = "init hello".split()

OF_ALL_SIZES = POINT_TO_POINT + ONE_SIDED + COLLECTIVE
MEASURED = OF_ALL_SIZES + ONE_SIZE

ROWS = "{experiment_run_dir}/rows.json"
NUMBER = r"[-+.\deE]+"
FIGURES = {
    "Latency": ("latency_us", "us"),
    "Latency of the Fastest Rank": ("latency_min_us", "us"),
    "Latency of the Slowest Rank": ("latency_max_us", "us"),
    "P50 of Iterations": ("sample_p50_us", "us"),
    "P90 of Iterations": ("sample_p90_us", "us"),
    "P99 of Iterations": ("sample_p99_us", "us"),
    "Bandwidth": ("bandwidth_MBps", "MB/s"),
    "Message Rate": ("messages_per_s", "Messages/s"),
    "Bus Bandwidth": ("busbw_GBps", "GB/s"),
    "Overall": ("overall_us", "us"),
    "Compute": ("compute_us", "us"),
    "Overlap": ("overlap_percent", "%"),
}
"""Each figure's column in the rows, which leave out what a benchmark does not have, and unit."""


class OmbPy(ExecutableApplication):
    """Communication benchmarks for Python on HPC systems, with native OMB's definitions."""

    name = "omb-py"

    tags("synthetic-benchmarks", "mpi", "python")

    # From a wheel: no registry has it. Ramble's required_package would not see that: it looks for
    # omb-python== in what pip freeze prints.
    with when("package_manager_family=pip"):
        software_spec("omb-py", pkg_spec="omb-python @ file://{omb_py_wheel}")

    executable(
        "measure",
        "omb-py {workload_name} --buffer {buffer} {benchmark_options} {additional_args}"
        f" --output {ROWS} --force",
        use_mpi=True,
    )
    for benchmark in MEASURED + START_UP:
        workload(benchmark, executable="measure")

    workload_variable(
        "buffer",
        default="numpy",
        description="Buffer library: omb-py list shows them",
        workloads=MEASURED + START_UP,
    )
    workload_variable(
        "binding",
        default="buffer",
        description="Kind of call, such as buffer, object, native: omb-py list shows them",
        workloads=MEASURED,
    )
    workload_variable(
        "message_sizes",
        default="1:1048576",
        description="Message sizes in bytes: MIN:MAX, doubled from MIN to MAX",
        workloads=OF_ALL_SIZES,
    )
    workload_variable(
        "benchmark_options",
        default="--binding {binding} -m {message_sizes}",
        description="Options for the variables above",
        workloads=OF_ALL_SIZES,
    )
    workload_variable(
        "benchmark_options",
        default="--binding {binding}",
        description="Options for the variables above",
        workloads=ONE_SIZE,
    )
    workload_variable(
        "benchmark_options",
        default="",
        description="Options for the variables above",
        workloads=START_UP,
    )
    workload_variable(
        "additional_args",
        default="",
        description="More options of omb-py, such as -c, -i 1000 or -z",
        workloads=MEASURED + START_UP,
    )

    figure_of_merit_context(
        "message size",
        regex=r'.*"bytes": (?P<bytes>\d+)',
        output_format="Message Size: {bytes}",
    )
    for figure, (column, unit) in FIGURES.items():
        figure_of_merit(
            figure,
            log_file=ROWS,
            fom_regex=rf'.*"{column}": (?P<value>{NUMBER})',
            group_name="value",
            units=unit,
            contexts=["message size"],
        )
    for figure, key in {"Version": "omb_py", "MPI Library": "mpi_library"}.items():
        figure_of_merit(
            figure,
            log_file=ROWS,
            fom_regex=rf'.*"{key}": "(?P<text>[^"]+)"',
            group_name="text",
            units="",
        )

    # Rows come one by one, the first as soon as it is measured.
    success_criteria("measured", mode="string", match=r'^\{"run": ', file=ROWS)
