"""The hot formulas again, fast on a CPU: compiled loops with hand-written derivatives.

Each has a readable reference in ``geometry`` or ``layers`` that gives the same to rounding; ``use_kernel`` chooses.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

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


def is_wrapped(x: Tensor) -> bool:
    """Whether a tensor belongs to a transform of ``torch.func``, after which it is void."""
    return not torch.compiler.is_compiling() and torch._C._functorch.is_functorch_wrapped_tensor(x)


def untransformed(*tensors: Tensor) -> AbstractContextManager[Any]:
    """A context in which what is computed from ordinary tensors is ordinary, too, under ``torch.func``: for caches."""
    if not is_transformed() or any(map(is_wrapped, tensors)):
        return nullcontext()
    return torch._C._DisableFuncTorch()


def differentiable(
    run: Callable[..., tuple[Tensor, ...]],
    gradients: Callable[..., tuple[Tensor | None, ...]],
    reference: Callable[..., Tensor],
    *inputs: Tensor,
) -> Tensor:
    """The first of the tensors of ``run(*inputs)``, with ``gradients(grad, needed, *inputs, *others)``, of which
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
        result, *others = run(*inputs)
        ctx.gradients, ctx.reference, ctx.num_inputs = gradients, reference, len(inputs)
        ctx.save_for_backward(*inputs, *others)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return None, None, None, *ctx.gradients(grad, ctx.needs_input_grad[3:], *saved)
        # under create_graph; aliases, so that an input that was computed from another one counts once
        inputs = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in saved[: ctx.num_inputs]]
        found = torch.autograd.grad(ctx.reference(*inputs), inputs, grad, create_graph=True)
        return None, None, None, *found
