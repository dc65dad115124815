"""Plain PyTorch instruments: how many operators ran, how many bytes autograd keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class _Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls[func._schema.name] += 1
        if isinstance(result, Tensor):
            self.elements += result.numel()
        return result


def count_ops(run: Callable[[], object]) -> Counter[str]:
    """How often each operator ran, by its name ("aten::mm")."""
    with _Counting() as mode:
        run()
    return mode.calls


def count_elements(run: Callable[[], object]) -> int:
    """How many elements all operators together returned."""
    with _Counting() as mode:
        run()
    return mode.elements


def saved_bytes(run: Callable[[], object]) -> int:
    """Bytes of the distinct storages that autograd saved while this ran."""
    storages: dict[int, int] = {}
    kept = []

    def pack(t: Tensor) -> Tensor:
        kept.append(t)
        storages[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        result = run()
    del result
    return sum(storages.values())


def unpack_calls(run: Callable[[], Tensor]) -> int:
    """How often a saved tensor was fetched during the backward of what this returns."""
    count = 0

    def unpack(t: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return t

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = run()
        y.sum().backward()
    return count
