"""Which gradients travel together: plans of buckets, from sizes in the order of arrival.

A plan is a list of stretches ``(begin, end)`` of the arriving gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omb_py.apps.training import Training
from omb_py.core.text.numbers import MEBIBYTE

FIRST_BUCKET = 1 * MEBIBYTE
"""Bytes at which DDP closes its first bucket, so that the first message leaves early."""

Plan = list[tuple[int, int]]


def plan_of(training: Training, sizes: Sequence[int]) -> Plan:
    """The buckets of all gradients, of so many bytes each, as ``training`` asks for them."""
    if training.fusion == 0:
        return [(place, place + 1) for place in range(len(sizes))]
    if training.buckets == "ddp":
        return ddp(sizes, training.fusion)
    return horovod(sizes, training.fusion)


def horovod(sizes: Sequence[int], threshold: int) -> Plan:
    """Horovod's: one more gradient as long as all together have at most ``threshold`` bytes.

    One that is larger than that travels alone. (From ``Controller::FuseResponses``; that it looks
    past gradients of another type makes no difference where all have one type.)
    """
    return list(_horovod(sizes, threshold))


def _horovod(sizes: Sequence[int], threshold: int) -> Iterator[tuple[int, int]]:
    begin = fused = 0
    for place, size in enumerate(sizes):
        if place > begin and fused + size > threshold:
            yield begin, place
            begin, fused = place, 0
        fused += size
    if sizes:
        yield begin, len(sizes)


def ddp(sizes: Sequence[int], limit: int, first: int = FIRST_BUCKET) -> Plan:
    """PyTorch's DistributedDataParallel: a bucket is closed as soon as it has ``limit`` bytes.

    So its last gradient may take it beyond. The first one is closed at ``first``. (From
    ``compute_bucket_assignment_by_size``, in the order that DDP knows after its first step.)
    """
    return list(_ddp(sizes, limit, first))


def _ddp(sizes: Sequence[int], limit: int, first: int) -> Iterator[tuple[int, int]]:
    begin = held = 0
    for end, size in enumerate(sizes, start=1):
        held += size
        if held >= (first if begin == 0 else limit):
            yield begin, end
            begin, held = end, 0
    if begin < len(sizes):
        yield begin, len(sizes)
