"""The timing loop of binding native, compiled by Numba into machine code.

The loop runs a program: an array of rows, each one C call written as 64-bit words (the
number of its shape, the function's address, its arguments). It calls through addresses, so the code
refers to nothing outside itself and serves every MPI library, every benchmark and every process.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba import cfunc, types
from numba.core.cgutils import alloca_once
from numba.extending import intrinsic

from omb_py.bindings.machine.prototypes import OPERANDS, ROW_BYTES, SHAPES, STRIDE, TIMES, WORDS
from omb_py.core.mpi.clock import SPIN_SECONDS

CLOCK_MONOTONIC = 1
"""The clock of ``time.perf_counter`` on Linux."""

make_intrinsic: Any = intrinsic
pointer: Any = types.CPointer

POINTER = ir.IntType(8).as_pointer()
TYPES = {"i": ir.IntType(32), "q": ir.IntType(64), "p": POINTER, "r": POINTER}


def _typed_call(typing_context: Any, row: Any, offset: Any) -> Any:
    """For Numba: the type of `call`, and the function that writes its code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        words = builder.inttoptr(arguments[0], word.as_pointer())

        def load(index: int) -> Any:
            return builder.load(builder.gep(words, [word(index)]))

        unknown = builder.append_basic_block("unknown")
        done = builder.append_basic_block("done")
        choice = builder.switch(load(0), unknown)
        returned = []
        for shape, number in SHAPES.items():
            block = builder.append_basic_block(shape)
            choice.add_case(word(number), block)
            with builder.goto_block(block):
                operands = [
                    _operand(builder, load(OPERANDS + k), kind, arguments[1])
                    for k, kind in enumerate(shape)
                ]
                kind = ir.FunctionType(ir.IntType(32), [TYPES[letter] for letter in shape])
                function = builder.inttoptr(load(1), kind.as_pointer())
                returned.append((builder.call(function, operands), block))
                builder.branch(done)
        builder.position_at_end(unknown)
        builder.unreachable()
        builder.position_at_end(done)
        result = builder.phi(ir.IntType(32))
        for value, block in returned:
            result.add_incoming(value, block)
        return result

    return types.int32(types.int64, types.int64), generate


call: Callable[[int, int], int] = make_intrinsic(_typed_call)
"""Make the C call of the row at this address, its request moved by an offset; what it returned."""


def _operand(builder: Any, value: Any, kind: str, offset: Any) -> Any:
    if kind == "r":
        value = builder.add(value, offset)
    if kind in "pr":
        return builder.inttoptr(value, POINTER)
    return builder.trunc(value, TYPES[kind]) if kind == "i" else value


def _typed_clock(typing_context: Any, clock: Any) -> Any:
    """For Numba: the type of `nanoseconds`, and the function that writes its code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, word = ir.IntType(32), ir.IntType(64)
        timespec: Any = alloca_once(builder, ir.ArrayType(word, 2))  # type: ignore[no-untyped-call]
        kind = ir.FunctionType(number, [number, timespec.type])
        read = builder.inttoptr(arguments[0], kind.as_pointer())
        builder.call(read, [number(CLOCK_MONOTONIC), timespec])
        seconds = builder.extract_value(builder.load(timespec), 0)
        rest = builder.extract_value(builder.load(timespec), 1)
        return builder.add(builder.mul(seconds, word(1_000_000_000)), rest)

    return types.int64(types.int64), generate


nanoseconds: Callable[[int], int] = make_intrinsic(_typed_clock)
"""The time now, from the ``clock_gettime`` at this address."""


def _typed_yield(typing_context: Any, function: Any) -> Any:
    """For Numba: the type of `give_way`, and the function that writes its code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [])

    return types.int32(types.int64), generate


give_way: Callable[[int], int] = make_intrinsic(_typed_yield)
"""Let another process have the core, by the ``sched_yield`` at this address."""

SIGNATURE = types.int64(
    types.int64,
    pointer(types.int64),
    pointer(types.int64),
    types.int64,
    types.int64,
    types.int64,
    types.int64,
    pointer(types.float64),
    pointer(types.float64),
    pointer(types.float64),
)


