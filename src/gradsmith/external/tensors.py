"""Tensors to arrays and back: dtype and device are those of the inputs again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradsmith.external.foreign import AnyArray

_COMPLEX = {torch.float64: torch.complex128}


def as_array(tensor: Tensor, dtype: np.dtype[Any]) -> AnyArray:
    """The numbers of a tensor; floating-point ones in the precision that the function wants."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_floating_point():
        if tensor.dtype is torch.bfloat16:  # which NumPy does not have
            tensor = tensor.float()
        return tensor.resolve_neg().numpy().astype(dtype, copy=False)
    if tensor.is_complex():
        return tensor.resolve_conj().resolve_neg().numpy().astype(np.result_type(dtype, np.complex64))
    found: AnyArray = tensor.numpy()
    return found


def numpy_type(kind: torch.dtype, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the array that a tensor of this kind becomes."""
    if kind.is_floating_point:
        return dtype
    return np.result_type(dtype, np.complex64) if kind.is_complex else np.dtype(str(kind).removeprefix("torch."))


def float_type(tensors: Sequence[Tensor]) -> Callable[[np.dtype[Any]], torch.dtype]:
    """How a type of NumPy comes back: real and complex numbers in the precision of the inputs, others as they are."""
    kinds = [t.dtype for t in tensors if t.is_floating_point()]
    real: torch.dtype | None = kinds[0] if kinds else None
    for kind in kinds[1:]:
        real = torch.promote_types(real, kind) if real is not None else kind

    def of(dtype: np.dtype[Any]) -> torch.dtype:
        if dtype.kind == "f" and real is not None:
            return real
        if dtype.kind == "c" and real is not None:
            return _COMPLEX.get(real, torch.complex64)
        return torch.from_numpy(
            np.empty(
                0,
                dtype=np.longdouble(0).astype(np.float64).dtype if dtype.itemsize > 8 and dtype.kind == "f" else dtype,
            )
        ).dtype

    return of


def as_tensors(outputs: Sequence[AnyArray], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Outputs as tensors with the dtype and on the device of the inputs. They own their memory: no other array shows through."""
    kind, device = float_type(inputs), inputs[0].device if inputs else torch.device("cpu")
    found = []
    for out in outputs:
        wanted = kind(out.dtype)
        if out.dtype.kind == "f" and out.dtype.itemsize > 8:
            out = out.astype(np.float64)
        tensor = torch.from_numpy(np.ascontiguousarray(out).reshape(out.shape))
        found.append(tensor.to(device=device, dtype=wanted))
    return found


def weights(grads: Sequence[Tensor], outputs: Sequence[AnyArray]) -> list[AnyArray | None]:
    """The gradients of the outputs as arrays; None for outputs that carry none."""
    found: list[AnyArray | None] = []
    for grad, out in zip(grads, outputs):
        found.append(as_array(grad, np.dtype(np.float64)).reshape(out.shape) if out.dtype.kind in "fc" else None)
    return found
