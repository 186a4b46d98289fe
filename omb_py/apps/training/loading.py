"""Samples read from files while a network trains, and the time that it waits for them.

A data set lies in a few files of plain bytes: of each sample its bytes and its label. Threads read
samples ahead, one by one, and spend the time on each that decoding and augmenting would take; the
training waits where the next batch is not complete. With no such thread it reads by itself.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from omb_py.apps import Detail
from omb_py.apps.runtime.phases import Phase, Timed
from omb_py.apps.runtime.team import Team, nothing, together
from omb_py.apps.training import MEMORY, MILLISECOND, SMALL_MODELS, TRANSFORMERS, Training
from omb_py.apps.training.architectures import sample_shape
from omb_py.apps.training.data import Range, Samples
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.numbers import MEBIBYTE
from omb_py.tracing.recorder.annotation import phase
from omb_py.tracing.records.layout import LOADING

LABEL_BYTES = 8
"""A label is an int64 in the machine's byte order."""

MAX_FILE_BYTES = 64 * MEBIBYTE
MAX_FILES = 64
"""Each rank keeps all files open: beyond so many of `MAX_FILE_BYTES` they are larger instead."""

DESCRIPTION = "samples.json"
MAX_DESCRIPTION = 1 << 16
BLOCK = 64
"""Samples that are made at a time while files are written."""

TOKENS = (512, 2)
"""The shape of a text in bytes: 512 tokens of 16 bits."""


