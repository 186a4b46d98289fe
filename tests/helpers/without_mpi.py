"""Ranks of omb-py started without MPI, as by ``torchrun``."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

HOST = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


def start(
    *words: str,
    ranks: int = 2,
    cwd: Path | None = None,
    python: str = sys.executable,
    **changes: dict[int, str],
) -> list[subprocess.Popen[str]]:
    """Ranks started as by ``torchrun``; ``changes`` are values by variable and rank."""
    port = str(free_port())
    found = []
    for rank in range(ranks):
        variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
        variables |= {"MASTER_ADDR": HOST, "MASTER_PORT": port}
        variables |= {name: by_rank[rank] for name, by_rank in changes.items() if rank in by_rank}
        found.append(
            subprocess.Popen(
                [python, "-m", "omb_py", *words],
                env=os.environ | variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=cwd,
            )
        )
    return found


def ended(ranks: list[subprocess.Popen[str]], within: float = 120) -> tuple[list[int], str, str]:
    """Exit codes of the ranks, and what they printed to both streams."""
    printed = [rank.communicate(timeout=within) for rank in ranks]
    return (
        [rank.returncode for rank in ranks],
        "".join(out for out, _ in printed),
        "".join(error for _, error in printed),
    )
