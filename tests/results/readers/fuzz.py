"""Tries readers with damaged files: ``python tests/results/readers/fuzz.py --seconds 60 --seed 1``.

Every fixture of every format is cut, mixed with launchers' noise, and damaged in bytes and lines.
No reader may raise; a cut file gives the rows before the cut, noise changes nothing; `load` raises
`OmbError` or nothing; 20 MB of anything are read in seconds. It prints how many files it tried,
and keeps those that failed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from omb_py.analysis.table import load  # noqa: E402
from omb_py.core.errors import OmbError  # noqa: E402
from omb_py.results.readers import Found, all_readers  # noqa: E402
from tests.helpers.damage import NOISE, without_place  # noqa: E402
from tests.helpers.reading import read  # noqa: E402

LARGE = 20 << 20
SLOW = 5.0
SLOW_TABLES = 20.0
"""Seconds of the processor in which so many bytes are read: of nothing useful, and of rows."""

DOCUMENT = "all_0.8.json"
"""A file that noise between its lines damages."""

MAX_BYTES = 24_000
LOADED = 40
"""Every so many-th damaged file is written and given to `load`, too."""


def fixtures() -> dict[str, bytes]:
    """Small files of every format by a name that they might have."""
    found = {str(path.relative_to(ROOT)): path.read_bytes() for path in recorded()}
    for path in sorted((ROOT / "results").glob("*.csv")):
        text = start(path.read_bytes())
        found[str(path.relative_to(ROOT))] = text
        found[f"results/{path.stem}.json"] = as_json(text)
    return {name: start(content) for name, content in found.items() if content}


def recorded() -> list[Path]:
    """Recorded outputs of other suites."""
    files = (ROOT / "tests" / "data").rglob("*")
    return sorted(path for path in files if path.suffix in (".txt", ".csv", ".json"))


def start(content: bytes) -> bytes:
    """The first whole lines of a file, as many as are quickly read."""
    if len(content) <= MAX_BYTES:
        return content
    return content[: content.rindex(b"\n", 0, MAX_BYTES) + 1]


def as_json(content: bytes) -> bytes:
    """A CSV file of ours as the JSON that omb-py writes."""
    items: list[dict[str, Any]] = []
    names: list[str] = []
    for line in content.decode().splitlines():
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            if name == "run":
                items.append({"metadata": {}})
            if items and "metadata" in items[-1]:
                items[-1]["metadata"][name] = value
        elif line.startswith("run,"):
            names = line.split(",")
        else:
            cells = zip(names, line.split(","), strict=False)
            items.append({name: number(cell) for name, cell in cells})
    return ("[\n" + ",\n".join(map(json.dumps, items)) + "\n]\n").encode()


def number(cell: str) -> Any:
    """A cell as JSON has it."""
    try:
        return None if not cell else float(cell) if "." in cell else int(cell)
    except ValueError:
        return cell


def rows(found: Found) -> list[dict[str, Any]]:
    """All rows of a file; lines of tables as they stand."""
    lines = [
        {"text": line, "columns": table.columns, "line": place}
        for table in found.tables
        for place, line in table.lines()
    ]
    return found.rows + lines


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def noisy(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    for _ in range(chance.randint(1, 5)):
        noise = chance.choice(NOISE).encode() + b"\n"
        lines.insert(chance.randint(0, len(lines)), noise)
    return b"".join(lines)


def lost(content: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(content))
    return content[:first] + content[first + chance.choice((1, 2, 5, 20, 100, 1000)) :]


def wrong(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5, 40))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def twice(content: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(content))
    return content[: first + chance.choice((1, 10, 60, 600))] + content[first:]


def inserted(content: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(content))
    odd = (b'"', b"\x00", b"\r", b"nan", b"-1", b"9" * 400, b"{" * 9000, b"\xff\xfe", b"1e999")
    return content[:first] + chance.choice((*odd, chance.randbytes(9))) + content[first:]


def shuffled(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    for _ in range(chance.randint(1, 4)):
        one, other = (chance.randrange(len(lines)) for _ in range(2))
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def thinned(content: bytes, chance: random.Random) -> bytes:
    part = chance.random()
    return b"".join(line for line in content.splitlines(keepends=True) if chance.random() > part)


def odd_number(content: bytes, chance: random.Random) -> bytes:
    places = list(re.finditer(rb"\d+(?:\.\d+)?", content)) or list(re.finditer(b"$", content))
    place = chance.choice(places)
    odd = (b"-1", b"1.5", b"1e999", b"nan", b'"x"', b"null", b"true", b"9" * 400, b"[]", b"", b"0")
    return content[: place.start()] + chance.choice(odd) + content[place.end() :]


def other_ends(content: bytes, chance: random.Random) -> bytes:
    return content.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b" \n", b"\x0b")))


def wide(content: bytes, chance: random.Random) -> bytes:
    text = content.decode(errors="replace")
    return text.encode(chance.choice(("utf-16", "utf-8-sig", "utf-16-le", "latin-1")), "replace")


Mutation = Callable[[bytes, random.Random], bytes]
MUTATIONS: tuple[Mutation, ...] = (
    *(cut, noisy, lost, wrong, twice, inserted),
    *(shuffled, thinned, odd_number, other_ends, wide),
)


class Failure(Exception):  # noqa: N818
    """Something that must not be."""


def check(name: str, content: bytes, how: Mutation, changed: bytes) -> None:
    """Whether a changed file is read as it should be."""
    told = read(name, changed)
    if how is cut:
        before = rows(read(name, content))
        by_place = {place_of(row): row for row in before}
        for row in rows(told):
            whole = by_place.get(place_of(row), {})
            if any(whole.get(name) != value for name, value in row.items()):
                raise Failure(f"a row that the whole file has not: {row}")
    if how is noisy and not name.endswith(DOCUMENT):
        ignored = ("file",)
        old, new = (without_place(rows(each), ignored) for each in (read(name, content), told))
        if old != new:
            odd = next((row for row in new if row not in old), None)
            odd = odd or next(row for row in old if row not in new)
            raise Failure(f"noise changed {len(old)} rows to {len(new)}: {odd}")


def place_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a row of a file from all others."""
    names = ("line", "benchmark", "bytes", "in_place", "window", "part")
    return tuple(row.get(name) for name in names)


