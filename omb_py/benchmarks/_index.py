"""The benchmarks of each module, by family, so that a job loads no other module: ``make keys``.

A benchmark that is not here yet is found by loading all of them.
"""

MODULES = {
    "pt2pt": {
        "point-to-point": """
            latency bw bibw multi_lat mbw_mr
        """,
    },
    "collective": {
        "collective": """
            allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast exscan
            gather gatherv reduce reduce_scatter reduce_scatter_block scan scatter scatterv
        """,
    },
    "variants": {
        "non-blocking collective": """
            iallgather iallgatherv iallreduce ialltoall ialltoallv ialltoallw ibarrier ibcast
            iexscan igather igatherv ireduce ireduce_scatter ireduce_scatter_block iscan
            iscatter iscatterv
        """,
        "persistent point-to-point": """
            latency_persistent bw_persistent bibw_persistent
        """,
        "persistent collective": """
            allgather_persistent allgatherv_persistent allreduce_persistent alltoall_persistent
            alltoallv_persistent alltoallw_persistent barrier_persistent bcast_persistent
            exscan_persistent gather_persistent gatherv_persistent reduce_persistent
            reduce_scatter_persistent reduce_scatter_block_persistent scan_persistent
            scatter_persistent scatterv_persistent
        """,
    },
    "communicators": {
        "communicator": """
            comm_dup comm_split graph_create spawn
        """,
    },
    "concurrent": {
        "point-to-point": """
            latency_mt latency_mp
        """,
    },
    "congestion": {
        "congestion": """
            bw_fan_in bw_fan_out
        """,
    },
    "files": {
        "file": """
            file_write file_read file_write_all file_read_all
        """,
    },
    "neighborhood": {
        "neighborhood collective": """
            neighbor_allgather neighbor_allgatherv neighbor_alltoall neighbor_alltoallv
            neighbor_alltoallw
        """,
        "non-blocking neighborhood collective": """
            ineighbor_allgather ineighbor_allgatherv ineighbor_alltoall ineighbor_alltoallv
            ineighbor_alltoallw
        """,
        "persistent neighborhood collective": """
            neighbor_allgather_persistent neighbor_allgatherv_persistent
            neighbor_alltoall_persistent neighbor_alltoallv_persistent
            neighbor_alltoallw_persistent
        """,
    },
    "onesided": {
        "one-sided": """
            put_latency get_latency acc_latency get_acc_latency fop_latency cas_latency
            rput_latency rget_latency put_bw get_bw put_bibw rput_bw rget_bw put_mr get_mr
        """,
    },
    "packing": {
        "packing": """
            pack unpack
        """,
    },
    "startup": {
        "start-up": """
            init hello import_time
        """,
    },
    "transfers": {
        "point-to-point": """
            sendrecv exchange probe mprobe
        """,
        "partitioned point-to-point": """
            partitioned_latency partitioned_bw
        """,
    },
    "recovery": {
        "fault tolerance": """
            ft_detect ft_revoke ft_shrink ft_agree ft_respawn
        """,
    },
}
