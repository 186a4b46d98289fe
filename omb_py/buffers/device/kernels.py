"""Kernels in PTX, compiled by the driver: adding, comparing, and computing for a time."""

from __future__ import annotations

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UnsupportedError

# The kernels that add up elements where they are, on a device: one for each width of them.
#
# A grid-stride loop:
#
#     for (i = block * threads + thread; i < count; i += blocks * threads) total[i] += other[i];
#
# Signed and unsigned whole numbers are added alike; a complex number is two numbers.

ADDITION = """\
.version 6.0
.target sm_50
.address_size 64

.visible .entry {name}(
    .param .u64 total,
    .param .u64 other,
    .param .u64 count
)
{{
    .reg .pred %done;
    .reg .{register} %sum, %more;
    .reg .u32 %block, %blocks, %thread, %threads;
    .reg .u64 %total, %other, %count, %index, %step, %place, %address;

    ld.param.u64 %total, [total];
    ld.param.u64 %other, [other];
    ld.param.u64 %count, [count];
    mov.u32 %block, %ctaid.x;
    mov.u32 %blocks, %nctaid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %threads, %ntid.x;
    cvt.u64.u32 %index, %thread;
    mad.wide.u32 %index, %block, %threads, %index;
    mul.wide.u32 %step, %blocks, %threads;
again:
    setp.ge.u64 %done, %index, %count;
    @%done bra end;
    mul.lo.u64 %place, %index, {itemsize};
    add.u64 %address, %other, %place;
    ld.global.{element} %more, [%address];
    add.u64 %address, %total, %place;
    ld.global.{element} %sum, [%address];
    add.{operation} %sum, %sum, %more;
    st.global.{element} [%address], %sum;
    add.u64 %index, %index, %step;
    bra again;
end:
    ret;
}}
\0"""


@dataclass(frozen=True)
class Kernel:
    """The addition of numbers in ``itemsize`` bytes.

    ``element`` is PTX's type of a number in memory, ``register`` that of one in a register (there
    are none of 8 bits), ``operation`` the addition's.
    """

    element: str
    itemsize: int
    register: str
    operation: str

    @property
    def name(self) -> str:
        """What the kernel is called."""
        return f"add_{self.element}"

    @property
    def ptx(self) -> bytes:
        """Its source, for the driver."""
        return ADDITION.format(
            name=self.name,
            register=self.register,
            element=self.element,
            itemsize=self.itemsize,
            operation=self.operation,
        ).encode()


KERNELS = (
    Kernel("u8", 1, "u16", "u16"),
    Kernel("u16", 2, "u16", "u16"),
    Kernel("u32", 4, "u32", "u32"),
    Kernel("u64", 8, "u64", "u64"),
    Kernel("f32", 4, "f32", "rn.f32"),
    Kernel("f64", 8, "f64", "rn.f64"),
)

COMPONENTS = {"float32": "f32", "float64": "f64", "complex64": "f32", "complex128": "f64"} | {
    f"{sign}int{bits}": f"u{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
"""What elements are made of, by NumPy's names."""


def addition_kernel(dtype: str) -> Kernel:
    """The kernel for elements; raises `UnsupportedError` where there is none."""
    element = COMPONENTS.get(dtype)
    if element is None:
        raise UnsupportedError(
            f"no kernel adds {dtype} on a device: choose another -T, or --p2p-algorithm library"
        )
    return next(found for found in KERNELS if found.element == element)


# The kernel that checks data where it is: the first byte that differs from a repeated tile.
#
# It is PTX, which the driver itself compiles for the device at hand. So every library's memory is
# checked by one code, without a CUDA toolkit. The source below is a grid-stride loop:
#
#     for (i = block * threads + thread; i < length; i += blocks * threads)
#         if (data[i] != tile[i % period]) { atomicMin(result, i); break; }

COMPARISON_NAME = "first_difference"
THREADS = 256
MAX_BLOCKS = 4096

COMPARISON = b"""\
.version 6.0
.target sm_50
.address_size 64

.visible .entry first_difference(
    .param .u64 data,
    .param .u64 length,
    .param .u64 tile,
    .param .u64 period,
    .param .u64 result
)
{
    .reg .pred %done, %same;
    .reg .u16 %found, %wanted;
    .reg .u32 %block, %blocks, %thread, %threads;
    .reg .u64 %data, %length, %tile, %period, %result;
    .reg .u64 %index, %step, %place, %address;

    ld.param.u64 %data, [data];
    ld.param.u64 %length, [length];
    ld.param.u64 %tile, [tile];
    ld.param.u64 %period, [period];
    ld.param.u64 %result, [result];
    mov.u32 %block, %ctaid.x;
    mov.u32 %blocks, %nctaid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %threads, %ntid.x;
    cvt.u64.u32 %index, %thread;
    mad.wide.u32 %index, %block, %threads, %index;
    mul.wide.u32 %step, %blocks, %threads;
again:
    setp.ge.u64 %done, %index, %length;
    @%done bra end;
    rem.u64 %place, %index, %period;
    add.u64 %address, %data, %index;
    ld.global.u8 %found, [%address];
    add.u64 %address, %tile, %place;
    ld.global.u8 %wanted, [%address];
    setp.eq.u16 %same, %found, %wanted;
    @%same bra next;
    red.global.min.u64 [%result], %index;
    bra end;
next:
    add.u64 %index, %index, %step;
    bra again;
end:
    ret;
}
\0"""


# The kernel that computes for a time: a chain of multiplications and additions, one thread.
#
#     for (i = 0; i < times; i++) value = value * 0.75 + 0.3;
#     if (value < 0) *result = value;
#
# The store never happens; without it the driver's compiler would leave the chain out.

WORK_NAME = "compute"

WORK = b"""\
.version 6.0
.target sm_50
.address_size 64

.visible .entry compute(
    .param .u64 times,
    .param .u64 result
)
{
    .reg .pred %done, %negative;
    .reg .f32 %value;
    .reg .u64 %index, %times, %result;

    ld.param.u64 %times, [times];
    ld.param.u64 %result, [result];
    mov.u64 %index, 0;
    mov.f32 %value, 0f3F800000;
again:
    setp.ge.u64 %done, %index, %times;
    @%done bra end;
    fma.rn.f32 %value, %value, 0f3F400000, 0f3E99999A;
    add.u64 %index, %index, 1;
    bra again;
end:
    setp.lt.f32 %negative, %value, 0f00000000;
    @!%negative bra out;
    st.global.f32 [%result], %value;
out:
    ret;
}
\0"""
