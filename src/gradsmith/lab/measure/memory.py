"""Tensors of the user, read after their code ran: is the memory still there, and will it still say the same later?

`tensor.untyped_storage().resize_(0)` leaves a tensor with its shape and without its numbers. Reading it is not an exception
but the end of the process, so that everything of the user's is asked before it is read.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradsmith.lab.subject.wrapped import has_memory, is_wrapper


class FreedMemory(RuntimeError):
    """User code freed the memory of a tensor that was to be read. The text continues `backward ...`."""


def whole(tensor: Tensor) -> bool:
    """Whether the storage still holds every element.

    >>> x = torch.ones(3)
    >>> y = x[:1]
    >>> _ = x.untyped_storage().resize_(4)
    >>> whole(x), whole(y)
    (False, True)
    """
    if tensor.layout != torch.strided or not tensor.numel() or not has_memory(tensor):
        return True
    last = tensor.storage_offset() + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    with torch._C.DisableTorchFunctionSubclass():
        return Tensor.untyped_storage(tensor).nbytes() >= (last + 1) * tensor.element_size()


def readable(tensor: Tensor, what: str) -> Tensor:
    """The tensor itself, or FreedMemory: `returns a gradient, whose memory was freed`."""
    if not whole(tensor):
        raise FreedMemory(f"returns {what} of shape {tuple(tensor.shape)}, whose memory was freed")
    return tensor


def kept(gradient: Tensor | None) -> Tensor | None:
    """A gradient as it is now: a buffer that backward returns and fills again is another one after the next backward."""
    if gradient is None or is_wrapper(gradient):
        return gradient
    return readable(gradient, "a gradient").detach().clone()
