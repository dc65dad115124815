"""Nested states, inputs and outputs: flattened to leaves, each with the name its reader would use for it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class Flat:
    """The tensors of a nested structure in order, their names, and what is needed to rebuild the structure."""

    leaves: tuple[torch.Tensor, ...]
    names: tuple[str, ...]
    spec: Any

    def rebuild(self, leaves: list[torch.Tensor]) -> Any:
        return pytree.tree_unflatten(leaves, self.spec)


def flatten(tree: Any, name: str, who: str) -> Flat:
    """Flatten `tree`; every leaf must be a tensor, and is named like `state[0]['v']`."""
    if isinstance(tree, torch.Tensor):
        return Flat((tree,), (name,), _ONE)
    if type(tree) is tuple and all(isinstance(part, torch.Tensor) for part in tree):
        return Flat(tree, *_named_and_structured(name, len(tree)))
    with_paths, spec = pytree.tree_flatten_with_path(tree)
    leaves: list[torch.Tensor] = []
    names: list[str] = []
    for path, leaf in with_paths:
        label = name + pytree.keystr(path)
        if not isinstance(leaf, torch.Tensor):
            raise TypeError(f"{who}: {label} must be a tensor, not {type(leaf).__name__}.")
        leaves.append(leaf)
        names.append(label)
    return Flat(tuple(leaves), tuple(names), spec)


_ONE = pytree.tree_structure(0)


@functools.cache
def _named_and_structured(name: str, parts: int) -> tuple[tuple[str, ...], Any]:
    """For a tuple of tensors, which most states are: 25 microseconds less at every call."""
    return tuple(f"{name}[{i}]" for i in range(parts)), pytree.tree_structure((0,) * parts)


def pieces_of(spec: Any) -> Any:
    """The types and keys that a structure is made of: a step can call the methods of a state's own class."""
    if spec.is_leaf():
        return None
    kind = spec.type if isinstance(spec.type, type) else None  # a named tuple's class is its context
    return (kind, spec.context, *(pieces_of(child) for child in _children(spec)))


def _children(spec: Any) -> Any:
    """`TreeSpec` had a list of its parts, and has a method in newer versions."""
    return spec.children() if hasattr(spec, "children") else spec.children_specs


def describe(tensor: torch.Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))}{',' if tensor.dim() == 1 else ''})"
