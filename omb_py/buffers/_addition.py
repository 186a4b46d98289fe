"""The kernels that add up elements where they are, on a device: one for each width of them.

PTX like that of `omb_py.buffers._comparison`, by the same grid-stride loop:

    for (i = block * threads + thread; i < count; i += blocks * threads) total[i] += other[i];

Signed and unsigned whole numbers are added alike; a complex number is two numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from omb_py.errors import UnsupportedError

PTX = """\
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
        return PTX.format(
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


def kernel(dtype: str) -> Kernel:
    """The kernel for elements; raises `UnsupportedError` where there is none."""
    element = COMPONENTS.get(dtype)
    if element is None:
        raise UnsupportedError(
            f"no kernel adds {dtype} on a device: choose another -T, or --algorithm library"
        )
    return next(found for found in KERNELS if found.element == element)
