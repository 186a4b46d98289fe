"""The options of single families, one row each."""

from __future__ import annotations

from typing import Any

import click

from omb_py.cli.option_row import FLAG, RESULTS, OptionRow, count
from omb_py.cli.parameters import Bytes, NodeMap, OwnAlgorithm, Threads, TopologyType
from omb_py.core.calls.topology import DEFAULT_TOPOLOGY

WINDOW_KINDS = ("create", "allocate", "dynamic", "shared")
PASSIVE = ("lock", "flush", "flush_local", "lock_all")
ACTIVE = ("pscw", "fence")
SEND_MODES = ("standard", "synchronous", "buffered", "ready")

NODES: dict[str, Any] = {
    "type": NodeMap(),
    "show_default": "as the machine has them",
    "metavar": "N|N,N,…",
    "help": "Ranks of each node, or the node of each rank, to try it on one machine.",
}

FAMILY_OPTIONS: tuple[OptionRow, ...] = (
    OptionRow(
        ("-t", "--num-test-calls", "test_calls"),
        count(0) | {"default": 0, "help": "Calls of MPI_Test while computing."},
        feature="overlap",
    ),
    OptionRow(
        ("-r", "--cuda-target", "compute_target"),
        {
            "type": click.Choice(["cpu", "gpu", "both"]),
            "default": "cpu",
            "help": "Who computes while messages are under way.",
        },
        feature="overlap",
    ),
    OptionRow(
        ("-N", "--nhbr", "topology"),
        {
            "type": TopologyType(),
            "default": DEFAULT_TOPOLOGY,
            "show_default": DEFAULT_TOPOLOGY.text,
            "metavar": "TOPOLOGY",
            "help": "Who is whose neighbour: cart:DIMENSIONS:RADIUS or graph:FILE.",
        },
        feature="topology",
    ),
    OptionRow(
        ("-w", "--win-options", "window_kind"),
        {
            "type": click.Choice(WINDOW_KINDS),
            "show_default": "allocate; on a device create",
            "help": "How the window is made.",
        },
        feature="window_kind",
    ),
    OptionRow(
        ("-s", "--sync-option", "window_sync"),
        {
            "type": click.Choice(PASSIVE + ACTIVE),
            "default": "flush",
            "help": "How one-sided calls are completed.",
        },
        feature="window_sync",
    ),
    OptionRow(
        ("-s", "--sync-option", "window_sync"),
        {
            "type": click.Choice(ACTIVE),
            "default": "pscw",
            "help": "How one-sided calls are completed.",
        },
        feature="active_sync",
    ),
    OptionRow(
        ("--send-mode",),
        {
            "type": click.Choice(SEND_MODES),
            "default": "standard",
            "help": "MPI's mode of sending: MPI_Send, Ssend, Bsend or Rsend.",
        },
        feature="send_mode",
    ),
    OptionRow(
        ("--partitions",),
        count(1) | {"default": 8, "help": "Parts of a message that become ready one by one."},
        feature="partitions",
    ),
    OptionRow(
        ("-t", "--num-threads", "threads"),
        {
            "type": Threads(),
            "default": (1, 2),
            "show_default": "1:2",
            "metavar": "SENDERS[:RECEIVERS]",
            "help": "Threads of the sending and of the receiving rank.",
        },
        feature="threads",
    ),
    OptionRow(
        ("-t", "--num-processes", "threads"),
        {
            "type": Threads(),
            "default": (2, 2),
            "show_default": "2:2",
            "metavar": "SENDER[:RECEIVER]",
            "help": "Processes that the sending and the receiving rank fork.",
        },
        feature="processes",
    ),
    OptionRow(
        ("--library-algorithm",),
        {
            "metavar": "WORD",
            "help": "The MPI library's own algorithm, as in ring: 'omb-py list --algorithms' has "
            "the words; default is the library's choice.",
        },
        feature="library_algorithm",
        purpose=RESULTS,
    ),
    OptionRow(
        ("--prove-algorithm",),
        FLAG
        | {
            "help": "Time nothing: count the messages of one call of each size, and compare them "
            "with those of the algorithm.",
        },
        feature="library_algorithm",
        purpose=RESULTS,
    ),
    OptionRow(
        ("--algorithm",),
        {
            "type": OwnAlgorithm(),
            "show_default": "library",
            "help": "The library's call, or an algorithm made of messages between two ranks: see "
            "docs/algorithms.md.",
        },
        feature="algorithm",
        purpose=RESULTS,
    ),
    OptionRow(
        ("--segment",),
        {
            "type": Bytes(),
            "show_default": "64K",
            "metavar": "BYTES",
            "help": "What an algorithm of --algorithm that cuts messages cuts them into.",
        },
        feature="algorithm",
        purpose=RESULTS,
    ),
    OptionRow(("--node-map",), NODES, feature="nodes"),
    OptionRow(("--node-map",), NODES, feature="node_map", purpose=RESULTS),
    OptionRow(
        ("--file",),
        {
            "metavar": "PATH",
            "required": True,
            "help": "The file, on the file system to be measured; it must not exist.",
        },
        feature="file",
    ),
    OptionRow(
        ("--file-sync/--no-file-sync",),
        {
            "default": True,
            "help": "Bring the data to the disk (MPI_File_sync) in every iteration, or leave it to "
            "the page cache.",
        },
        feature="file_sync",
    ),
    OptionRow(
        ("--spawned",),
        count(1) | {"default": 1, "help": "Processes that are started."},
        feature="spawned",
    ),
)
