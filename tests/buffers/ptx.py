"""An interpreter of the PTX instructions that the suite's kernels use, one thread after another."""

from __future__ import annotations

import re
import struct
from typing import Any

WORD = (1 << 64) - 1
CODES = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "f32": "<f", "f64": "<d"}
"""How elements lie in memory, by PTX's types, as `struct` has it."""


def launch(
    source: str, memory: bytearray, arguments: dict[str, int], blocks: int, threads: int
) -> dict[str, Any]:
    """Run a kernel on ``memory``, whose addresses start at 0; the last thread's registers."""
    body = source[source.index("{") + 1 : source.rindex("}")]
    lines = [line.strip() for line in re.split(r"[;\n]", body)]
    lines = [line for line in lines if line and not line.startswith(".reg")]
    labels = {line[:-1]: number for number, line in enumerate(lines) if line.endswith(":")}
    for block in range(blocks):
        for thread in range(threads):
            special = {"%ctaid.x": block, "%nctaid.x": blocks, "%tid.x": thread}
            registers: dict[str, Any] = special | {"%ntid.x": threads}
            _run(lines, labels, memory, arguments, registers)
    return registers


def _run(
    lines: list[str],
    labels: dict[str, int],
    memory: bytearray,
    arguments: dict[str, int],
    registers: dict[str, Any],
) -> None:
    at = 0
    while True:
        line = lines[at]
        at += 1
        if line.endswith(":"):
            continue
        if line.startswith("@"):
            guard, line = line[1:].split(None, 1)
            if bool(registers[guard.lstrip("!")]) is guard.startswith("!"):
                continue
        name, _, rest = line.partition(" ")
        operands = [operand.strip() for operand in rest.split(",")]
        if name == "ret":
            return
        if name == "bra":
            at = labels[operands[0]]
            continue
        if name == "ld.param.u64":
            registers[operands[0]] = arguments[operands[1].strip("[]")]
            continue
        if name == "red.global.min.u64":
            place = registers[operands[0].strip("[]")]
            old = int.from_bytes(memory[place : place + 8], "little")
            new = min(old, registers[operands[1]])
            memory[place : place + 8] = new.to_bytes(8, "little")
            continue
        if name.startswith("ld.global."):
            code = CODES[name.removeprefix("ld.global.")]
            place = registers[operands[1].strip("[]")]
            (registers[operands[0]],) = struct.unpack_from(code, memory, place)
            continue
        if name.startswith("st.global."):
            code = CODES[name.removeprefix("st.global.")]
            place, value = registers[operands[0].strip("[]")], registers[operands[1]]
            if "f" not in name.rpartition(".")[2]:
                value &= (1 << 8 * struct.calcsize(code)) - 1
            struct.pack_into(code, memory, place, value)
            continue
        target, *values = operands
        registers[target] = _compute(name, [_value(value, registers) for value in values])


def _value(text: str, registers: dict[str, Any]) -> Any:
    """What a register holds, or a number written in its place."""
    if text.startswith("%"):
        return registers[text]
    return struct.unpack(">f", bytes.fromhex(text[2:]))[0] if text[:2] == "0f" else int(text)


def _compute(name: str, values: list[Any]) -> Any:
    operations = {
        "mov.u32": lambda: values[0],
        "mov.u64": lambda: values[0],
        "mov.f32": lambda: values[0],
        "add.u16": lambda: (values[0] + values[1]) & 0xFFFF,
        "add.u32": lambda: (values[0] + values[1]) & 0xFFFFFFFF,
        "add.rn.f32": lambda: values[0] + values[1],
        "add.rn.f64": lambda: values[0] + values[1],
        "fma.rn.f32": lambda: values[0] * values[1] + values[2],
        "setp.lt.f32": lambda: values[0] < values[1],
        "cvt.u64.u32": lambda: values[0],
        "mad.wide.u32": lambda: values[0] * values[1] + values[2],
        "mul.wide.u32": lambda: values[0] * values[1],
        "mul.lo.u64": lambda: values[0] * values[1],
        "add.u64": lambda: values[0] + values[1],
        "rem.u64": lambda: values[0] % values[1],
        "setp.ge.u64": lambda: values[0] >= values[1],
        "setp.eq.u16": lambda: values[0] == values[1],
    }
    result = operations[name]()
    return result if name.endswith(("f32", "f64")) else result & WORD