@dataclass(frozen=True)
class DataSet:
    """What the files of a data set hold: samples of a shape and type, in a known order."""

    data: str
    samples: int
    shape: tuple[int, ...]
    dtype: str
    seed: int

    @property
    def sample_bytes(self) -> int:
        """Of a sample without its label."""
        return prod(self.shape) * {"float32": 4, "uint8": 1}[self.dtype]

    @property
    def record_bytes(self) -> int:
        """Of a sample with its label."""
        return self.sample_bytes + LABEL_BYTES

    @property
    def samples_of_file(self) -> int:
        """Samples that a file has; the last one may have fewer."""
        least = -(-self.samples // MAX_FILES)
        return max(1, MAX_FILE_BYTES // self.record_bytes, least)

    @property
    def names(self) -> list[str]:
        """The files in their order."""
        files = -(-self.samples // self.samples_of_file)
        return [f"samples-{number:02d}.bin" for number in range(files)]

    def described(self) -> dict[str, Any]:
        """What tells it from other data sets, as JSON has it."""
        return {**asdict(self), "shape": list(self.shape), "label_bytes": LABEL_BYTES}


Content = Callable[[int, int], tuple[Any, Any]]
"""Samples and labels from one number to another, as arrays of NumPy in C order."""


class Batches(ABC):
    """Where a training gets its samples from: those of a rank, batch by batch.

    ``with reading()`` is a training from the beginning. In it ``next`` gives samples and labels of
    the batches in their order, over and over; outside of it, of any batch. What it gives is valid
    until the next call.
    """

    @abstractmethod
    def next(self, own: Range) -> tuple[Any, Any]:
        """The samples and labels of this rank's part of a batch, and arrays to compute with."""

    def reading(self) -> AbstractContextManager[None]:
        """A training."""
        return nullcontext()

    def misread(self) -> int:
        """Samples of all ranks that are not what was written; collective, and not timed."""
        return 0

    def parts(self, seconds: float) -> list[Detail]:
        """What there is to tell of a training that took so long on this rank; collective."""
        return []


class InMemory(Batches):
    """Arrays that hold all samples."""

    def __init__(self, samples: Any, labels: Any) -> None:
        self._samples, self._labels = samples, labels

    def next(self, own: Range) -> tuple[Any, Any]:
        return self._samples[slice(*own)], self._labels[slice(*own)]


class Nothing(Batches):
    """No samples, which a replayed model needs none of."""

    def next(self, own: Range) -> tuple[Any, Any]:
        return (), ()


def learned(team: Team, training: Training, samples: Samples, owns: Sequence[Range]) -> Batches:
    """Batches of samples that a network learns from: ``owns`` are this rank's parts of an epoch.

    Collective; raises `OmbError` on all ranks where files cannot be written or read.
    """
    if training.loader == MEMORY:
        return InMemory(samples.images, samples.labels)
    images, labels = map(team.on_host, (samples.images, samples.labels))
    digits = training.data == "digits" and training.model in SMALL_MODELS
    made = DataSet(
        "digits" if digits else "generated",
        training.samples,
        images.shape[1:],
        images.dtype.name,
        training.seed,
    )

    def content(start: int, stop: int) -> tuple[Any, Any]:
        return images[start:stop], labels[start:stop]

    return FromFiles(team, training, made, content, owns)


def replayed(team: Team, training: Training, owns: Sequence[Range]) -> Batches:
    """Batches of random bytes, as many as a sample of the model has; as `learned`."""
    if training.loader == MEMORY:
        return Nothing()
    shape = TOKENS if training.model in TRANSFORMERS else sample_shape(training)
    made = DataSet("random bytes", training.samples, shape, "uint8", training.seed)

    def content(start: int, stop: int) -> tuple[Any, Any]:
        import numpy as np

        samples = np.empty((stop - start, *shape), np.uint8)
        for number, sample in enumerate(samples, start):
            random = np.random.default_rng((training.seed, number))
            sample[...] = random.integers(0, 256, shape, np.uint8)
        return samples, np.arange(start, stop, dtype=np.int64)

    return FromFiles(team, training, made, content, owns)


class SampleFiles:
    """The files of a data set, open for reading; threads may share it."""

    def __init__(self, made: DataSet, folder: Path) -> None:
        """Raises `OmbError` where one is not there."""
        self._made, self._folder = made, folder
        self._files: list[int] = []
        weakref.finalize(self, _close, self._files)
        for name in made.names:
            try:
                self._files.append(os.open(folder / name, os.O_RDONLY))
            except OSError as error:
                raise OmbError(
                    f"cannot read {folder / name}: {error.strerror}; delete {folder}, so that its "
                    "samples are written again"
                ) from error

    def read(self, number: int, sample: memoryview, label: memoryview) -> None:
        """Read a sample and its label; raises `OmbError` where that is not all there."""
        made = self._made
        file, place = divmod(number, made.samples_of_file)
        path = self._folder / made.names[file]
        try:
            found = os.preadv(self._files[file], [sample, label], place * made.record_bytes)
        except OSError as error:
            raise OmbError(f"cannot read {path}: {error.strerror}") from error
        if found != made.record_bytes:
            raise OmbError(
                f"{path} ends within sample {number}: delete {self._folder}, so that its samples "
                "are written again"
            )


def _close(files: list[int]) -> None:
    while files:
        os.close(files.pop())


def open_samples(team: Team, made: DataSet, content: Content, data_folder: str) -> SampleFiles:
    """The files of a data set, written where they are not there yet. Collective.

    Without a folder's name they are in a temporary one of each node, which has no name any more
    once all ranks have opened its files: whatever a job ends by, nothing is left of it. Raises
    `SharedError` on all ranks where files cannot be written or read, or hold something else.
    """
    from mpi4py import MPI

    comm = team.comm
    node: Any = comm.Split_type(MPI.COMM_TYPE_SHARED)
    first_of_node = node.rank == 0
    try:
        if data_folder:
            folder = Path(data_folder) / f"samples-{made.samples}"
            for writes in (comm.rank == 0, first_of_node):  # nodes may share the folder, or not
                together(comm, partial(provide, made, content, folder) if writes else nothing)
            return together(comm, partial(SampleFiles, made, folder))
        written = partial(in_temporary_folder, made, content)
        temporary = node.bcast(together(comm, written if first_of_node else nothing))
        try:
            return together(comm, partial(SampleFiles, made, temporary))
        finally:
            if first_of_node:
                shutil.rmtree(temporary, ignore_errors=True)
    finally:
        node.Free()


def in_temporary_folder(made: DataSet, content: Content) -> Path:
    """A new folder with the files of a data set."""
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="omb-py-samples-"))
        write(made, content, folder)
    except OSError as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise OmbError(
            f"cannot write samples to {tempfile.gettempdir()}: {error.strerror}; choose a "
            "--data-folder"
        ) from error
    return folder


def provide(made: DataSet, content: Content, folder: Path) -> None:
    """Write the files of a data set into a folder, or see that it has them already.

    The folder appears when all of them are written. Raises `OmbError` where it holds others.
    """
    new = folder.with_name(f".{folder.name}-{os.getpid()}-{time.time_ns()}")
    try:
        if not folder.exists():
            new.mkdir(parents=True)
            write(made, content, new)
            try:
                new.rename(folder)
            except OSError:
                if not folder.exists():  # else another node was faster
                    raise
    except OSError as error:
        raise OmbError(
            f"cannot write samples to {folder}: {error.strerror}; choose another --data-folder"
        ) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    check_description(made, folder)


def write(made: DataSet, content: Content, folder: Path) -> None:
    """Write the files of a data set, and what they hold."""
    for number, name in enumerate(made.names):
        begin = number * made.samples_of_file
        end = min(begin + made.samples_of_file, made.samples)
        with (folder / name).open("wb") as file:
            for start in range(begin, end, BLOCK):
                samples, labels = content(start, min(start + BLOCK, end))
                for sample, label in zip(samples, labels, strict=True):
                    file.write(sample.tobytes() + label.tobytes())
    (folder / DESCRIPTION).write_text(json.dumps(made.described(), indent=1) + "\n")


def check_description(made: DataSet, folder: Path) -> None:
    """Raise `OmbError` where a folder does not hold this data set."""
    try:
        with (folder / DESCRIPTION).open(encoding="utf-8") as file:
            found = json.loads(file.read(MAX_DESCRIPTION))
    except (OSError, ValueError, RecursionError):
        found = None
    expected = made.described()
    if not isinstance(found, dict) or found.keys() != expected.keys():
        raise UsageError(
            f"{folder} holds no samples that omb-py train wrote: choose another --data-folder, or "
            "delete it"
        )
    for name, value in expected.items():
        if found[name] != value:
            raise UsageError(
                f"{folder} holds samples with {name} {found[name]}, not {value}: choose another "
                "--data-folder, or delete it"
            )


class Slot:
    """Memory for a batch, and how many samples of it are still to be read."""

    def __init__(self, made: DataSet, samples: int) -> None:
        import numpy as np

        self.samples: Any = np.empty((samples, *made.shape), made.dtype)
        self.labels: Any = np.empty(samples, np.int64)
        self.missing = 0
        arrays: list[Any] = [self.samples, self.labels]
        self._bytes = [
            [memoryview(array[place : place + 1]).cast("B") for array in arrays]
            for place in range(samples)
        ]

    def read(self, files: SampleFiles, number: int, place: int) -> None:
        """Read a sample to a place in the batch."""
        files.read(number, *self._bytes[place])


class FromFiles(Batches):
    """Batches read from files, by threads or by the training itself."""

    def __init__(
        self,
        team: Team,
        training: Training,
        made: DataSet,
        content: Content,
        owns: Sequence[Range],
    ) -> None:
        self._team, self._made, self._content = team, made, content
        self._owns, self._epochs = list(owns), training.epochs
        self._preprocess = training.preprocess_time * MILLISECOND
        self._spend = 0.0  # on each sample: only in a training
        self._workers, self._ahead = training.workers, training.prefetch
        self._files = open_samples(team, made, content, training.data_folder)
        largest = max((stop - start for start, stop in owns), default=0)
        slots = self._ahead + 1 if self._workers else 1
        self._slots = [Slot(made, largest) for _ in range(slots)]
        self._waiting = Timed(team.phases.seconds, Phase.LOAD)
        self._reader: ReadAhead | None = None

    def reading(self) -> AbstractContextManager[None]:
        return self._reading(self._preprocess, self._epochs)

    @contextmanager
    def _reading(self, spend: float, epochs: int) -> Iterator[None]:
        self._spend = spend
        try:
            if not self._workers:
                yield
                return
            owns = self._owns * epochs
            self._reader = ReadAhead(self._slots, owns, self._workers, self._read)
            with self._reader:
                yield
        finally:
            self._reader, self._spend = None, 0.0

    def next(self, own: Range) -> tuple[Any, Any]:
        with phase(LOADING), self._waiting:
            slot = self._read_all(own) if self._reader is None else self._reader.next(own)
            count, xp = own[1] - own[0], self._team.xp
            return xp.asarray(slot.samples[:count]), xp.asarray(slot.labels[:count])

    def misread(self) -> int:
        """Of an epoch that is read once more, in the way of a training, without preprocessing."""
        wrong = 0
        with self._reading(0.0, 1):
            for own in self._owns:
                images, labels = map(self._team.on_host, self.next(own))
                expected = self._content(*own)
                right = labels == expected[1]
                right &= (images == expected[0]).all(axis=tuple(range(1, images.ndim)))
                wrong += int((~right).sum())
        return int(self._team.comm.allreduce(wrong))

    def parts(self, seconds: float) -> list[Detail]:
        waited = self._team.comm.allgather(self._team.phases.seconds[Phase.LOAD] / seconds)
        mean = 100 * sum(waited) / len(waited)
        return [
            Detail("Waiting for data", value=mean, unit="% of a rank's time, mean"),
            Detail("Bytes of a sample", value=self._made.record_bytes),
        ]

    def _read_all(self, own: Range) -> Slot:
        slot = self._slots[0]
        never = threading.Event()
        for place in range(own[1] - own[0]):
            self._read(slot, own[0] + place, place, never)
        return slot

    def _read(self, slot: Slot, number: int, place: int, stop: threading.Event) -> None:
        """Read and preprocess a sample, unless ``stop`` comes in between."""
        slot.read(self._files, number, place)
        if self._spend:
            stop.wait(self._spend)


Read = Callable[[Slot, int, int, threading.Event], None]
"""Reads a sample of a number to a place of a slot."""


class ReadAhead:
    """Threads that read the samples of batches in their order, into slots by turns.

    Slots are one more than the batches that may be ready or being read ahead of the one in use.
    ``with`` it they run; they end with it, whatever it ends by.
    """

    def __init__(
        self, slots: Sequence[Slot], batches: Sequence[Range], workers: int, read: Read
    ) -> None:
        self._slots, self._batches, self._read = slots, batches, read
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._given = -1  # the batch in use
        self._at, self._place = 0, 0  # the sample to be read next: its batch, its place there
        for slot, (start, stop) in zip(slots, batches, strict=False):
            slot.missing = stop - start
        self._threads = [
            threading.Thread(target=self._work, name=f"loader {number}", daemon=True)
            for number in range(workers)
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def next(self, own: Range) -> Slot:
        """The next batch, once it is read; raises what a thread failed by.

        The batch before is given back, and read over.
        """
        with self._changed:
            last, self._given = self._given, self._given + 1
            assert self._batches[self._given] == own, "batches come in their order"
            coming = last + len(self._slots)
            if last >= 0 and coming < len(self._batches):
                start, stop = self._batches[coming]
                self._slots[coming % len(self._slots)].missing = stop - start
            self._changed.notify_all()
            slot = self._slots[self._given % len(self._slots)]
            while slot.missing and self._failure is None:
                self._changed.wait()
            if self._failure is not None:
                raise self._failure
            return slot

    def _work(self) -> None:
        try:
            while (task := self._take()) is not None:
                batch, place = task
                slot = self._slots[batch % len(self._slots)]
                self._read(slot, self._batches[batch][0] + place, place, self._stop)
                with self._changed:
                    slot.missing -= 1
                    if not slot.missing:
                        self._changed.notify_all()
        except BaseException as failure:  # the training raises it
            with self._changed:
                self._failure = failure
                self._changed.notify_all()

    def _take(self) -> tuple[int, int] | None:
        """The batch and place of the sample to be read next; None where there is none."""
        with self._changed:
            while not self._stop.is_set() and self._failure is None:
                while self._at < len(self._batches) and self._place == self._samples(self._at):
                    self._at, self._place = self._at + 1, 0
                if self._at == len(self._batches):
                    return None
                if self._at < self._given + len(self._slots):
                    self._place += 1
                    return self._at, self._place - 1
                self._changed.wait()
            return None

    def _samples(self, batch: int) -> int:
        start, stop = self._batches[batch]
        return stop - start
