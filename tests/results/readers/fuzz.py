"""Tries readers with damaged files: ``python tests/results/readers/fuzz.py --seconds 60 --seed 1``.

Every example of every format is cut and damaged in bytes, lines and numbers. No reader may raise,
`load` raises one sentence or nothing, and 20 MB of anything are read in seconds. It prints how many
files it tried, and keeps those that failed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from omb_py.analysis.table import load  # noqa: E402
from omb_py.core.errors import OmbError  # noqa: E402
from omb_py.results.readers import all_readers  # noqa: E402
from tests.helpers.reading import read  # noqa: E402

LARGE, SLOW = 20 << 20, 20.0
"""Bytes, and seconds of the processor in which so many are read."""

MAX_BYTES = 24_000
ODD = (b'"', b"\x00", b"\r", b"nan", b"-1", b"1.5", b"1e999", b"9" * 400, b"{" * 9000, b"[]", b"")


def examples() -> dict[str, bytes]:
    """Small files of every format by their names."""
    paths = [*(ROOT / "tests" / "data").rglob("*"), *(ROOT / "results").glob("*.csv")]
    found = {
        str(path.relative_to(ROOT)): path.read_bytes()
        for path in sorted(paths)
        if path.suffix in (".txt", ".csv", ".json", ".log", ".out")
    }
    return {
        name: content[: content.rfind(b"\n", 0, MAX_BYTES) + 1] for name, content in found.items()
    }


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def lost_or_twice(content: bytes, chance: random.Random) -> bytes:
    first, length = chance.randrange(len(content)), chance.choice((1, 2, 5, 20, 100, 1000))
    return content[:first] + content[first + chance.choice((-length, length)) :]


def inserted(content: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(content))
    return content[:first] + chance.choice((*ODD, chance.randbytes(9))) + content[first:]


def shuffled(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(chance.sample(lines, chance.randint(0, len(lines))))


def odd_number(content: bytes, chance: random.Random) -> bytes:
    place = chance.choice([*re.finditer(rb"\d+(?:\.\d+)?|$", content)])
    return content[: place.start()] + chance.choice(ODD) + content[place.end() :]


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(cut, lost_or_twice, inserted, shuffled, odd_number),
)


def read_large(chance: random.Random) -> int:
    """Read 20 MB of several kinds, each of which claims every format; how many were too slow."""
    marks = b"\n".join(mark for reader in all_readers().values() for mark in reader.marks) + b"\n"
    files = [
        content for name, content in examples().items() if name.endswith(("mpi1.txt", ".json"))
    ]
    parts = (b"1 2.00\n", b"1 2.00 ", b"node17: WARNING: a message # 12\n", *files)
    contents = [marks + part * (LARGE // len(part)) for part in parts if part]
    slow = 0
    for content in (marks + chance.randbytes(LARGE), *contents):
        begin = time.process_time()
        rows = len(read("large", content).rows)
        taken = time.process_time() - begin
        slow += taken > SLOW
        print(f"{content[len(marks) :][:30]!r} …: {taken:.1f} s, {rows} rows")
    return slow


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--no-large", action="store_true")
    asked = options.parse_args()
    chance = random.Random(asked.seed)
    keep = Path(tempfile.mkdtemp(prefix="fuzz-"))
    files = [(name, content) for name, content in examples().items() if content]
    failed = 0 if asked.no_large else read_large(chance)
    tried, end = 0, time.perf_counter() + asked.seconds
    while time.perf_counter() < end:
        name, content = chance.choice(files)
        for mutation in chance.sample(MUTATIONS, chance.randint(1, 2)):
            content = mutation(content or b"\n", chance)
        tried += 1
        path = keep / f"{tried}-{Path(name).name}"
        path.write_bytes(content)
        try:
            load(path)
        except OmbError as error:
            failed += not str(error) or "\n" in str(error)
        except Exception:
            failed += 1
            print(f"{path}: {traceback.format_exc()}")
            continue
        path.unlink()
    print(f"{tried} files tried, {failed} failures, kept in {keep}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
