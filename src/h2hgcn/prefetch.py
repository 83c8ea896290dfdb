"""Asking for rows of an array before they are read, in compiled loops over rows that lie anywhere in memory.

A processor waits some 100 ns for a row that is in no cache, longer than most loops work on it. It does not wait for one
that it was told of a few rounds earlier.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from h2hgcn.compiled import inlined

# Bytes: what a cache fetches at once.
_LINE = 64


@inlined
def prefetch_row(array: Any, row: int) -> None:
    """Asks for all of ``array[row]``, of two dimensions, rows contiguous."""
    for column in range(0, array.shape[1], _LINE // array.itemsize):
        _prefetch(array, row, column)


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """Asks for the line of cache that holds an element, for reading, by LLVM's ``llvm.prefetch``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        struct = context.make_array(kind)(context, builder, arguments[0])
        element = cgutils.get_item_pointer(context, builder, kind, struct, list(arguments[1:]), wraparound=False)
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), shape)
        reading, keep, data = 0, 3, 1
        builder.call(function, [builder.bitcast(element, pointer), number(reading), number(keep), number(data)])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate
