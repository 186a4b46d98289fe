"""MPICH's files of rules: trees of questions in JSON (``csel.c`` of 5.0.1).

A collective passes two trees. That of ``MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE`` says how a
call is composed of parts inside nodes and between them; one of its answers hands the whole call on.
That of ``MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE`` names an algorithm for what is handed on, and
for such parts. A file stands in place of the library's whole tree and cannot say "the
library's choice", so rules are set into the trees that the library itself has: both stand in its
code as text. The format has no comments, and an unknown key ends the job.

What an algorithm needs of a call, a tree has to ask for: MPICH does not check it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from omb_py.algorithms import mpich
from omb_py.algorithms.rules import Choice, LibraryBuild, Rule, RulesFormat, by_ranks
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.mpi.rules import FILES

Tree: TypeAlias = dict[str, Any]

WHOLE = {"allreduce": "beta", "bcast": "gamma", "reduce": "gamma"} | dict.fromkeys(
    ("allgather", "alltoall", "barrier"), "beta"
)
"""The composition that hands the whole call on; alpha of the functions that have one alone."""

TOTAL = frozenset({"allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block"})
"""Functions whose trees know the bytes of all ranks together, and not those of a block."""

BLOCKS = frozenset({"allgather", "allgatherv"})
"""Functions whose bytes are the benchmark's message size times the ranks."""

GUARDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("allreduce", "reduce"), ("is_op_built_in=yes", "count<pow2")),
    "alltoall": ("is_sendbuf_inplace=no",),
    **dict.fromkeys(("reduce_scatter", "reduce_scatter_block"), ("is_commutative=yes",)),
}
"""What a call has to be for a rule to hold; ``count<pow2`` is what it must not be."""

OF_COMMUNICATOR = ("comm_size", "comm_hierarchy", "comm_avg_ppn", "is_node_consecutive")
"""How the questions begin that MPICH answers when a communicator is made."""

OPPOSITE = {"yes": "no", "no": "yes"}

SETTINGS = {
    "TREE_TYPE": "tree_type",
    "TREE_KVAL": "k",
    "TREE_PIPELINE_CHUNK_SIZE": "chunk_size",
    "DISSEM_KVAL": "k",
    "RECEXCH_KVAL": "k",
}
"""Settings of algorithms, and their keys in a tree."""

NEEDED = {
    ("bcast", "tree"): {"is_non_blocking": 1},
    ("bcast", "pipelined_tree"): {"is_non_blocking": 1, "recv_pre_posted": 0},
    ("allreduce", "tree"): {"chunk_size": 0, "buffer_per_child": 0},
    ("barrier", "recexch"): {"single_phase_recv": 0},
}
"""Keys that have to be given, too, as MPICH has no values for missing ones: its variables' own."""


def write(rules: Sequence[Rule], about: Sequence[str], build: LibraryBuild) -> tuple[str, ...]:
    """Return the trees of compositions and of algorithms, with rules set into the library's own.

    Raises `OmbError` if the library's file has no trees.
    """
    compositions, algorithms = trees_of(build)
    for function, of_ranks in by_ranks(rules).items():
        for tree, is_last in ((compositions, False), (algorithms, True)):
            key = f"collective={function}"
            own = tree.get(key, {})
            inside = own.get("comm_type=intra", own)
            others = {name: part for name, part in own.items() if name.startswith("comm_type=")}
            grafted = of_communicators(function, of_ranks, inside, is_last)
            tree[key] = {"comm_type=intra": grafted} | {
                name: part for name, part in others.items() if name != "comm_type=intra"
            }
    return tuple(json.dumps(tree, indent=1) + "\n" for tree in (compositions, algorithms))


def trees_of(build: LibraryBuild) -> tuple[Tree, Tree]:
    """Return the library's own trees of compositions and of algorithms, from the text of its code.

    Raises `OmbError` if they are not there.
    """
    if build.file is None:
        raise OmbError(f"the file of {build.text} is not known, whose own rules ours are set into")
    found: dict[str, Tree] = {}
    for text in re.findall(rb'\{"collective=[^\0]*\}(?=\0)', build.file.read_bytes()):
        tree = json.loads(text)
        for kind, mark in (("compositions", b"composition="), ("algorithms", b"=MPIR_")):
            if mark in text and len(tree) > len(found.get(kind, {})):
                found[kind] = tree
    if len(found) < 2:
        raise OmbError(f"{build.file} has no trees of {build.text}, into which rules could be set")
    return found["compositions"], found["algorithms"]


def of_communicators(
    function: str, of_ranks: Mapping[int, Sequence[Rule]], own: Tree, is_last: bool
) -> Tree:
    """Return a branch that has rules for some sizes of communicators, and is ``own`` for others."""
    found: Tree = {}
    for ranks, rules in of_ranks.items():
        if f"comm_size<={ranks - 1}" not in found and ranks > 1:
            found[f"comm_size<={ranks - 1}"] = own
        found[f"comm_size<={ranks}"] = below(own, partial(of_call, function, rules, is_last))
    return found | {"comm_size=any": own}


def below(own: Tree, graft: Callable[[Tree], Tree]) -> Tree:
    """Return a tree with another one below its questions on communicators.

    MPICH answers those once for a communicator, but only down to the first other question.
    """
    if all(key.startswith(OF_COMMUNICATOR) for key in own):
        return {key: below(part, graft) for key, part in own.items()}
    if len(own) == 1 and next(iter(own)).endswith("_size=any"):
        (own,) = own.values()
    return graft(own)


def of_call(function: str, rules: Sequence[Rule], is_last: bool, own: Tree) -> Tree:
    """Return a branch that has rules for calls that an algorithm can serve."""
    branch = of_sizes(function, rules, own, is_last)
    for guard in reversed(GUARDS.get(function, ())):
        name, _, value = guard.partition("=")
        if value in OPPOSITE:
            branch = {guard: branch, f"{name}={OPPOSITE[value]}": own}
        else:
            branch = {guard: own, "count=any": branch}
    return branch


