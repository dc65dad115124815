"""Which inputs forward looks at: computes with them, or asks them anything. What it only keeps for backward is not among them."""

from __future__ import annotations

import contextlib
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gradsmith.lab.arguments import Arguments, fresh
from gradsmith.lab.target import Target


def looked_at(target: Target, arguments: Arguments) -> set[int]:
    """Positions of the tensors that one forward looks at."""
    given = {leaf.position: fresh(leaf.tensor, requires_grad=False) for leaf in arguments.leaves}
    args, kwargs = arguments.with_tensors(given)
    with _Noting() as noting, contextlib.suppress(Exception):  # whatever it met until then, it looked at
        target.call(*args, **kwargs)
    return {position for position, tensor in given.items() if id(tensor) in noting.met}


class _Noting(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.met: set[int] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.met.update(id(leaf) for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor))
        return func(*args, **(kwargs or {}))
