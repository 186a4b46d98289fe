"""Machine code as an image: what LLVM emits, linked once, so that ranks load it without LLVM.

An object file refers from section to section. `link` lays the sections out one after the other and
writes these distances into the code, which can then lie anywhere; only addresses in tables are left
to `load`. Relocations are those of the x86-64 psABI (System V Application Binary Interface, AMD64
supplement, table 4.9), of which LLVM uses few; for any others there is no image.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from itertools import starmap
from struct import Struct
from typing import Any, NamedTuple

from omb_py.core.errors import OmbError

MAGIC = b"OMBIMAGE"
WORD = Struct("<q")
HALF = Struct("<i")

OBJECT = b"\x7fELF\x02\x01"
"""An ELF file of 64 bits, the least significant byte first."""

HEADER = Struct("<16sHHIQQQIHHHHHH")
SECTION = Struct("<IIQQQQIIQQ")
SYMBOL = Struct("<IBBHQQ")
RELOCATION = Struct("<QQq")
RELOCATABLE, X86_64 = 1, 62
PROGRAM, SYMBOLS, RELOCATIONS, IN_MEMORY = 1, 2, 4, 2
GLOBAL_OFFSETS = "_GLOBAL_OFFSET_TABLE_"

ABSOLUTE = 1
RELATIVE = {2: HALF, 4: HALF, 24: WORD}
"""R_X86_64_PC32, PLT32 and PC64: from the place to a symbol."""
GOT, GOT_OFFSET, GOT_RELATIVE = 27, 25, 29
"""R_X86_64_GOT64, GOTOFF64 and GOTPC64: within the table of addresses, from it, and to it."""


class Section(NamedTuple):
    """An entry of the section table."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class LinkError(Exception):
    """The object file has what `link` does not know."""


def link(elf: bytes, names: Sequence[str]) -> bytes | None:
    """The image of an object file with the functions ``names``; None where it cannot be made."""
    try:
        return _Linker(elf).image(names)
    except (LinkError, KeyError):
        return None


class _Linker:
    def __init__(self, elf: bytes) -> None:
        header = HEADER.unpack_from(elf)
        if not elf.startswith(OBJECT) or header[1:3] != (RELOCATABLE, X86_64):
            raise LinkError
        self._elf = elf
        first, count = header[6], header[12]
        tables = SECTION.iter_unpack(elf[first : first + count * SECTION.size])
        self._sections = list(starmap(Section, tables))
        self._code = bytearray()
        self._places: dict[int, int] = {}
        self._absolute: list[int] = []
        for number, section in enumerate(self._sections):
            if section.kind == PROGRAM and section.flags & IN_MEMORY:
                self._align(max(section.alignment, 1))
                self._places[number] = len(self._code)
                self._code += elf[section.offset : section.offset + section.size]
        self._align(WORD.size)
        self._table = len(self._code)
        self._entries: dict[int, int] = {}

    def image(self, names: Sequence[str]) -> bytes:
        for section in self._sections:
            if section.kind == RELOCATIONS and section.info in self._places:
                symbols = list(self._symbols(self._sections[section.link]))
                content = self._elf[section.offset : section.offset + section.size]
                for offset, info, addend in RELOCATION.iter_unpack(content):
                    place = self._places[section.info] + offset
                    self._relocate(place, info & 0xFFFFFFFF, symbols[info >> 32], addend)
        (table,) = (one for one in self._sections if one.kind == SYMBOLS)
        found = dict(self._symbols(table))
        offsets = [offset for name in names if (offset := found[name]) is not None]
        if len(offsets) < len(names):
            raise LinkError
        numbers = [len(offsets), *offsets, len(self._absolute), *self._absolute]
        return MAGIC + b"".join(map(WORD.pack, numbers)) + self._code

    def _align(self, size: int) -> None:
        self._code += bytes(-len(self._code) % size)

    def _symbols(self, table: Section) -> Iterator[tuple[str, int | None]]:
        """Names and places in the image, None for what is not there."""
        texts = self._elf[self._sections[table.link].offset :]
        content = self._elf[table.offset : table.offset + table.size]
        for name, _, _, section, value, _ in SYMBOL.iter_unpack(content):
            text = texts[name : texts.index(b"\0", name)].decode()
            place = self._places.get(section)
            yield text, None if place is None else place + value

    def _relocate(self, place: int, kind: int, symbol: tuple[str, int | None], addend: int) -> None:
        name, target = symbol
        if kind == GOT_RELATIVE and name == GLOBAL_OFFSETS:
            WORD.pack_into(self._code, place, self._table + addend - place)
        elif target is None:
            raise LinkError
        elif kind in RELATIVE:
            RELATIVE[kind].pack_into(self._code, place, target + addend - place)
        elif kind == GOT_OFFSET:
            WORD.pack_into(self._code, place, target + addend - self._table)
        elif kind == GOT:
            WORD.pack_into(self._code, place, self._entry(target) - self._table + addend)
        elif kind == ABSOLUTE:
            WORD.pack_into(self._code, place, target + addend)
            self._absolute.append(place)
        else:
            raise LinkError

    def _entry(self, target: int) -> int:
        """The place of an address in the table."""
        if target not in self._entries:
            self._entries[target] = len(self._code)
            self._absolute.append(len(self._code))
            self._code += WORD.pack(target)
        return self._entries[target]


def load(image: bytes) -> tuple[Any, list[int]]:
    """Put an image into this process; its owner, to be kept alive, and the functions' addresses.

    Raises `OmbError` where the system lets no program make code.
    """
    functions, at = _numbers(image, len(MAGIC))
    absolute, at = _numbers(image, at)
    code = image[at:]
    memory = mmap.mmap(-1, len(code), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(code)
    owner = ctypes.c_char.from_buffer(memory)
    base = ctypes.addressof(owner)
    for place in absolute:
        WORD.pack_into(memory, place, WORD.unpack_from(memory, place)[0] + base)
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if protect(base, len(code), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OmbError(
            "binding native cannot load its loop: this system lets no program make code; use "
            "another --binding"
        )
    return owner, [base + place for place in functions]


def _numbers(image: bytes, at: int) -> tuple[list[int], int]:
    """The numbers of a list, and where what follows it begins."""
    (count,) = WORD.unpack_from(image, at)
    end = at + WORD.size * (1 + count)
    return [number for (number,) in WORD.iter_unpack(image[at + WORD.size : end])], end