def of_sizes(function: str, rules: Sequence[Rule], own: Tree, is_last: bool) -> Tree:
    """Return a branch that asks for the size of a message."""
    if function == "barrier":
        return answer(rules[0], is_last)
    found: Tree = {}
    key = "total_msg_size" if function in TOTAL else "avg_msg_size"
    until = 0
    for rule in rules:
        if rule.first > until:
            found[f"{key}<={size_of(function, rule.ranks, rule.first - 1)}"] = own
        found[f"{key}<={size_of(function, rule.ranks, rule.last)}"] = answer(rule, is_last)
        until = rule.last + 1
    return found | {f"{key}=any": own}


def answer(rule: Rule, is_last: bool) -> Tree:
    """Return the end of a branch: the composition that hands a call on, or the algorithm."""
    name = rule.function.capitalize()
    if not is_last:
        kind = WHOLE.get(rule.function, "alpha")
        return {f"composition=MPIDI_{name}_intra_composition_{kind}": {}}
    algorithm = rule.algorithm
    settings: dict[str, Any] = dict(NEEDED.get((rule.function, algorithm.value), {}))
    settings |= {SETTINGS[key]: v for key, v in algorithm.settings.items() if key in SETTINGS}
    return {
        f"algorithm=MPIR_{name}_intra_{algorithm.value}": {
            f"{key}={value}": {} for key, value in settings.items()
        }
    }


def size_of(function: str, ranks: int, nbytes: int) -> int:
    """Return what MPICH compares with thresholds, for a benchmark's message size."""
    return nbytes * ranks if function in BLOCKS else nbytes


def read(texts: Sequence[str]) -> Choice:
    """Return what trees of compositions and of algorithms make MPICH choose for plain calls.

    A call is plain if its operation is built in, its datatype one byte, and not in place. Raises
    `UsageError` if MPICH could not read a tree.
    """
    parsed = []
    for text in texts:
        try:
            parsed.append(json.loads(text))
        except ValueError as error:
            raise UsageError(f"MPICH cannot read this file: {error}") from error
    for tree in parsed:
        check_keys(tree)
    algorithms = parsed[-1]

    def choice(function: str, ranks: int, nbytes: int) -> str | None:
        branch = algorithms.get(f"collective={function}")
        while isinstance(branch, dict):
            for key, below in branch.items():
                if key.startswith("algorithm="):
                    return key.partition("_intra_")[2] or None
                if holds(key, function, ranks, nbytes):
                    branch = below
                    break
            else:
                return None
        return None

    return choice


PLAIN = {
    "comm_type": "intra",
    "comm_hierarchy": "parent",
    "is_commutative": "yes",
    "is_op_built_in": "yes",
    "is_sendbuf_inplace": "no",
    "is_block_regular": "yes",
    "is_node_consecutive": "yes",
    "is_multi_threaded": "no",
}
"""What a plain call answers to questions without a number."""

NUMBERS = ("comm_size", "comm_avg_ppn", "avg_msg_size", "total_msg_size", "count")
"""Questions for a number."""


def check_keys(tree: Tree) -> None:
    """Raise `UsageError` for a key that MPICH does not know, which ends a job."""
    for key, below in tree.items():
        if key.startswith(("algorithm=", "composition=")):
            continue
        name, _, _ = parts(key)
        if name not in ("collective", *PLAIN, *NUMBERS):
            raise UsageError(f"MPICH cannot read this file: unknown key {key!r}")
        check_keys(below)


def holds(question: str, function: str, ranks: int, nbytes: int) -> bool:
    """Return the answer of a plain call to a question of a tree."""
    name, sign, value = parts(question)
    if value == "any":
        return True
    whole = nbytes if function.startswith("reduce_scatter") else nbytes * ranks
    size = {
        "comm_size": ranks,
        "comm_avg_ppn": ranks,
        "avg_msg_size": nbytes,
        "total_msg_size": whole,
        "count": nbytes,
    }.get(name)
    if size is None:
        return PLAIN.get(name) == value
    if value == "pow2":
        power = 1 << (ranks.bit_length() - 1)
        return size < power if sign == "<" else ranks == power
    if not value.isdigit():  # as many ranks as on the node
        return True
    return size <= int(value) if sign == "<=" else size < int(value)


def parts(question: str) -> tuple[str, str, str]:
    """Return the name, the sign and the value of a question."""
    found = re.fullmatch(r"\s*(\w+)\s*(<=|<|=)\s*(\w+)\s*", question)
    if found is None:
        raise UsageError(f"MPICH cannot read this file: unknown key {question!r}")
    return found[1], found[2], found[3]


def environment(files: Sequence[Path]) -> dict[str, str]:
    """Return the variables that make MPICH take files of compositions and algorithms, or the
    latter alone."""
    names = FILES["MPICH"][-len(files) :]
    return dict(zip(names, map(str, files), strict=True))


def unforced(function: str) -> dict[str, str]:
    """Return the variables that force an algorithm, which go before rules, without a choice."""
    mine = f"MPIR_CVAR_{function.upper()}"
    return {
        f"{mine}_INTRA_ALGORITHM": "auto",
        f"{mine}_DEVICE_COLLECTIVE": "1",
        "MPIR_CVAR_DEVICE_COLLECTIVES": "percoll",
    }


FORMAT = RulesFormat(
    "MPICH",
    ("mpich-compositions.json", "mpich-algorithms.json"),
    frozenset(name for name, rows in mpich.TABLE.items() if len(rows) > 1),
    write,
    read,
    environment,
    unforced,
)
