"""Ranks that ``torchrun`` started, kept together by torch: by its store, and by gloo.

They find each other as a training program's ranks do, by torchrun's store. torch ends a rank that
waits for one that is gone, and torchrun ends all ranks when one fails.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from omb_py.core.errors import UnsupportedError, UsageError, needing
from omb_py.core.job import ESCAPED, Job, Mailbox, Op
from omb_py.core.job.address import host_identity, interface_of, own_address
from omb_py.core.mpi import launcher

with needing("torch"):
    import torch
    import torch.distributed as dist
    from torch.distributed.rendezvous import rendezvous

CONNECT_SECONDS = 60.0
PATIENCE = timedelta(days=30)
"""Time that a rank waits for another one that exists: as in MPI, to the end of its job."""

GLOO_INTERFACE = "GLOO_SOCKET_IFNAME"
"""The variable that names the interface on which gloo listens."""


class TorchJob(Job):
    """Ranks of one of gloo's groups, which they find by ``store``."""

    def __init__(self, store: Any, rank: int, ranks: int, name: str) -> None:
        """Connect the ranks as the group ``name``; collective.

        Raises `UnsupportedError` if torch cannot.
        """
        super().__init__(rank, ranks)
        self.store = store
        self.whole: TorchJob | None = None
        try:
            own = dist.PrefixStore(name, store)
            self._gloo = dist.ProcessGroupGloo(own, rank, ranks, timeout=PATIENCE)
        except (AttributeError, RuntimeError) as error:
            raise UnsupportedError(
                f"torch {torch.__version__} cannot connect the ranks by gloo ({_brief(error)}): "
                f"choose a network by --interface or {GLOO_INTERFACE}, or start them with mpiexec"
            ) from error

    def allgather(self, data: bytes) -> list[bytes]:
        lengths = [int(length) for length in self._gathered(torch.tensor([len(data)]))]
        longest = max(*lengths, 1)  # gloo divides by the length
        own = torch.frombuffer(bytearray(data.ljust(longest, b"\0")), dtype=torch.uint8)
        gathered = self._gathered(own)
        return [
            bytes(memoryview(one.numpy())[:length])
            for one, length in zip(gathered, lengths, strict=True)
        ]

    def gather(self, data: bytes) -> list[bytes]:
        gathered = self.allgather(data)
        return [] if self.rank else gathered

    def bcast(self, data: bytes, root: int = 0) -> bytes:
        return self.allgather(data if self.rank == root else b"")[root]

    def barrier(self) -> None:
        self._finish(self._gloo.barrier)

    def reduce(self, values: array[float], op: Op) -> array[float]:
        result = self.allreduce(values, op)
        return array("d", bytes(8 * len(values))) if self.rank else result

    def allreduce(self, values: array[float], op: Op) -> array[float]:
        if not values:
            return array("d")
        result = array("d", values)
        tensor = torch.frombuffer(result, dtype=torch.float64)
        how = {"sum": dist.ReduceOp.SUM, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}[op]
        self._finish(self._gloo.allreduce, tensor, how)
        return result

    def _split_by_host(self) -> Job:
        hosts = self.allgather(host_identity().encode())
        same = [rank for rank, host in enumerate(hosts) if host == hosts[self.rank]]
        name = f"omb-py host {same[0]}"
        return TorchJob(self.store, same.index(self.rank), len(same), name)

    def among(self, ranks: Sequence[int], name: int) -> Job:
        own = f"omb-py part {name} of {ranks[0]}"  # other ranks may have the same name
        part = TorchJob(self.store, ranks.index(self.rank), len(ranks), own)
        part.whole, part.is_part = self, True
        return part

    def mailbox(self) -> Mailbox:
        return StoreMailbox(dist.PrefixStore("omb-py mail", self.store), self.rank)

    def world(self) -> Job:
        return self if self.whole is None else self.whole

    def free(self) -> None:
        self.barrier()
        self._gloo = None  # joins its threads, which must not outlive Python

    def abort(self, exit_code: int) -> NoReturn:
        os._exit(exit_code)

    def close(self) -> None:
        self.free()

    def describe(self) -> dict[str, str]:
        return {"started_by": "torchrun"}

    def _gathered(self, tensor: Any) -> list[Any]:
        gathered = [torch.empty_like(tensor) for _ in range(self.ranks)]
        self._finish(self._gloo.allgather, gathered, tensor)
        return gathered

    def _finish(self, start: Callable[..., Any], *arguments: Any) -> None:
        """Start an operation of gloo and wait for it; end this rank if another one is gone.

        Torchrun may be faster.
        """
        try:
            start(*arguments).wait()
        except RuntimeError:
            time.sleep(launcher.LAUNCHER_SECONDS)
            os._exit(1)


class StoreMailbox(Mailbox):
    """Texts in torchrun's store, numbered for each rank that gets them."""

    def __init__(self, store: Any, rank: int) -> None:
        self._store, self._rank = store, rank
        self._read = 0

    def send(self, rank: int, text: str) -> None:
        number = self._store.add(f"sent to {rank}", 1)
        self._store.set(f"{rank} {number}", f"{self._rank} {text}".encode(errors=ESCAPED))

    def receive(self) -> list[tuple[int, str]]:
        found = []
        sent = self._store.add(f"sent to {self._rank}", 0)  # torch before 2.4 has no check
        for number in range(self._read + 1, sent + 1):
            key = f"{self._rank} {number}"
            sender, _, text = self._store.get(key).decode(errors=ESCAPED).partition(" ")
            self._store.delete_key(key)
            found.append((int(sender), text))
        self._read = sent
        return found


def world(interface: str | None) -> TorchJob:
    """Return the job of all ranks of torchrun, over ``interface`` if one is named; collective.

    gloo listens only there: on loopback if torchrun started ranks on one host. Raises
    `UsageError` if the ranks do not find each other.
    """
    one_host = os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE")
    known = interface_of(own_address(one_host, interface))
    if known is not None:
        os.environ.setdefault(GLOO_INTERFACE, known)
    try:
        found = rendezvous("env://", timeout=timedelta(seconds=CONNECT_SECONDS))
        store, rank, ranks = next(found)
    except (RuntimeError, ValueError) as error:
        raise UsageError(
            f"torchrun's store cannot be reached ({_brief(error)}): start the ranks anew, and name "
            "a host and port that all of them reach by torchrun's --rdzv_endpoint"
        ) from error
    return TorchJob(store, rank, ranks, "omb-py")


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
