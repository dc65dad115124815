"""Derivatives that are better known whole than by the operations they are made of: losses and normalisations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradsmith.deriving.node import Node, is_number, value_of
from gradsmith.deriving.structured.registry import Pairs, rule


def stays_whole(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Is there a rule for the call as it stands? Else it is taken apart."""
    if name == "layer_norm":
        return True
    if name != "cross_entropy":
        return False
    names = ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing")
    given = dict(zip(names, args)) | kwargs
    x, target = given.get("input"), given.get("target")
    plain = given.get("weight") is None and not given.get("label_smoothing", 0.0)
    classes = isinstance(target, Tensor) and not target.is_floating_point()
    return plain and classes and isinstance(x, Tensor) and x.ndim > 1 and given.get("reduce") is None


@rule
def cross_entropy(y: Node, g: Any) -> Pairs:
    """softmax minus one-hot, for the targets that count."""
    x, target, _, _, ignored, _, reduction, _ = y.args
    graph = y.graph
    for own, other in zip(target.dims, (x.dims[0], *x.dims[2:])):
        graph.agree(other, own)
    with graph.of_forward():
        kept = graph.make("ne", target, ignored)
    kept.name = kept.name or "kept"
    one_hot = graph.make("one_hot", graph.call("where", (kept, target, 0), {}), graph.size(x, 1))
    if len(x.dims) > 2:
        one_hot = one_hot.movedim(-1, 1)
    one_hot.dims = x.dims
    if reduction == "mean":
        g = g / graph.make("sum", kept, None, False)
    elif reduction == "none":
        g = g.unsqueeze(1)
    yield x, g * (x.softmax(1) - one_hot) * kept.unsqueeze(1)


@rule
def layer_norm(y: Node, g: Any) -> Pairs:
    """The gradient with its two means taken out: that of the gradient, and that of its product with the normalised input."""
    x, shape, weight, bias, eps = y.args
    dims: Any = tuple(range(-len(shape), 0)) if len(shape) > 1 else -1
    graph = y.graph
    for parameter in (weight, bias):
        for own, other in zip(reversed(parameter.dims), reversed(x.dims)) if isinstance(parameter, Node) else ():
            graph.agree(other, own)
    with graph.of_forward():
        mean = graph.make("mean", x, dims, True)
        rstd = graph.make("rsqrt", graph.make("add", graph.make("var", x, dims, 0, True), eps))
        normed = graph.make("mul", graph.make("sub", x, mean), rstd)
    rstd.name, normed.name = rstd.name or "rstd", normed.name or "normed"
    inner = g * weight if isinstance(weight, Node) else g
    yield x, rstd * (inner - inner.mean(dims, keepdim=True) - normed * (inner * normed).mean(dims, keepdim=True))
    if isinstance(weight, Node):
        yield weight, g * normed
    if isinstance(bias, Node):
        yield bias, g


def spreads(node: Node) -> bool:
    """Does the derivative of the subgraph multiply the gradient into the full shape, whatever shape it comes in?"""
    return node.op == "gather" and _picks_one(node)


def whole(node: Node, g: Any, fit: Any) -> Iterator[tuple[Any, Any]] | None:
    """The derivative of a subgraph that ends in this value, for those that are better known whole; None for all others."""
    if node.op == "div" and _softmax_of(node) is not None:
        return iter([_softmax_by_hand(node, fit(node, g))])
    if node.op == "div" and _segments_of(node) is not None:
        return iter([_softmax_of_segments(node, fit(node, g))])
    if node.op == "add" and _shifted_back(node) is not None:
        return iter([_logsumexp_by_hand(node, fit(node, g))])
    if node.op == "sub" and _logits_of(node) is not None:
        return iter(_probability_minus_target(node, g))
    if node.op in ("mul", "div"):
        found = _normalised(node)
        if found is not None:
            node.name = node.name or "normed"
            g = fit(node, g)
            if g.op not in ("grad", "carried") and g.back:
                g.grad_of = node
            return iter([_two_means(node, *found, g)])
    if spreads(node):
        return iter([_softmax_minus_one_hot(node, g)])
    return None


