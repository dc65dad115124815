"""One way to call a subject on fresh copies of its inputs: every run, observed or not, begins here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from gradsmith.lab.pieces import BLOCK
from gradsmith.lab.subject.arguments import Arguments, fresh
from gradsmith.lab.subject.strides import cloned


@dataclass(frozen=True)
class Copies:
    """What one call is given. `leaves` are what gradients are asked for, `passed` what the subject gets, by position."""

    leaves: dict[int, Tensor]
    passed: dict[int, Tensor]
    owned: dict[int, Tensor]  # the copy of each input, by the id of the input
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def copied(
    arguments: Arguments,
    *,
    plain: bool = False,
    through: bool = True,
    shared: Mapping[int, Tensor] | None = None,
    spare: Collection[int] = (),
) -> Copies:
    """Copies of all tensors, also where other arguments hold them (modules, closures, module globals).

    A tensor passed twice stays one tensor. `plain` asks for no gradients. `through` passes a clone of each leaf: a Function
    that marks its input dirty may not write into a leaf. `shared` are copies made earlier, by the id of the input: new
    tensors on their memory are passed. `spare` are ids of inputs that nobody else needs: they are passed as they are.

    >>> import torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> given = copied(Arguments.of((x, x)))
    >>> given.args[0] is given.args[1], given.args[0] is x, given.args[0].is_leaf
    (True, False, False)
    """
    leaves: dict[int, Tensor] = {}
    passed: dict[int, Tensor] = {}
    owned: dict[int, Tensor] = {}
    clones: dict[int, Tensor] = {}
    for leaf in arguments.leaves:
        key = id(leaf.tensor)
        if key not in owned:
            wanted = leaf.differentiable and not plain
            if shared is not None:
                source = shared[key].detach()
            elif key in spare:
                source = leaf.tensor
            elif wanted and through and leaf.tensor.numel() > BLOCK:
                source = leaf.tensor.detach()  # nobody gets hold of it but autograd, which writes nothing into it
            else:
                source = fresh(leaf.tensor, requires_grad=False)
            own = owned[key] = source.requires_grad_() if wanted else source
            clones[key] = cloned(own) if own.requires_grad and through else own
        if leaf.differentiable:
            leaves[leaf.position] = owned[key]
        passed[leaf.position] = clones[key]
    args, kwargs = arguments.with_tensors(passed)
    return Copies(leaves, passed, owned, args, kwargs)
