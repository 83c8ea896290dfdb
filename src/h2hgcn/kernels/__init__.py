"""The hot formulas again, fast on a CPU: compiled loops with hand-written derivatives.

Each has a readable reference in ``geometry`` or ``layers`` that gives the same to rounding; ``use_kernel`` chooses.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

# Below this many numbers a thread costs more than it saves.
_GRAIN = 1 << 16

# What the loops are compiled for.
_DTYPES = (torch.float32, torch.float64)


def use_kernel(*tensors: Tensor) -> bool:
    """Whether compiled loops can take these tensors: float32 or float64 numbers in the CPU's memory, outside
    ``torch.compile``, ``torch.func`` and forward-mode differentiation, which have to see PyTorch's operations.
    """
    if torch.compiler.is_compiling() or is_transformed():
        return False
    return all(x.is_cpu and x.dtype in _DTYPES for x in tensors)


def is_transformed() -> bool:
    """Whether ``torch.func`` or forward-mode differentiation is at work."""
    if torch.compiler.is_compiling():  # which traces them
        return False
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def is_exported() -> bool:
    """Whether ``torch.export`` is at work, whose programs should run where this package is not installed."""
    return bool(getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)())


def is_wrapped(x: Tensor) -> bool:
    """Whether a tensor belongs to a transform of ``torch.func``, after which it is void."""
    return not torch.compiler.is_compiling() and torch._C._functorch.is_functorch_wrapped_tensor(x)


def untransformed(*tensors: Tensor) -> AbstractContextManager[Any]:
    """A context in which what is computed from ordinary tensors is ordinary, too, under ``torch.func``: for caches."""
    if not is_transformed() or any(map(is_wrapped, tensors)):
        return nullcontext()
    return torch._C._DisableFuncTorch()


def run_on_rows(loop: Callable[..., None], shape: tuple[int, ...], *arguments: Any) -> None:
    """Calls ``loop(first, last, *arguments)`` for all rows of an array of this shape."""
    rows, width = shape
    threads = min(torch.get_num_threads(), max(rows * width // _GRAIN, 1), max(rows, 1))
    if threads == 1:
        loop(0, rows, *arguments)
        return
    bounds = [rows * i // threads for i in range(threads + 1)]
    parts = [_threads().submit(loop, first, last, *arguments) for first, last in pairwise(bounds[1:])]
    loop(0, bounds[1], *arguments)
    for part in parts:
        part.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="h2hgcn")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not come along


def differentiable(
    run: Callable[..., tuple[Tensor, ...]],
    gradients: Callable[..., tuple[Tensor | None, ...]],
    reference: Callable[..., Tensor],
    *inputs: Tensor,
) -> Tensor:
    """The first of the tensors of ``run(*inputs)``, with ``gradients(grad, needed, *inputs, *tensors)``, of which
    ``needed`` says which inputs need one. ``reference`` gives the same result by operations that PyTorch can
    differentiate twice.
    """
    if not torch.is_grad_enabled():
        return run(*inputs)[0]
    result: Tensor = _Kernel.apply(run, gradients, reference, *inputs)  # type: ignore[no-untyped-call]
    return result


class _Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, run: Any, gradients: Any, reference: Any, *inputs: Tensor) -> Tensor:
        tensors = run(*inputs)
        ctx.gradients, ctx.reference, ctx.num_inputs = gradients, reference, len(inputs)
        ctx.save_for_backward(*inputs, *tensors)
        return tensors[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return None, None, None, *ctx.gradients(grad, ctx.needs_input_grad[3:], *saved)
        # under create_graph; aliases, so that an input that was computed from another one counts once
        inputs = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in saved[: ctx.num_inputs]]
        found = torch.autograd.grad(ctx.reference(*inputs), inputs, grad, create_graph=True)
        return None, None, None, *found
