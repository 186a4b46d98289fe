"""One rank's iterations by several threads, which take them in turn."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

from omb_py.core.calls.loop import Loop, no_garbage_collection


class ThreadLoop(Loop):
    """Runs the loops of several threads at once: iteration ``i`` belongs to loop ``i % n``."""

    def __init__(self, loops: Sequence[Loop], enter: Callable[[], None]) -> None:
        """``enter`` is what each thread does first (`Buffer.enter`)."""
        self._loops = loops
        self._enter = enter

    def run(self, first: int, seconds: array[float]) -> None:
        count = len(self._loops)
        parts = []
        for number in range(count):
            begin = (number - first) % count
            mine = array("d", bytes(8 * len(range(begin, len(seconds), count))))
            parts.append((begin, mine))
        with no_garbage_collection():
            together(
                [
                    partial(loop.run, (first + begin) // count, mine)
                    for loop, (begin, mine) in zip(self._loops, parts, strict=True)
                ],
                self._enter,
            )
        for begin, mine in parts:
            seconds[begin::count] = mine


def together(tasks: Sequence[Callable[[], Any]], enter: Callable[[], None]) -> list[Any]:
    """Run each task in a thread of its own, after ``enter``, and return the results.

    Raises the first error of a thread at once: the other threads may wait in MPI for messages that
    never come.
    """
    results: list[Any] = [None] * len(tasks)
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def do(number: int) -> None:
        try:
            enter()
            results[number] = tasks[number]()
        except BaseException as error:
            ended.put(error)
        else:
            ended.put(None)

    for number in range(len(tasks)):
        Thread(target=do, args=(number,), daemon=True).start()
    for _ in tasks:
        if (error := ended.get()) is not None:
            raise error
    return results
