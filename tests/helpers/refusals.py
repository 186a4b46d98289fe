"""Refusals: an exit code or exception, and a sentence that names a value and what helps."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import Finished
from tests.helpers.pace import slowness

HANG_SECONDS = 30.0
"""From which a refusal is one that waited for something: jobs start in a second, on a busy machine
in a few."""

ANY_CODE = (1, 2, 3, 5, 6, 8)
"""Exit codes of a command that cannot do what it is asked."""

ENDED = range(1, 256)
"""Exit codes of a launcher whose ranks were ended."""


def missing(words: str, text: object) -> list[str]:
    """Return the words, separated by blanks, that a text does not contain."""
    return [word for word in words.split() if word not in str(text)]


@contextmanager
def refuses(error: type[Exception] | tuple[type[Exception], ...], words: str) -> Iterator[None]:
    """Assert that a block raises the error, in one line that contains all ``words``."""
    with pytest.raises(error) as caught:
        yield
    assert_names(caught.value, words)


def assert_names(sentence: object, words: str) -> None:
    """Assert that a sentence is one line and contains all ``words``, which blanks separate."""
    assert len(str(sentence).splitlines()) == 1, sentence
    assert not missing(words, sentence), sentence


def assert_refused(done: Finished, code: int | Container[int], words: str) -> None:
    """Assert that a command ended with ``code`` and one sentence that contains all ``words``.

    Any of several codes will do. Notes, which begin with "note:", may stand next to the sentence;
    a traceback may not. The command ends within `HANG_SECONDS`, more on a slow machine.
    """
    assert done.code in ([code] if isinstance(code, int) else code), done.err
    assert done.seconds < HANG_SECONDS * slowness(), done.err
    assert "Traceback" not in done.err
    (sentence,) = [one for one in done.sentences if not one.startswith("omb-py: note: ")]
    assert_names(sentence, words)
