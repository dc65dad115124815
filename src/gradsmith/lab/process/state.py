"""Leave the user's process as it was: random state, default dtype, grad mode, warnings, `.grad`."""

from __future__ import annotations

import contextlib
import gc
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.lab.process import device


def seed_all(seed: int) -> None:
    """Every source of randomness that forward is likely to draw from."""
    device.seed(seed)
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


@contextlib.contextmanager
def preserved(*owners: Any) -> Iterator[None]:
    """Restore global state afterwards, also on Ctrl-C; `owners` are tensors and modules whose `.grad` is kept."""
    generators = device.random_state()
    python_state = random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    dtype, grad_mode, collecting = torch.get_default_dtype(), torch.is_grad_enabled(), gc.isenabled()
    deterministic = torch.are_deterministic_algorithms_enabled()
    grads = [(t, t.grad) for t in _tensors(owners)]
    training = [(m, m.training) for owner in owners if isinstance(owner, nn.Module) for m in owner.modules()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.set_grad_enabled(True)
            yield
    finally:
        torch.set_grad_enabled(grad_mode)
        torch.set_default_dtype(dtype)
        if torch.are_deterministic_algorithms_enabled() != deterministic:
            torch.use_deterministic_algorithms(deterministic)  # imports torch._inductor, 2 s: only where it is needed
        device.restore_random_state(generators)
        random.setstate(python_state)
        if numpy is not None and numpy_state is not None:
            numpy.random.set_state(numpy_state)
        for tensor, grad in grads:
            tensor.grad = grad
        for module, mode in training:
            module.training = mode
        if collecting:
            gc.enable()
        else:
            gc.disable()


def _tensors(owners: tuple[Any, ...]) -> list[Tensor]:
    found: list[Tensor] = []
    for owner in owners:
        if isinstance(owner, Tensor) and owner.is_leaf:
            found.append(owner)
        elif isinstance(owner, nn.Module):
            found.extend(owner.parameters())
    return found
