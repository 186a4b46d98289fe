"""The routines that are recorded in C: their parameters, and the bytes of their messages.

Not there are calls that only ask (Comm_rank, Type_size, Get_count): they cost less than being
recorded. Bytes are expressions in C of the parameters, counted as in mpitrace.
"""

from __future__ import annotations

COUNTED = "bytes_of(count, datatype)"
MESSAGE = "buf count datatype"
PARTITIONED = "buf partitions count datatype"
PARTITIONS = "bytes_of(partitions * (int64_t)count, datatype)"

SENDS = {
    **{
        f"{mode}{form}": (f"{MESSAGE} dest tag comm{rest}", COUNTED)
        for form, rest in (("", ""), ("_init", " request"))
        for mode in ("Send", "Bsend", "Ssend", "Rsend")
    },
    **{
        f"I{mode}": (f"{MESSAGE} dest tag comm request", COUNTED)
        for mode in ("send", "bsend", "ssend", "rsend")
    },
    "Psend_init": (f"{PARTITIONED} dest tag comm info request", PARTITIONS),
}

RECEIVES = {
    "Recv": (f"{MESSAGE} source tag comm status", COUNTED),
    "Irecv": (f"{MESSAGE} source tag comm request", COUNTED),
    "Recv_init": (f"{MESSAGE} source tag comm request", COUNTED),
    "Precv_init": (f"{PARTITIONED} source tag comm info request", PARTITIONS),
}

SENDRECV = {
    "sendrecv": (
        "sendbuf sendcount sendtype dest sendtag recvbuf recvcount recvtype source recvtag"
    ),
    "sendrecv_replace": "buf sendcount sendtype dest sendtag source recvtag",
}

SENDING, RECEIVING = "sendbuf sendcount sendtype", "recvbuf recvcount recvtype"
SENDING_V = "sendbuf sendcounts sdispls sendtype"
RECEIVING_V = "recvbuf recvcounts rdispls recvtype"
SENT, RECEIVED = "bytes_of(sendcount, sendtype)", "bytes_of(recvcount, recvtype)"
SENT_V = "bytes_of(SUM(sendcounts, peers_of(&call)), sendtype)"
RECEIVED_V = "bytes_of(SUM(recvcounts, peers_of(&call)), recvtype)"
IN_PLACE, GOT_IN_PLACE = "sendbuf == MPI_IN_PLACE", "recvbuf == MPI_IN_PLACE"
MEAN = "divided({}, peers_of(&call))"
NOTHING = "root == MPI_PROC_NULL ? 0"
REDUCING = "sendbuf recvbuf count datatype op"

COLLECTIVES = {
    "allgather": (f"{SENDING} {RECEIVING}", RECEIVED),
    "allgatherv": (f"{SENDING} {RECEIVING_V}", f"{IN_PLACE} ? {MEAN.format(RECEIVED_V)} : {SENT}"),
    "allreduce": (REDUCING, COUNTED),
    "alltoall": (f"{SENDING} {RECEIVING}", f"{IN_PLACE} ? {RECEIVED} : {SENT}"),
    "alltoallv": (
        f"{SENDING_V} {RECEIVING_V}",
        MEAN.format(f"{IN_PLACE} ? {RECEIVED_V} : {SENT_V}"),
    ),
    "alltoallw": (
        "sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes",
        MEAN.format(
            f"{IN_PLACE} ? SUM_OF_TYPES(recvcounts, recvtypes, peers_of(&call))"
            " : SUM_OF_TYPES(sendcounts, sendtypes, peers_of(&call))"
        ),
    ),
    "barrier": ("", "0"),
    "bcast": ("buf count datatype root", f"{NOTHING} : {COUNTED}"),
    "exscan": (REDUCING, COUNTED),
    "gather": (
        f"{SENDING} {RECEIVING} root",
        f"{NOTHING} : {IN_PLACE} || root == MPI_ROOT ? {RECEIVED} : {SENT}",
    ),
    "gatherv": (
        f"{SENDING} {RECEIVING_V} root",
        f"{NOTHING} : {IN_PLACE} || root == MPI_ROOT ? {MEAN.format(RECEIVED_V)} : {SENT}",
    ),
    "neighbor_allgather": (f"{SENDING} {RECEIVING}", SENT),
    "neighbor_allgatherv": (f"{SENDING} {RECEIVING_V}", SENT),
    "neighbor_alltoall": (f"{SENDING} {RECEIVING}", SENT),
    "neighbor_alltoallv": (
        f"{SENDING_V} {RECEIVING_V}",
        "divided(bytes_of(SUM(sendcounts, neighbours(comm)), sendtype), neighbours(comm))",
    ),
    "neighbor_alltoallw": (
        "sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes",
        "SUM_OF_TYPES(sendcounts, sendtypes, neighbours(comm))",
    ),
    "reduce": (f"{REDUCING} root", f"{NOTHING} : {COUNTED}"),
    "reduce_scatter": (
        "sendbuf recvbuf recvcounts datatype op",
        "bytes_of(SUM(recvcounts, call.where ? call.where->size : 0), datatype)",
    ),
    "reduce_scatter_block": (
        "sendbuf recvbuf recvcount datatype op",
        "bytes_of(recvcount, datatype)",
    ),
    "scan": (REDUCING, COUNTED),
    "scatter": (
        f"{SENDING} {RECEIVING} root",
        f"{NOTHING} : {GOT_IN_PLACE} || root == MPI_ROOT ? {SENT} : {RECEIVED}",
    ),
    "scatterv": (
        f"{SENDING_V} {RECEIVING} root",
        f"{NOTHING} : {GOT_IN_PLACE} || root == MPI_ROOT ? {MEAN.format(SENT_V)} : {RECEIVED}",
    ),
}
"""By the name of the blocking form; the others have ``request`` or ``info request`` at the end."""

