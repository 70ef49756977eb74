"""CPU instructions without a Python equivalent: unaligned loads, 16-byte vectors, and carry-less products.

Each is one LLVM instruction or two. None checks a bound, and numba's own bounds checking does not see them: the kernel that
uses one has compared the whole of what it touches with the length of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_I64 = ir.IntType(64)
_PAIR = ir.VectorType(_I64, 2)
_SIXTEEN = ir.VectorType(ir.IntType(8), 16)

HAS_CARRYLESS_PRODUCT = bool(llvm.get_host_cpu_features().get("pclmul"))
"""Whether this processor has PCLMULQDQ; :func:`carryless` must not be compiled without it."""


def _instruction(typed: Callable[..., Any]) -> Any:
    """Make an intrinsic. ``Any``: numba's own types say that a caller passes the typing context too."""
    return intrinsic(typed)


def _address(context, builder, array_type, array, index, pointee):
    data = context.make_array(array_type)(context, builder, array).data
    at = builder.gep(builder.bitcast(data, ir.IntType(8).as_pointer()), [index])
    return builder.bitcast(at, pointee.as_pointer())


def _move(unit):
    def codegen(context, builder, signature, arguments):
        from_index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        to_index = context.cast(builder, arguments[3], signature.args[3], types.intp)
        read = _address(context, builder, signature.args[0], arguments[0], from_index, unit)
        write = _address(context, builder, signature.args[2], arguments[2], to_index, unit)
        builder.store(builder.load(read, align=1), write, align=1)
        return context.get_dummy_value()

    return codegen


@_instruction
def load64(typingctx, array, index):
    """Eight bytes of a uint8 array at any address, little-endian."""

    def codegen(context, builder, signature, arguments):
        index64 = context.cast(builder, arguments[1], signature.args[1], types.intp)
        pointer = _address(context, builder, signature.args[0], arguments[0], index64, _I64)
        return builder.load(pointer, align=1)

    return types.uint64(array, index), codegen


@_instruction
def load64_big(typingctx, array, index):
    """Eight bytes of a uint8 array at any address, big-endian."""

    def codegen(context, builder, signature, arguments):
        index64 = context.cast(builder, arguments[1], signature.args[1], types.intp)
        pointer = _address(context, builder, signature.args[0], arguments[0], index64, _I64)
        return builder.bswap(builder.load(pointer, align=1))

    return types.uint64(array, index), codegen


@_instruction
def move8(typingctx, source, start, target, at):
    """Copy eight bytes between uint8 arrays, at any addresses."""
    return types.void(source, start, target, at), _move(_I64)


@_instruction
def move16(typingctx, source, start, target, at):
    """Copy sixteen bytes between uint8 arrays, at any addresses."""
    return types.void(source, start, target, at), _move(_SIXTEEN)


@_instruction
def carryless(typingctx, a, b):
    """Product of two 64-bit polynomials over GF(2): (low, high) half of 128 bits."""

    def codegen(context, builder, signature, arguments):
        kind = ir.FunctionType(_PAIR, [_PAIR, _PAIR, ir.IntType(8)])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.pclmulqdq")
        zero = ir.Constant(ir.IntType(32), 0)
        one = ir.Constant(ir.IntType(32), 1)
        vectors = [builder.insert_element(ir.Constant(_PAIR, [0, 0]), argument, zero) for argument in arguments]
        product = builder.call(function, [*vectors, ir.Constant(ir.IntType(8), 0)])
        halves = [builder.extract_element(product, zero), builder.extract_element(product, one)]
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), codegen