def _logits_of(node: Node) -> tuple[Node, Any] | None:
    """(x, target) where the value is (1 - target) * x - logsigmoid(x): the cross entropy of two classes."""
    above, log = node.args
    if not (isinstance(above, Node) and isinstance(log, Node)) or log.op != "logsigmoid" or above.op != "mul":
        return None
    x = log.args[0]
    for first, second in (above.args, tuple(reversed(above.args))):
        if second is x and isinstance(first, Node) and first.op == "sub" and is_number(first.args[0], 1):
            return x, first.args[1]
    return None


def _probability_minus_target(node: Node, g: Any) -> list[tuple[Any, Any]]:
    found = _logits_of(node)
    assert found is not None
    x, target = found
    return [(x, g * (x.sigmoid() - target)), (target, -g * x)]


def _softmax_of(node: Node) -> tuple[Node, Any] | None:
    """(z, dim) where the value is exp(z) / exp(z).sum(dim, keepdim=True)."""
    above, below = node.args
    if not (isinstance(above, Node) and isinstance(below, Node)) or above.op != "exp" or not _sum_over(below, above):
        return None
    return above.args[0], below.graph.operations["sum"].argument(below.args, "dim")


def _softmax_by_hand(node: Node, g: Any) -> tuple[Node, Any]:
    found = _softmax_of(node)
    assert found is not None
    z, dim = found
    node.name = node.name or "softmax"
    return _unshifted(z, dim), node * (g - (g * node).sum(dim, keepdim=True))


def _segments_of(node: Node) -> tuple[Node, Node, int, Node] | None:
    """(z, the sums, dim, index) where the value is exp(z) over the sum of exp(z) of its own segment."""
    above, below = node.args
    if not (isinstance(above, Node) and isinstance(below, Node)) or above.op != "exp":
        return None
    if below.op == "add":  # the sum and a small number
        number = next((n for n in below.args if is_number(n)), None)
        below = next((n for n in below.args if isinstance(n, Node)), below) if number is not None else below
    read = {"getitem": (0, 1), "index_select": (1, 2), "gather": (1, 2)}.get(below.op)
    if read is None or not isinstance(below.args[0], Node) or below.args[0].op not in ("index_add", "scatter_add"):
        return None
    dim, index = 0 if below.op == "getitem" else below.args[1], below.args[read[1]]
    start, along, into, terms = below.args[0].args
    alike = terms is above and into is index and isinstance(along, int) and along == dim
    whole = (below.op == "gather") == (below.args[0].op == "scatter_add") and isinstance(index, Node)
    if not (alike and whole and _is_zeros(start)) or (below.op == "getitem" and index.value.dtype == torch.bool):
        return None
    return above.args[0], below.args[0], dim, index


def _is_zeros(value: Any) -> bool:
    if not isinstance(value, Node):
        return False
    return value.op in ("new_zeros", "zeros_like") or (value.op == "create" and value.args[0] == "torch.zeros")


def _softmax_of_segments(node: Node, g: Any) -> tuple[Node, Any]:
    found = _segments_of(node)
    assert found is not None
    z, total, dim, index = found
    node.name = node.name or "softmax"
    inner = g * node
    sums = node.graph.make(total.op, node.graph.zeros_of(inner, total), dim, index, inner)
    read = "gather" if total.op == "scatter_add" else "index_select"
    return z, node * (g - node.graph.make(read, sums, dim, index))


def _shifted_back(node: Node) -> tuple[Node, Node, Any] | None:
    """(x, sum of exponentials, dim) where the value is m + log(exp(x - m).sum(dim)), with the m that was taken away."""
    for shift, log in (node.args, tuple(reversed(node.args))):
        if not (isinstance(shift, Node) and isinstance(log, Node)) or log.op != "log" or log.args[0].op != "sum":
            continue
        total = log.args[0]
        operation = total.graph.operations["sum"]
        exp, dim = total.args[0], operation.argument(total.args, "dim")
        if exp.op != "exp" or exp.args[0].op != "sub" or not isinstance(dim, int):
            continue
        x, m = exp.args[0].args
        if not isinstance(x, Node) or not isinstance(m, Node) or not _one_along(m, dim):
            continue
        kept = bool(operation.argument(total.args, "keepdim"))
        if shift is (m if kept else _squeezed(m, dim)):
            return x, total, dim
    return None


def _logsumexp_by_hand(node: Node, g: Any) -> tuple[Node, Any]:
    found = _shifted_back(node)
    assert found is not None
    x, total, dim = found
    kept = bool(total.graph.operations["sum"].argument(total.args, "keepdim"))
    exp = total.args[0]
    return x, (g / total if kept else (g / total).unsqueeze(dim)) * exp


