"""Training of neural networks on many ranks: what `omb_py.apps.train` is made of.

`Training` is what the user chooses. Networks compute gradients (`networks`), architectures give
the shapes of real models' gradients (`architectures`), and an exchange averages gradients over the
ranks as Horovod and DDP do it (`exchange`). A pipeline splits layers over ranks (`pipeline`).
"""

from __future__ import annotations

from dataclasses import dataclass

from omb_py.apps import option
from omb_py.benchmarks.algorithms import words
from omb_py.core.options import LIBRARY
from omb_py.core.text.numbers import MEBIBYTE

REAL_MODELS = ("mlp", "cnn")
"""Models that really learn; all others are replayed, with the shapes of their gradients."""

REPLAYED_MODELS = (
    "resnet50",
    "resnet101",
    "resnet152",
    "vgg16",
    "bert-base",
    "bert-large",
    "gpt2",
    "gpt2-medium",
    "resnet110",
    "resnet1001",
)


@dataclass(frozen=True)
class Training:
    """What is trained, on what, and how the ranks share the work.

    ``batch`` are the samples of a step over all ranks together (weak scaling: of one rank).
    """

    model: str = option(
        "mlp",
        "What learns (mlp, cnn), or whose gradients are replayed.",
        choices=REAL_MODELS + REPLAYED_MODELS,
    )
    strategy: str = option(
        "data",
        "Each rank some of the samples, some of the layers, or both.",
        choices=("data", "model", "hybrid"),
    )
    data: str = option(
        "digits",
        "Real handwritten digits of scikit-learn, or generated ones.",
        choices=("digits", "generated"),
    )
    samples: int = option(1024, "Samples of an epoch.", minimum=1)
    batch: int = option(64, "Samples of a step, over all ranks.", minimum=1)
    epochs: int = option(3, "Passes over all samples; the first is reported separately.", minimum=1)
    hidden: int = option(64, "Width of the hidden layers of mlp.", minimum=1)
    layers: int = option(4, "Layers of mlp.", minimum=2)
    learning_rate: float = option(0.1, "Of stochastic gradient descent.", minimum=0)
    fusion: int = option(
        64 * MEBIBYTE,
        "Gradients are fused up to so many bytes; 0 sends each by itself.",
        kind="bytes",
    )
    buckets: str = option(
        "horovod",
        "Who decides what is fused: ddp's first bucket has 1 MiB, and each its last gradient more.",
        choices=("horovod", "ddp"),
    )
    negotiation: str = option(
        "none",
        "How ranks agree on which gradients are ready, as Horovod does.",
        choices=("none", "cached", "uncached"),
    )
    cycle_time: float = option(1.0, "Milliseconds between two negotiations.", minimum=0)
    compression: str = option("none", "Send gradients in half precision.", choices=("none", "fp16"))
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
    hierarchical: bool = option(False, "Reduce inside each node first, then across nodes.")
    ranks_per_node: int = option(
        0, "Pretend that a node has so many ranks; 0: as it is.", minimum=0
    )
    compute: str = option(
        "delay", "What replayed models do instead of computing.", choices=("delay", "matmul")
    )
    sample_time: float = option(
        1.0, "Milliseconds that a replayed model computes for a sample.", minimum=0
    )
    micro_batches: int = option(4, "Parts of a batch that pass a pipeline one by one.", minimum=1)
    stages: int = option(2, "Ranks of a pipeline, where there are several of them.", minimum=1)
    seed: int = option(1, "Of weights and generated samples.", minimum=0)
