"""What bindings that pickle send: the array itself, or an object of another kind with its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import MissingPackageError

CHUNK = 64
"""Bytes of a value of a dict."""

ARRAYS = 8
"""Arrays of a list, and columns of a table."""


@dataclass(frozen=True)
class ObjectKind:
    """How bytes become an object, and an object that arrived becomes bytes again."""

    name: str
    made: Callable[[bytes], Any]
    back: Callable[[Any], bytes]
    summary: str


def _dict(data: bytes) -> dict[str, bytes]:
    return {f"key {i}": data[i : i + CHUNK] for i in range(0, len(data), CHUNK)}


def _arrays(data: bytes) -> list[Any]:
    import numpy as np

    return [part.copy() for part in np.array_split(np.frombuffer(data, np.uint8), ARRAYS)]


def _joined(arrays: list[Any]) -> bytes:
    return b"".join(array.tobytes() for array in arrays)


def _table(data: bytes) -> tuple[Any, bytes]:
    import numpy as np

    try:
        import pandas as pd
    except ImportError as error:
        raise MissingPackageError("--object dataframe", "pandas", "pip install pandas") from error
    rows = len(data) // ARRAYS
    whole = np.frombuffer(data[: rows * ARRAYS], np.uint8).reshape(ARRAYS, rows)
    return pd.DataFrame({f"column {i}": part for i, part in enumerate(whole)}), data[
        rows * ARRAYS :
    ]


def _of_table(sent: tuple[Any, bytes]) -> bytes:
    table, rest = sent
    return b"".join(table[name].to_numpy().tobytes() for name in table) + rest


KINDS = {
    kind.name: kind
    for kind in (
        ObjectKind("bytes", bytes, bytes, "bytes"),
        ObjectKind("list", list, bytes, "a list of a whole number for each byte"),
        ObjectKind(
            "dict", _dict, lambda sent: b"".join(sent.values()), "a dict of 64 bytes for each key"
        ),
        ObjectKind("arrays", _arrays, _joined, "a list of 8 NumPy arrays"),
        ObjectKind("dataframe", _table, _of_table, "a pandas table of 8 columns, and what is left"),
    )
}
"""By the word of ``--object``."""
