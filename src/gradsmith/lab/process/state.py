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
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy

from gradsmith.lab.process import device
from gradsmith.lab.process.names import kept_names


def seed_all(seed: int) -> None:
    """Every source of randomness that forward is likely to draw from."""
    device.seed(seed)
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


@contextlib.contextmanager
def preserved(*owners: Any) -> Iterator[None]:
    """Restore global state afterwards, also on Ctrl-C; `owners` are tensors and modules.

    Of both `.grad` is kept; of modules also the values of parameters and buffers, the training flag, hooks, and whatever else stands on them.
    """
    generators = device.random_state()
    python_state = random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    dtype, grad_mode, collecting = torch.get_default_dtype(), torch.is_grad_enabled(), gc.isenabled()
    deterministic = torch.are_deterministic_algorithms_enabled()
    grads = [(t, t.grad) for t in _tensors(owners)]
    modules = [m for owner in owners if isinstance(owner, nn.Module) for m in owner.modules()]
    values = {id(t): (t, t.detach().clone()) for m in modules for t in _own_tensors(m) if not is_lazy(t)}
    try:
        with warnings.catch_warnings(), kept_names([m for m in modules if not isinstance(m, LazyModuleMixin)]):
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
        for tensor, value in values.values():
            if not torch.equal(tensor, value):
                with torch.no_grad():
                    tensor.copy_(value)
        if collecting:
            gc.enable()
        else:
            gc.disable()


def sparse_checked() -> contextlib.AbstractContextManager[Any]:
    """Sparse tensors whose indices lie beyond their size raise. torch does not look by default, and computing with one
    writes into foreign memory, which ends the process. For inputs of our own making only.
    """
    checked: contextlib.AbstractContextManager[Any] = torch.sparse.check_sparse_tensor_invariants()
    return checked


def _own_tensors(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(recurse=False), *module.buffers(recurse=False)]


def _tensors(owners: tuple[Any, ...]) -> list[Tensor]:
    found: list[Tensor] = []
    for owner in owners:
        if isinstance(owner, Tensor) and owner.is_leaf:
            found.append(owner)
        elif isinstance(owner, nn.Module):
            found.extend(owner.parameters())
    return found
