"""Training of neural networks on many ranks: what `omb_py.apps.train` is made of.

`Training` is what the user chooses. `networks` are lists of layers, which are cut into stages;
`stages` are the layers of one rank, and how long these compute. `kernel` trains: `pipeline` is what
passes between stages, and in which order. An `exchange` averages gradients over replicas as Horovod
and DDP do it.
"""

from __future__ import annotations

from dataclasses import dataclass

from omb_py.apps import option
from omb_py.benchmarks.algorithms import words
from omb_py.core.datatypes import Datatype, find_types
from omb_py.core.options import LIBRARY
from omb_py.core.text.units import MEBIBYTE

MILLISECOND = 1e-3

CONVOLUTIONAL_MODELS = (
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "vgg16",
    "mobilenet",
    "resnet20",
    "resnet110",
    "resnet1001",
)
RESIDUAL = {
    "resnet20": ("resnet110", 6),
    "resnet110": ("resnet110", 6),
    "resnet1001": ("resnet1001", 9),
}
"""Networks of any depth: the published one of their kind, and how many layers three blocks have.

He et al. 2016: 6n+2 layers, or with bottlenecks 9n+2, of n blocks in each of three groups."""

TRANSFORMERS = ("bert-base", "bert-large", "gpt2", "gpt2-medium")
"""Their parameters are known, but not what their layers compute."""


FUSION = {"horovod": 64 * MEBIBYTE, "ddp": 25 * MEBIBYTE}
"""Bytes of a bucket by default: ``HOROVOD_FUSION_THRESHOLD``, and DDP's ``bucket_cap_mb``."""


@dataclass(frozen=True)
class Training:
    """The network, its data, and the division of the work over the ranks.

    ``batch`` are the samples of a step over all ranks together (weak scaling: of one rank).
    """

    model: str = option(
        "resnet110",
        "The network whose gradients are sent.",
        choices=CONVOLUTIONAL_MODELS + TRANSFORMERS,
    )
    layers: int = option(
        0,
        "Depth of the residual networks for 32 x 32, 6n+2 or 9n+2 (1001); 0: as the name says.",
        minimum=0,
    )
    dtype: str = option(
        "float32",
        "Elements of gradients and activations in messages; weights and averages are float32.",
        choices=("float32", "float16", "bfloat16"),
    )
    strategy: str = option(
        "data",
        "Each rank some of the samples, some of the layers, or both.",
        choices=("data", "model", "hybrid"),
    )
    samples: int = option(1024, "Samples of an epoch.", minimum=1)
    batch: int = option(64, "Samples of a step, over all ranks.", minimum=1)
    epochs: int = option(3, "Passes over all samples; the first is reported separately.", minimum=1)
    fusion: int = option(
        None,
        "Gradients are fused up to so many bytes: 64M, with --buckets ddp 25M; 0 sends each alone.",
        kind="bytes",
    )
    buckets: str = option(
        "horovod",
        "Who decides what is fused: ddp's first bucket has 1 MiB, and each its last gradient more.",
        choices=tuple(FUSION),
    )
    allreduce: str = option(
        LIBRARY,
        "Average gradients by the library's allreduce, or by an algorithm of omb-py's own.",
        choices=words("allreduce"),
    )
    broadcast: str = option(
        LIBRARY,
        "Give all ranks the first weights likewise.",
        choices=words("bcast"),
    )
    overlap: bool = option(False, "Send gradients while earlier layers' are computed.")
    negotiate: bool = option(
        False, "Agree by allreduces of 8 bytes on the gradients that all ranks have, as Horovod."
    )
    ranks_per_node: int = option(
        0, "Pretend that a node has so many ranks; 0: as it is.", minimum=0
    )
    sample_time: float = option(1.0, "Milliseconds of computing for a sample.", minimum=0)
    evaluation_time: float = option(
        0.0, "Milliseconds in which rank 0 evaluates after each epoch; others wait.", minimum=0
    )
    micro_batches: int = option(4, "Parts of a batch that pass a pipeline one by one.", minimum=1)
    schedule: str = option(
        "gpipe",
        "All micro-batches forward, then all backward; or one forward, one backward.",
        choices=("gpipe", "1f1b"),
    )
    stages: int = option(2, "Ranks of each pipeline.", minimum=1)

    def __post_init__(self) -> None:
        if self.fusion is None:
            object.__setattr__(self, "fusion", FUSION[self.buckets])

    @property
    def datatype(self) -> Datatype:
        """The elements of messages but the first weights."""
        return find_types((self.dtype,))[0]

    @property
    def half(self) -> bool:
        """Return whether messages are in half precision, unlike what they are made from."""
        return self.dtype != "float32"
