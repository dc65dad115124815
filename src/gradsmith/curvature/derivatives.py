"""`gs.hvp`, `gs.hessian`, `gs.jacobian`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from gradsmith.curvature.subject import as_function, scalar, single

Loss = Callable[[Any], Tensor] | None


def hvp(fn: Any, inputs: Any, v: Any, *, loss: Loss = None, batched: bool = False) -> Any:
    """The product of the Hessian of `fn` with `v`, without the Hessian: memory of a few gradients.

    `fn` is a function that gives one number, at `inputs` (a tensor or a tuple), or a module whose loss is `loss(output)`:
    then `v` is a dict like `dict(module.named_parameters())`. With `batched=True` every tensor of `v` has a leading
    dimension, and so has the result.

    >>> x = torch.tensor([1.0, 2.0])
    >>> hvp(lambda x: (x ** 3).sum(), x, torch.tensor([1.0, 1.0]))
    tensor([ 6., 12.])
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    function, point = as_function(fn, given, None, loss, "hvp")
    direction = v if isinstance(fn, nn.Module) else (v if isinstance(v, tuple) else (v,))
    _check_direction(point, direction, batched)
    function = scalar(function, "hvp")
    if batched:
        product = torch.func.vmap(lambda u: _product(function, point, u), randomness="same")
        return single(given, fn, product(direction))
    return single(given, fn, _reverse_over_reverse(function, point, direction))


def _product(function: Callable[[Any], Any], point: Any, direction: Any) -> Any:
    """Reverse over reverse, as a function that vmap can take."""
    slope = torch.func.grad(function)
    return torch.func.vjp(slope, point)[1](direction)[0]


def _reverse_over_reverse(function: Callable[[Any], Any], point: Any, direction: Any) -> Any:
    """Plain autograd: Functions of the old style, which torch.func refuses, work here."""
    leaves, spec = pytree.tree_flatten(point)
    leaves = [x.detach().requires_grad_() for x in leaves]
    along = pytree.tree_leaves(direction)
    with torch.enable_grad():
        first = torch.autograd.grad(function(pytree.tree_unflatten(leaves, spec)), leaves, create_graph=True, materialize_grads=True)  # fmt: skip
        pairs = [(g, u) for g, u in zip(first, along) if g.requires_grad]
        if not pairs:  # linear: the gradient depends on nothing
            return pytree.tree_unflatten([torch.zeros_like(x) for x in leaves], spec)
        found = torch.autograd.grad([g for g, _ in pairs], leaves, [u for _, u in pairs], materialize_grads=True)
    return pytree.tree_unflatten(list(found), spec)


def _check_direction(point: Any, direction: Any, batched: bool) -> None:
    wanted, spec = pytree.tree_flatten(point)
    found, given = pytree.tree_flatten(direction)
    if spec != given:
        kind = f"a dict with the keys {sorted(point)}" if isinstance(point, dict) else f"{len(wanted)} tensor(s)"
        raise ValueError(f"hvp: v must have the structure of what is differentiated: {kind}.")
    for x, u in zip(wanted, found):
        shape = tuple(u.shape[1:] if batched else u.shape) if isinstance(u, Tensor) else type(u).__name__
        if shape != tuple(x.shape) or (batched and u.dim() == 0):
            more = " behind the batch dimension" if batched else ""
            raise ValueError(f"hvp: v has shape {shape}{more} where the input has {tuple(x.shape)}.")


def hessian(fn: Any, *inputs: Any, loss: Loss = None, batched: bool = False, chunk: int | None = None) -> Any:
    """The Hessian of a function that gives one number, or of a module's loss by its parameters.

    One tensor gives one tensor of shape (*x.shape, *x.shape); several give a tuple of tuples; a module gives a dict of
    dicts. With `batched=True` the first dimension of every input counts independent problems. `chunk` bounds the rows
    that are made at a time.

    >>> hessian(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    if batched and isinstance(fn, nn.Module):
        raise TypeError("hessian: batched=True is for functions; a module has one set of parameters.")

    def whole(*tensors: Any) -> Any:
        function, point = as_function(fn, tensors, None, loss, "hessian")
        slope = torch.func.grad(scalar(function, "hessian"))
        found = torch.func.jacrev(slope, chunk_size=chunk)(point)
        return found[0][0] if not isinstance(fn, nn.Module) and len(tensors) == 1 else found

    return torch.func.vmap(whole)(*_same_length(inputs, "hessian")) if batched else whole(*inputs)


def jacobian(fn: Any, *inputs: Any, batched: bool = False, chunk: int | None = None, mode: str = "reverse") -> Any:
    """The Jacobian of a function by its inputs, or of a module's output by its parameters (a dict).

    `mode` is "reverse" (one backward per output element) or "forward" (one pass per input element; not through custom
    Functions without jvp). With `batched=True` the first dimension of every input counts independent problems.

    >>> jacobian(torch.sin, torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if batched and isinstance(fn, nn.Module):
        raise TypeError("jacobian: batched=True is for functions; a module has one set of parameters.")
    if mode not in ("reverse", "forward"):
        raise ValueError(f"jacobian: mode must be 'reverse' or 'forward', not {mode!r}.")

    def whole(*tensors: Any) -> Any:
        function, point = as_function(fn, tensors, None, None, "jacobian")
        if mode == "reverse":
            found = torch.func.jacrev(function, chunk_size=chunk)(point)
        else:
            found = torch.func.jacfwd(function)(point)
        return found[0] if not isinstance(fn, nn.Module) and len(tensors) == 1 and isinstance(found, tuple) else found

    return torch.func.vmap(whole)(*_same_length(inputs, "jacobian")) if batched else whole(*inputs)


def _same_length(inputs: tuple[Any, ...], op: str) -> tuple[Any, ...]:
    lengths = {x.shape[0] if isinstance(x, Tensor) and x.dim() else None for x in inputs}
    if len(lengths) != 1 or None in lengths:
        raise ValueError(f"{op}: with batched=True every input needs the same first dimension; shapes are {[tuple(x.shape) for x in inputs]}.")  # fmt: skip
    return inputs
