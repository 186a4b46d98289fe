"""Machine code that was linked into an image does what LLVM's own linker makes of it."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.bindings.machine import linking

llvm: Any = pytest.importorskip("llvmlite.binding")

CASES = "\n".join(f"    i64 {number}, label %case{number}" for number in range(12))
BLOCKS = "\n".join(
    f"case{number}:\n  %sum{number} = fadd double %y, {number * number}.25\n  br label %done"
    for number in range(12)
)
PHI = ", ".join(f"[%sum{number}, %case{number}]" for number in range(12))
SOURCE = f"""
@table = internal constant [2 x i64 (i64)*] [i64 (i64)* @double_of, i64 (i64)* @half_of]

define i64 @double_of(i64 %x) {{
  %y = mul i64 %x, 2
  ret i64 %y
}}

define i64 @half_of(i64 %x) {{
  %y = sdiv i64 %x, 2
  ret i64 %y
}}

define double @chosen(i64 %which, double %x) {{
  %y = fmul double %x, 3.7
  switch i64 %which, label %other [
{CASES}
  ]
{BLOCKS}
other:
  br label %done
done:
  %z = phi double {PHI}, [-1.5, %other]
  ret double %z
}}

define i64 @by_table(i64 %which, i64 %x) {{
  %place = getelementptr [2 x i64 (i64)*], [2 x i64 (i64)*]* @table, i64 0, i64 %which
  %function = load i64 (i64)*, i64 (i64)** %place
  %y = call i64 %function(i64 %x)
  ret i64 %y
}}
"""
NAMES = ("double_of", "half_of", "chosen", "by_table")


def compiled(source: str, **settings: Any) -> bytes:
    """The object file of LLVM assembly, as the loop's is made."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    if not target.triple.startswith("x86_64"):
        pytest.skip("images are made on x86-64 alone")
    machine = target.create_target_machine(opt=3, reloc="pic", **settings)
    source = source.replace("i64 (i64)**", "ptr").replace("i64 (i64)*", "ptr")
    source = source.replace("[2 x ptr]*", "ptr")
    code: bytes = machine.emit_object(llvm.parse_assembly(source))
    return code


@pytest.fixture(scope="module", params=["jitdefault", "small", "large"])
def functions(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The functions of `SOURCE`, loaded from an image."""
    image = linking.link(compiled(SOURCE, codemodel=request.param), NAMES)
    if image is None:
        pytest.skip(f"{request.param} needs relocations that images do not have")
    owner, addresses = linking.load(image)
    number, real = ctypes.c_int64, ctypes.c_double
    kinds = {"chosen": (real, number, real), "by_table": (number, number, number)}
    return {"owner": owner} | {
        name: ctypes.CFUNCTYPE(*kinds.get(name, (number, number)))(address)
        for name, address in zip(NAMES, addresses, strict=True)
    }


@given(which=st.integers(-3, 15), x=st.floats(-1e9, 1e9))
def test_constants_and_jump_tables(functions: dict[str, Any], which: int, x: float) -> None:
    expected = x * 3.7 + which * which + 0.25 if 0 <= which < 12 else -1.5
    assert functions["chosen"](which, x) == pytest.approx(expected)


@given(st.integers(-(2**40), 2**40))
def test_addresses_in_tables(functions: dict[str, Any], x: int) -> None:
    assert functions["by_table"](0, x) == functions["double_of"](x) == 2 * x
    assert functions["by_table"](1, x) == functions["half_of"](x)


def test_the_default_code_is_linked() -> None:
    assert linking.link(compiled(SOURCE), NAMES) is not None


def test_an_image_can_be_loaded_several_times() -> None:
    image = linking.link(compiled(SOURCE), NAMES)
    assert image is not None
    loaded = [linking.load(image) for _ in range(2)]
    (first, second) = (addresses[0] for _, addresses in loaded)
    assert first != second
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    assert kind(first)(21) == kind(second)(21) == 42


def test_what_cannot_be_linked_has_no_image() -> None:
    outside = "declare i64 @elsewhere(i64)\ndefine i64 @f(i64 %x) {\n"
    outside += "  %y = call i64 @elsewhere(i64 %x)\n  ret i64 %y\n}"
    assert linking.link(compiled(outside), ["f"]) is None
    code = compiled(SOURCE)
    assert linking.link(code, ["no_such_function"]) is None
    other_machine = bytearray(code)
    other_machine[18] = 183  # EM_AARCH64
    assert linking.link(bytes(other_machine), NAMES) is None