PARTS = BEFORE, ANNOUNCEMENT, TIMED, AFTER = 0, 1, 2, 3
"""The parts of an exchange, in order; the last ends with the barrier, if there is one."""


def run(
    rows: int,
    words: Sequence[int],
    bounds: Sequence[int],
    exchange: int,
    iterations: int,
    clock: int,
    sched_yield: int,
    start: MutableSequence[float],
    lateness: MutableSequence[float],
    seconds: MutableSequence[float],
) -> int:
    """Run iterations and store the seconds of each; 0, or where and how a call failed.

    ``rows`` is the program's address, ``words`` its words. ``bounds`` has the number of exchanges,
    then the first row of each part of each exchange and the end of the last. ``clock`` is the
    address of ``clock_gettime``, and so on. ``start`` is what a `CommonStart` knows: the time
    announced, 1 on the rank that announces, slack, offset, drift and the drift's reference. A
    failure is the row's number times 2**32 plus the error code.
    """
    exchanges = bounds[0]
    begin = 0
    for index in range(iterations):
        for part in range(4):
            row = bounds[1 + 4 * exchange + part]
            end = bounds[2 + 4 * exchange + part]
            if part == ANNOUNCEMENT and row < end and start[1] > 0.0:
                start[0] = nanoseconds(clock) * 1e-9 + start[2]
            if part == TIMED:
                if row > bounds[2 + 4 * exchange]:
                    local = start[0] - start[3]
                    local -= start[4] * (local - start[5])
                    now = nanoseconds(clock) * 1e-9
                    while now < local:
                        if local - now > SPIN_SECONDS:
                            give_way(sched_yield)
                        now = nanoseconds(clock) * 1e-9
                    lateness[index] = now - local
                begin = nanoseconds(clock)
            while row < end:
                times = words[row * WORDS + TIMES]
                stride = words[row * WORDS + STRIDE]
                for time in range(times):
                    code = call(rows + row * ROW_BYTES, time * stride)
                    if code != 0:
                        return (row << 32) + code
                row += 1
            if part == TIMED:
                seconds[index] = (nanoseconds(clock) - begin) * 1e-9
        exchange += 1
        if exchange == exchanges:
            exchange = 0
    return 0


def compute(times: int) -> int:
    """Multiply and add so many times, each time with what came of the last; always 0."""
    value = float(times)
    for _ in range(times):
        value = value * 0.75 + 0.3
    return int(value < 0.0)


def lap(clock: int, state: MutableSequence[int], kind: int) -> int:
    """Add the nanoseconds since the last lap to those of ``kind``; always 0.

    ``state`` has the time of the last lap, then the sum of each kind.
    """
    now = nanoseconds(clock)
    state[1 + kind] += now - state[0]
    state[0] = now
    return 0


def reset(position: MutableSequence[int]) -> int:
    """Make a position 0 again; always 0."""
    position[0] = 0
    return 0


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "omb_py_run": (SIGNATURE, run),
    "omb_py_compute": (types.int32(types.int64), compute),
    "omb_py_lap": (types.int32(types.int64, pointer(types.int64), types.int64), lap),
    "omb_py_reset": (types.int32(pointer(types.int64)), reset),
}
"""What the object file holds, by symbol."""


def machine_code(target: Any) -> bytes:
    """An object file with `FUNCTIONS`, for LLVM's target machine ``target``.

    Raises `RuntimeError` when the code would need anything from outside.
    """
    modules = []
    for symbol, (signature, function) in FUNCTIONS.items():
        compiled = cfunc(signature, forceinline=True)(function)
        module = llvm.parse_assembly(compiled.inspect_llvm())
        module.get_function(compiled.native_name).name = symbol
        modules.append(module)
    first, *others = modules
    for module in others:
        first.link_in(module)
    needed = [function.name for function in first.functions if function.is_declaration]
    if not all(name.startswith("llvm.") for name in needed):
        raise RuntimeError(f"Numba's code needs {', '.join(needed)}")
    return target.emit_object(first)  # type: ignore[no-any-return]
