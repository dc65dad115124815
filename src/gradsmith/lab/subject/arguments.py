"""The inputs of a subject: any nesting of tensors and other values, with a name for every tensor in it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from gradsmith.lab.subject.holders import HeldTensor, held_in, holding
from gradsmith.lab.subject.strides import cloned

_HOLDS_NOTHING = (bool, int, float, complex, str, type(None))


@dataclass(frozen=True)
class Leaf:
    """One tensor among the inputs. `differentiable` means: its gradient is asked for.

    `held` are the tensors in it that another argument holds (parameters of a module that is passed, too). `domains` are the
    names of the domains that the user's own example lies in; None where nobody has asked.
    """

    name: str
    position: int
    tensor: Tensor
    differentiable: bool
    held: tuple[HeldTensor, ...] = ()
    domains: tuple[str, ...] | None = None

    @property
    def of_module(self) -> bool:
        """Whether it is a parameter of the module that is the subject: its shape and memory are the module's business."""
        return self.name.startswith("parameters[")

    def twins(self, given: Tensor) -> dict[int, Tensor]:
        """What the holders are to hold where this tensor is given instead."""
        return {id(held.tensor): held.twin(given) for held in self.held}


@dataclass
class Arguments:
    """What a subject is called with.

    `flat` holds every value in the order of the nesting; `leaves` are the tensors among them.
    """

    flat: list[Any]
    spec: pytree.TreeSpec
    leaves: list[Leaf] = field(default_factory=list)

    @staticmethod
    def of(args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, names: Sequence[str] = ()) -> Arguments:
        pairs, spec = pytree.tree_flatten_with_path((tuple(args), dict(kwargs or {})))
        holders = [value for _, value in pairs if not isinstance(value, Tensor)]
        leaves = [
            Leaf(_name(path, names), i, value, _wants_gradient(value), held_in(value, holders))
            for i, (path, value) in enumerate(pairs)
            if isinstance(value, Tensor)
        ]
        return Arguments([value for _, value in pairs], spec, leaves)

    def names(self, names: Sequence[str] = ()) -> list[str]:
        """What each of the flat values is called: `x`, `kernel_size[0]`, `state['h']`.

        >>> Arguments.of((1, (2, 3)), {"dim": 0}, ("x", "pad")).names(("x", "pad"))
        ['x', 'pad[0]', 'pad[1]', 'dim']
        """
        nested = pytree.tree_unflatten(self.flat, self.spec)
        return [_name(path, names) for path, _ in pytree.tree_flatten_with_path(nested)[0]]

    @property
    def differentiable(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.differentiable]

    def with_tensors(self, tensors: Mapping[int, Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) with the tensors at these positions replaced, also where another argument holds them."""
        twins = _merged(x.twins(tensors[x.position]) for x in self.leaves if x.position in tensors)
        flat = [
            tensors[i] if i in tensors else value if isinstance(value, _HOLDS_NOTHING) else holding(value, twins)
            for i, value in enumerate(self.flat)
        ]
        args, kwargs = pytree.tree_unflatten(flat, self.spec)
        return args, kwargs

    def beside_copies(self, tensors: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """These tensors, and a copy of every other: forward may write into a buffer, or free it."""
        others = {x.position: x.tensor.detach().clone() for x in self.leaves if x.position not in tensors}
        return {**others, **tensors}

    def replaced(self, tensors: Mapping[int, Tensor]) -> Arguments:
        """The same arguments with other tensors (same roles). A tensor passed twice stays one tensor."""
        twins = {id(x.tensor): tensors[x.position] for x in self.leaves if x.position in tensors}
        tensors = {x.position: twins[id(x.tensor)] for x in self.leaves if id(x.tensor) in twins} | dict(tensors)
        leaves = [replace(x, tensor=tensors.get(x.position, x.tensor)) for x in self.leaves]
        return Arguments([tensors.get(i, v) for i, v in enumerate(self.flat)], self.spec, leaves)

    def only(self, positions: set[int]) -> Arguments:
        """The same values, but only these positions require grad."""
        leaves = [replace(x, differentiable=x.position in positions) for x in self.leaves]
        return Arguments(list(self.flat), self.spec, leaves)

    def cast(self, dtype: torch.dtype) -> Arguments:
        """Floating tensors (and modules) in another precision; complex follow with the matching width."""
        flat = list(self.flat)
        memo: dict[int, Any] = {}
        for i, value in enumerate(flat):
            if isinstance(value, Tensor):
                flat[i] = memo.setdefault(id(value), _cast(value, dtype))
        twins = _merged(x.twins(flat[x.position]) for x in self.leaves)
        for i, value in enumerate(flat):
            if isinstance(value, nn.Module):
                # Tensors stand in for parameters: `.to` leaves those alone that have the type already.
                flat[i] = memo.setdefault(id(value), copy.deepcopy(value, dict(twins)).to(dtype))
            elif twins:
                flat[i] = holding(value, twins)
        leaves = [
            replace(x, tensor=flat[x.position], held=tuple(HeldTensor(twins[id(h.tensor)], h.start) for h in x.held))
            for x in self.leaves
        ]
        return Arguments(flat, self.spec, leaves)

    @property
    def modules(self) -> list[nn.Module]:
        return [value for value in self.flat if isinstance(value, nn.Module)]

    def shapes(self) -> str:
        """The inputs as a reader would write them in a sentence: `x (4, 3) float64, dim=1`."""
        words = []
        tensors = {leaf.position: leaf for leaf in self.leaves}
        for i, value in enumerate(self.flat):
            if i in tensors:
                leaf = tensors[i]
                words.append(f"{leaf.name} {tuple(leaf.tensor.shape)} {str(leaf.tensor.dtype).removeprefix('torch.')}")
            else:
                function = callable(value) and not isinstance(value, (nn.Module, type))
                kind = "a function" if function else type(value).__name__
                words.append(repr(value) if len(repr(value)) < 40 else kind)
        return ", ".join(words)


def _merged(parts: Iterable[dict[int, Tensor]]) -> dict[int, Tensor]:
    return {key: tensor for part in parts for key, tensor in part.items()}


def parameter_names(function: Callable[..., Any], *, skip_first: bool) -> list[str]:
    """Names of the positional parameters, `*args` as `args*`; empty where Python cannot tell."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    names = []
    for p in parameters[1:] if skip_first else parameters:
        if p.kind is p.VAR_POSITIONAL:
            names.append(p.name + "*")
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
    return names


def fresh(tensor: Tensor, *, requires_grad: bool) -> Tensor:
    """A detached copy that lies in memory as the tensor does."""
    copied = cloned(tensor.detach())
    return copied.requires_grad_(requires_grad) if requires_grad else copied


def _cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if tensor.is_complex():
        wide = torch.complex128 if dtype == torch.float64 else torch.complex64
        return tensor.detach().to(wide).requires_grad_(tensor.requires_grad)
    if tensor.is_floating_point():
        return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)
    return tensor


def _wants_gradient(value: Tensor) -> bool:
    return value.requires_grad and (value.is_floating_point() or value.is_complex())


def _name(path: Sequence[Any], names: Sequence[str]) -> str:
    """`x`, `weights[0]`, `state['h']` from a pytree path whose head is (args | kwargs, position | keyword)."""
    which, where, rest = path[0].idx, path[1], path[2:]
    if which == 1:
        head = str(where.key)
    elif where.idx < len(names) and not names[where.idx].endswith("*"):
        head = names[where.idx]
    elif names and names[-1].endswith("*"):
        head = f"{names[-1][:-1]}[{where.idx - len(names) + 1}]"
    else:
        head = f"input {where.idx}"
    return head + "".join(str(part) if str(part).startswith((".", "[")) else f"[{part}]" for part in rest)
