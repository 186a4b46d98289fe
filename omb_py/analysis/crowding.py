"""Hosts with more ranks than cores, as the metadata of a run has it."""

from __future__ import annotations

import re
from collections.abc import Mapping


def crowded_hosts(data: Mapping[str, str]) -> list[tuple[str, int, int]]:
    """The hosts of a run that had more ranks than logical cores, with how many of each.

    >>> crowded_hosts({"hosts": "a:4 b:2", "processor": "AMD EPYC, 2 logical cores"})
    [('a', 4, 2)]
    """
    cores = re.search(r"(\d+) logical cores?", data.get("processor", ""))
    hosts = re.findall(r"(\S+):(\d+)(?=\s|,|$)", data.get("hosts", ""))
    available = int(cores[1]) if cores else 0
    return [
        (host, int(ranks), available) for host, ranks in hosts if cores and int(ranks) > available
    ]
