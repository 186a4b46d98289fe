"""The kernel that computes for a time: a chain of multiplications and additions, one thread.

    for (i = 0; i < times; i++) value = value * 0.75 + 0.3;
    if (value < 0) *result = value;

The store never happens; without it the driver's compiler would leave the chain out.
"""

from __future__ import annotations

NAME = "compute"

PTX = b"""\
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