def _sum_over(total: Node, terms: Node) -> bool:
    """Is this the sum of these terms, along a dimension that stays?"""
    if total.op != "sum" or total.args[0] is not terms:
        return False
    operation = total.graph.operations["sum"]
    return bool(operation.argument(total.args, "keepdim")) and operation.argument(total.args, "dim") is not None


def _unshifted(z: Node, dim: Any) -> Node:
    """x where z is x - m and m is one number along `dim`: softmax does not change with it, so no gradient reaches m."""
    if z.op == "sub" and all(isinstance(n, Node) and n.is_tensor for n in z.args):
        x: Node = z.args[0]
        m: Node = z.args[1]
        if len(x.dims) == len(z.dims) and all(_one_along(m, d) for d in (dim if isinstance(dim, tuple) else (dim,))):
            return x
    return z


def _one_along(m: Node, dim: int) -> bool:
    return m.is_tensor and bool(m.dims) and is_number(m.dims[dim], 1)


def _squeezed(m: Node, dim: int) -> Any:
    """`m.squeeze(dim)`, as the user's source has made it."""
    with m.graph.of_forward():
        return m.graph.call("squeeze", (m, dim), {})


def _normalised(node: Node) -> tuple[Node, Node, Any, bool] | None:
    """(x, its spread, dims, is it centred) where the value is (x - mean) / sqrt(var + eps), or x * rsqrt(mean(x**2) + eps)."""
    orders = [node.args, tuple(reversed(node.args))] if node.op == "mul" else [node.args]
    for a, spread in orders:
        root = "sqrt" if node.op == "div" else "rsqrt"
        if not (isinstance(spread, Node) and isinstance(a, Node) and spread.op == root):
            continue
        if not isinstance(spread.args[0], Node) or spread.args[0].op != "add":
            continue
        inner = next((n for n in spread.args[0].args if isinstance(n, Node) and n.op in ("var", "mean")), None)
        if inner is None or not inner.graph.operations[inner.op].argument(inner.args, "keepdim"):
            continue
        dims = inner.graph.operations[inner.op].argument(inner.args, "dim")
        centred = a.op == "sub" and a.args[1] is a.graph.make("mean", a.args[0], dims, True)
        x = a.args[0] if centred else a
        square = inner.args[0]
        squared = (
            is_number(square.args[1], 2) if square.op == "pow" else square.op == "mul" and len({*square.args}) == 1
        )
        fits = (
            square.args[0] is a
            if inner.op == "mean" and squared
            else inner.op == "var" and centred and inner.args[0] is x and is_number(inner.args[2], 0)
        )
        if fits:
            return x, spread, dims, centred
    return None


def _two_means(node: Node, x: Node, spread: Node, dims: Any, centred: bool, g: Any) -> tuple[Node, Any]:
    along = node * (g * node).mean(dims, keepdim=True)
    inner = g - g.mean(dims, keepdim=True) - along if centred else g - along
    return x, inner / spread if node.op == "div" else spread * inner


def _picks_one(node: Node) -> bool:
    """One log-probability per row: `log_softmax(x, dim).gather(dim, index)` with an index of size 1 along dim."""
    logp, dim, index = node.args
    if logp.op != "log_softmax" or is_number(index) or not isinstance(dim, int):
        return False
    d = dim % len(logp.dims)
    if value_of(logp.args[1]) % len(logp.dims) != d or not is_number(index.dims[d], 1):
        return False
    graph = node.graph
    rows = [(logp.dims[i], index.dims[i]) for i in range(len(logp.dims)) if i != d]
    unsure = [pair for pair in rows if not graph.same(*pair)]
    if unsure and not graph.trusting:
        graph.rather_trusting = True  # gather takes an index with fewer rows, too: forward has to test it
        return False
    for pair in unsure:
        graph.trust(list(pair))
    return True


def _softmax_minus_one_hot(node: Node, g: Any) -> tuple[Node, Any]:
    logp, dim, index = node.args
    x, d = logp.args[0], dim % len(logp.dims)
    graph = node.graph
    one_hot = graph.make("one_hot", index.squeeze(dim), graph.size(x, d))
    one_hot = one_hot if d == len(logp.dims) - 1 else one_hot.movedim(-1, d)
    one_hot.dims = logp.dims
    return x, g * (one_hot - x.softmax(dim))
