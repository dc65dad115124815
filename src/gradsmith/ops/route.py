"""Who else is watching: the ways in which a call may not run as a Function in plain eager mode.

Functions of this package are written for speed: no inspect.signature per call, C on raw memory. Under torch.compile,
vmap, func.grad, forward mode or a dispatch mode the same values come from plain PyTorch operations instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

_transforms_active: Callable[[], bool] = torch._C._are_functorch_transforms_active
has_memory: Callable[[Tensor], bool] = torch._C._has_storage
_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
is_compiling = torch.compiler.is_compiling


def transformed() -> bool:
    """Whether torch.compile traces this call, or vmap, func.grad or forward mode are at work."""
    return is_compiling() or _transforms_active() or forward_ad._current_level >= 0


def without_data(x: Tensor) -> bool:
    """Whether x only stands in for a tensor while a tracer (make_fx, `gs.scan`) writes down what is computed with it."""
    fakes = sys.modules.get("torch._subclasses.fake_tensor")
    return fakes is not None and isinstance(x, fakes.FakeTensor)


LEAST = 512  # elements; below, the way into C (20 microseconds of Python) costs more than it saves


def in_memory(*tensors: Tensor | None, small: bool = False) -> bool:
    """Whether C may read these, and pays: plain float32 or float64 tensors of one dtype in the memory of the CPU.

    The first is the large one; `small` says that it pays whatever its size. A backward that runs under vmap
    (`is_grads_batched=True`) gets tensors of the ordinary type without memory.
    """
    dtype = None
    if not small and tensors[0] is not None and tensors[0].numel() < LEAST:
        return False
    for tensor in tensors:
        if tensor is None:
            continue
        if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.device.type != "cpu" or not has_memory(tensor):
            return False
        if dtype is not None and tensor.dtype is not dtype:
            return False
        dtype = tensor.dtype
    return dtype in (torch.float32, torch.float64) and not _modes() and not is_compiling()


def autocast_dtype(x: Tensor) -> torch.dtype | None:
    """The dtype that autocast asks for where x lives; None where it is off, or unknown to the device ("meta")."""
    kind = x.device.type
    on = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if on else None


def without_autocast(x: Tensor) -> AbstractContextManager[Any]:
    """Where the dtypes are settled, nothing is converted any more."""
    kind = x.device.type
    return torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext()


def wide(*tensors: Tensor) -> list[Tensor]:
    """float16 and bfloat16 in float32, others as they are: intermediate results must not be rounded to three digits."""
    return [t.float() if t.dtype in (torch.float16, torch.bfloat16) else t for t in tensors]


def applier(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """`function.apply` without the 12 microseconds that binding a signature costs a Function with setup_context.

    torch binds the arguments to the signature of forward to fill in defaults; our callers give every argument.
    """
    plain: Callable[..., Any] = super(torch.autograd.Function, function).apply  # type: ignore[misc]

    def apply(*args: Any) -> Any:
        if is_compiling() or _transforms_active():
            return function.apply(*args)
        return plain(*args)

    apply.__name__ = f"ops.{function.__name__}"
    return apply
