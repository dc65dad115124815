"""Which inputs took part in the operation that failed: what was tried for the others need not be varied."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.inputs.guess.endless import Stopped

Origins = frozenset[int]


class Blame(Stopped):
    """Follows tensors from the inputs through torch's functions; `origins` are those of the call that raised."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        super().__init__()
        self.origins: Origins = frozenset()
        self.known: dict[int, Origins] = {}
        self.alive: list[Tensor] = []  # ids are only good while the tensors live
        for position, value in enumerate(args):
            for leaf in pytree.tree_leaves(value):
                if isinstance(leaf, Tensor):
                    self._note(leaf, frozenset({position}))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = frozenset[int]().union(*(self.known.get(id(t), frozenset()) for t in _tensors((args, kwargs))))
        try:
            result = super().__torch_function__(func, types, args, kwargs)
        except Exception:
            self.origins = self.origins or given
            raise
        for tensor in _tensors(result):
            self._note(tensor, given | self.known.get(id(tensor), frozenset()))
        return result

    def _note(self, tensor: Tensor, origins: Origins) -> None:
        self.known[id(tensor)] = origins
        self.alive.append(tensor)


def _tensors(values: Any) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [values]
    if not isinstance(values, (tuple, list, dict)):
        return []
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor)]