ORIGIN = "origin origin_count origin_type"
TARGET = "target target_disp target_count target_type"
FETCHED = "bytes_of(result_count > origin_count ? result_count : origin_count, result_type)"

ONE_SIDED = {
    "Put": (f"{ORIGIN} {TARGET}", "bytes_of(origin_count, origin_type)"),
    "Get": (f"{ORIGIN} {TARGET}", "bytes_of(origin_count, origin_type)"),
    "Accumulate": (f"{ORIGIN} {TARGET} op", "bytes_of(origin_count, origin_type)"),
    "Get_accumulate": (
        f"{ORIGIN} fetched result_count result_type {TARGET} op",
        FETCHED,
    ),
    "Fetch_and_op": ("origin fetched datatype target target_disp op", "bytes_of(1, datatype)"),
    "Compare_and_swap": (
        "origin compare fetched datatype target target_disp",
        "bytes_of(1, datatype)",
    ),
}
"""Parameters before the window, by routine."""

WITH_REQUESTS = ("Put", "Get", "Accumulate", "Get_accumulate")

WINDOWS = {
    "Win_create": "base size disp_unit info comm win",
    "Win_allocate": "size disp_unit info comm base win",
    "Win_allocate_shared": "size disp_unit info comm base win",
    "Win_create_dynamic": "info comm win",
    "Win_fence": "assertion win",
    "Win_start": "group assertion win",
    "Win_post": "group assertion win",
    "Win_complete": "win",
    "Win_wait": "win",
    "Win_test": "win flag",
    "Win_lock": "lock_type target assertion win",
    "Win_unlock": "target win",
    "Win_lock_all": "assertion win",
    "Win_unlock_all": "win",
    "Win_flush": "target win",
    "Win_flush_all": "win",
    "Win_flush_local": "target win",
    "Win_flush_local_all": "win",
    "Win_sync": "win",
}

DATA = "buf count datatype"
FILES = {
    **{
        f"File_{way}{where}": f"file{at} {DATA} status"
        for way in ("read", "write")
        for where, at in (
            *(("", ""), ("_all", ""), ("_shared", ""), ("_ordered", "")),
            *(("_at", " offset"), ("_at_all", " offset")),
        )
    },
    **{
        f"File_{way}{where}_begin": f"file{at} {DATA}"
        for way in ("read", "write")
        for where, at in (("_all", ""), ("_ordered", ""), ("_at_all", " offset"))
    },
    **{
        f"File_{way}{where}_end": "file buf status"
        for way in ("read", "write")
        for where in ("_all", "_ordered", "_at_all")
    },
    "File_delete": "filename info",
    "File_set_size": "file size",
    "File_get_size": "file size",
    "File_seek": "file offset whence",
    "File_seek_shared": "file offset whence",
    "File_set_atomicity": "file flag",
    "File_preallocate": "file size",
    "File_set_view": "file disp etype filetype datarep info",
    "File_sync": "file",
}
NONBLOCKING_FILES = {
    f"File_i{way}{where}": f"file{at} {DATA} request"
    for way in ("read", "write")
    for where, at in (
        *(("", ""), ("_all", ""), ("_shared", "")),
        *(("_at", " offset"), ("_at_all", " offset")),
    )
}

COMMUNICATORS = {
    "Comm_dup": "comm made",
    "Comm_dup_with_info": "comm info made",
    "Comm_idup": "comm made request",
    "Comm_idup_with_info": "comm info made request",
    "Comm_create": "comm group made",
    "Comm_create_group": "comm group tag made",
    "Comm_create_from_group": "group name info errhandler made",
    "Comm_split": "comm color key made",
    "Comm_split_type": "comm kind key info made",
    "Cart_create": "comm dimensions sizes periods reorder made",
    "Cart_sub": "comm remain made",
    "Graph_create": "comm nodes index edges reorder made",
    "Dist_graph_create": "comm count sources degrees destinations weights info reorder made",
    "Dist_graph_create_adjacent": (
        "comm indegree sources source_weights outdegree destinations destination_weights info "
        "reorder made"
    ),
    "Intercomm_create": "comm leader peer_comm remote_leader tag made",
    "Intercomm_create_from_groups": (
        "local_group leader remote_group remote_leader name info errhandler made"
    ),
    "Intercomm_merge": "comm high made",
    "Comm_spawn": "command arguments processes info root comm made errcodes",
    "Comm_spawn_multiple": "count commands arguments processes infos root comm made errcodes",
    "Comm_accept": "port info root comm made",
    "Comm_connect": "port info root comm made",
    "Comm_join": "socket made",
}
"""Routines that create communicators: the new one is ``made``."""

OTHERS = {
    "Probe": "source tag comm status",
    "Iprobe": "source tag comm flag status",
    "Parrived": "request partition flag",
    "Pready": "partition started",
    "Pready_range": "first last started",
    "Pready_list": "count partitions started",
    "Buffer_detach": "address size",
    "Buffer_flush": "",
    "Comm_detach_buffer": "comm address size",
    "Comm_flush_buffer": "comm",
    "Session_detach_buffer": "session address size",
    "Session_flush_buffer": "session",
}
