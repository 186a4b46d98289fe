"""The kernel that checks data where it is: the first byte that differs from a repeated tile.

It is PTX, which the driver itself compiles for the device at hand. So every library's memory is
checked by the same code, without a CUDA toolkit. The source below is a grid-stride loop:

    for (i = block * threads + thread; i < length; i += blocks * threads)
        if (data[i] != tile[i % period]) { atomicMin(result, i); break; }
"""

from __future__ import annotations

NAME = "first_difference"
THREADS = 256
MOST_BLOCKS = 4096

PTX = b"""\
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
