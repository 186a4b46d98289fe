"""Transformers: BERT's encoder and GPT-2's decoder, as Hugging Face builds them.

Devlin et al.: BERT, NAACL 2019, with the layer that pools for a classifier; Radford et al.:
Language Models are Unsupervised Multitask Learners, 2019, whose output layer is its embedding.
"""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.training.tensors import Tensor, normalization, weighted

BERT_WORDS, BERT_POSITIONS, BERT_SEGMENTS = 30_522, 512, 2
GPT2_WORDS, GPT2_POSITIONS = 50_257, 1024
"""What is embedded: words of the vocabulary, places in a text, and which of two texts it is."""

INNER = 4
"""The layer inside a block's perceptron is so many times as wide as the block."""


def bert(layers: int, width: int) -> Iterator[Tensor]:
    """An encoder of so many layers."""
    yield Tensor("embeddings.word", (BERT_WORDS, width))
    yield Tensor("embeddings.position", (BERT_POSITIONS, width))
    yield Tensor("embeddings.segment", (BERT_SEGMENTS, width))
    yield from normalization("embeddings.norm", width)
    for layer in range(layers):
        name = f"layer.{layer}"
        for part in ("query", "key", "value", "output"):
            yield from _dense(f"{name}.attention.{part}", width, width)
        yield from normalization(f"{name}.attention.norm", width)
        yield from _dense(f"{name}.inner", width, INNER * width)
        yield from _dense(f"{name}.outer", INNER * width, width)
        yield from normalization(f"{name}.norm", width)
    yield from _dense("pooler", width, width)


def gpt2(layers: int, width: int) -> Iterator[Tensor]:
    """A decoder of so many layers."""
    yield Tensor("word", (GPT2_WORDS, width))
    yield Tensor("position", (GPT2_POSITIONS, width))
    for layer in range(layers):
        name = f"layer.{layer}"
        yield from normalization(f"{name}.norm1", width)
        yield from _dense(f"{name}.attention.inputs", width, 3 * width)
        yield from _dense(f"{name}.attention.output", width, width)
        yield from normalization(f"{name}.norm2", width)
        yield from _dense(f"{name}.inner", width, INNER * width)
        yield from _dense(f"{name}.outer", INNER * width, width)
    yield from normalization("norm", width)


def _dense(name: str, given: int, gives: int) -> Iterator[Tensor]:
    return weighted(name, given, gives, bias=gives)