def check_loaded(name: str, changed: bytes, folder: Path) -> None:
    """Whether a file is read, or refused in a sentence."""
    path = folder / Path(name).name
    path.write_bytes(changed)
    try:
        load(path)
    except OmbError as error:
        if "\n" in str(error) or not str(error):
            raise Failure(f"not one sentence: {error!r}") from error


def large_files(chance: random.Random) -> int:
    """Read 20 MB of several kinds, each of which claims every format; how many were too slow."""
    marks = b"\n".join(mark for reader in all_readers().values() for mark in reader.marks)
    files = dict(fixtures())
    kinds = {
        "random bytes": marks + chance.randbytes(LARGE),
        "short lines": marks + b"\n1 2.00\n" * (LARGE // 8),
        "one line": marks + b"1 2.00 " * (LARGE // 7),
        "lines of words": marks
        + b"\nnode17: WARNING: a message of some library # 12" * (LARGE // 48),
    }
    for suffix in ("omb/osu_latency.txt", "imb/mpi1.txt", "nccl-tests/batch_2.13.txt"):
        whole = files.get(f"tests/data/{suffix}")
        if whole:
            kinds[f"{suffix} many times"] = whole * (LARGE // len(whole))
            kinds[f"{suffix}, then numbers"] = whole + b"  8    2 float 20 2.00 4.00\n" * 700_000
    header = files["results/two-core-vm.csv"]
    kinds["our header, then numbers"] = header + b"1,2.00,3\n" * (LARGE // 9)
    failed = 0
    for kind, content in kinds.items():
        begin = time.process_time()
        told = read("large", content)
        taken = time.process_time() - begin
        late = "" if taken < (SLOW_TABLES if "times" in kind else SLOW) else "  TOO SLOW"
        failed += bool(late)
        print(f"{kind}: {taken:.1f} s, {len(rows(told))} rows, {len(told.problems)} problems{late}")
    return failed


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="", help="part of the names of fixtures")
    options.add_argument("--keep", type=Path, help="folder for files that failed")
    options.add_argument("--no-large", action="store_true")
    asked = options.parse_args()
    chance = random.Random(asked.seed)
    keep = asked.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))
    keep.mkdir(parents=True, exist_ok=True)
    files = {name: text for name, text in fixtures().items() if asked.only in name}
    failed = 0 if asked.no_large else large_files(chance)
    tried: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    end = time.perf_counter() + asked.seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.perf_counter() < end:
            name = chance.choice(list(files))
            content = files[name]
            how = chance.choice(MUTATIONS)
            changed = how(content, chance)
            if how is not cut and how is not noisy and chance.random() < 0.3:
                changed = chance.choice(MUTATIONS)(changed or b"\n", chance)
            tried[how.__name__] += 1
            try:
                check(name, content, how, changed)
                if tried.total() % LOADED == 0:
                    tried["of these loaded"] += 1
                    check_loaded(name, changed, Path(folder))
            except Exception as error:
                kind = f"{how.__name__} of {Path(name).parent.name}: {type(error).__name__}"
                seen[kind] += 1
                if seen[kind] <= 3:
                    path = keep / f"{seen.total()}-{Path(name).name}"
                    path.write_bytes(changed)
                    text = str(error) if isinstance(error, Failure) else traceback.format_exc()
                    print(f"{kind} ({name}), kept as {path}: {text}")
    print(", ".join(f"{how} {count}" for how, count in sorted(tried.items())))
    files_tried = tried.total() - tried["of these loaded"]
    print(f"{files_tried} inputs from {len(files)} files, {seen.total()} failures: {dict(seen)}")
    return 1 if seen or failed else 0


if __name__ == "__main__":
    sys.exit(main())
