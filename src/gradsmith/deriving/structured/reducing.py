"""Derivatives of reductions, and of what works along a dimension."""

from __future__ import annotations

from typing import Any

from gradsmith.deriving.dims import reduced
from gradsmith.deriving.node import Node, value_of
from gradsmith.deriving.structured.kernels import vjp
from gradsmith.deriving.structured.moving import at
from gradsmith.deriving.structured.registry import Pairs, rule


def unreduced(node: Node, value: Any) -> Any:
    """A reduced value with the reduced dimensions back as ones."""
    operation = node.graph.operations[node.op]
    dim, keep = operation.argument(node.args, "dim"), operation.argument(node.args, "keepdim")
    if keep or dim in (None, ()) or value.dims == ():
        return value
    for d in reduced(dim, len(node.args[0].dims)) if isinstance(dim, tuple) else [dim]:
        value = value.unsqueeze(d)
    return value


def count(node: Node) -> Any:
    """How many elements a reduction takes together."""
    x, dim = node.args[0], node.graph.operations[node.op].argument(node.args, "dim")
    if dim in (None, ()) or x.dims == ():  # an empty tuple is every dimension
        return node.graph.make("numel", x) if x.dims else 1
    total: Any = 1
    for d in dim if isinstance(dim, tuple) else (dim,):
        total = node.graph.arith("mul", total, node.graph.size(x, value_of(d)))
    return total


@rule
def sum_(y: Node, g: Any) -> Pairs:
    yield y.args[0], unreduced(y, g)


@rule
def mean(y: Node, g: Any) -> Pairs:
    yield y.args[0], unreduced(y, g) / count(y)


@rule
def var(y: Node, g: Any) -> Pairs:
    x, dim, correction, _ = y.args
    middle = y.graph.make("mean", x, dim, dim is not None)
    yield x, 2 * unreduced(y, g) * (x - middle) / (count(y) - correction if correction else count(y))


@rule
def std(y: Node, g: Any) -> Pairs:
    x, dim, correction, _ = y.args
    middle = y.graph.make("mean", x, dim, dim is not None)
    spread = unreduced(y, y)
    found = unreduced(y, g) * (x - middle) / (spread * (count(y) - correction if correction else count(y)))
    yield x, found.masked_fill(y.graph.make("eq", spread, 0), 0)


@rule
def nansum(y: Node, g: Any) -> Pairs:
    x = y.args[0]
    yield x, unreduced(y, g) * ~x.isnan()


@rule
def prod(y: Node, g: Any) -> Pairs:
    yield from vjp(y, g)  # `g * y / x` is shorter, and NaN where one factor is 0


@rule
def extremum(y: Node, g: Any) -> Pairs:
    x, dim, _ = y.args
    hit = y.graph.make("eq", x, unreduced(y, y))
    yield x, unreduced(y, g) * hit / y.graph.make("sum", hit, dim, dim is not None)


@rule
def logsumexp(y: Node, g: Any) -> Pairs:
    x, dim = y.args[:2]
    dim = dim[0] if isinstance(dim, tuple) and len(dim) == 1 else dim
    # softmax needs x alone; exp(x - y) takes less time where y is kept.
    slope = x.softmax(dim) if isinstance(dim, int) and not y.graph.fast else (x - unreduced(y, y)).exp()
    yield x, unreduced(y, g) * slope


@rule
def norm(y: Node, g: Any) -> Pairs:
    x, order, _, _ = y.args
    order = value_of(order)
    up, length = unreduced(y, g), unreduced(y, y)
    zero = y.graph.make("eq", length, 0)
    if order == 2:
        yield x, (up * x / length).masked_fill(zero, 0)
    elif order == 1:
        yield x, up * x.sign()
    elif order == float("inf"):
        hit = y.graph.make("eq", x.abs(), length)
        yield x, up * x.sign() * hit / y.graph.make("sum", hit, y.args[2], y.args[2] is not None)
    elif isinstance(order, (int, float)) and order > 1:
        yield x, (up * x * x.abs() ** (order - 2) / length ** (order - 1)).masked_fill(zero, 0)
    else:
        yield from vjp(y, g)


@rule
def roll(y: Node, g: Any) -> Pairs:
    x, shifts, dims = y.args
    back = tuple(-s for s in shifts) if isinstance(shifts, tuple) else -shifts
    yield x, y.graph.make("roll", g, back, dims)


@rule
def cumprod(y: Node, g: Any) -> Pairs:
    """The kernel of autograd: a formula that divides by x is NaN where one factor is 0."""
    x, dim = y.args
    made = y.graph.make("create", "torch.ops.aten.cumprod_backward", (g, x, dim, y), ())
    made.dims = x.dims
    yield x, made


@rule
def normalize(y: Node, g: Any) -> Pairs:
    x, p, dim, eps = y.args
    if value_of(p) != 2:
        yield from vjp(y, g)
        return
    length = y.graph.make("vector_norm", x, 2, dim, True)
    floor = y.graph.call("clamp", (length,), {"min": eps})
    along = (g * y).sum(dim, keepdim=True) * (length >= eps)
    yield x, (g - y * along) / floor


@rule
def diff(y: Node, g: Any) -> Pairs:
    x, n, dim = y.args
    if value_of(n) != 1:
        yield from vjp(y, g)
        return
    d = value_of(dim) % len(x.dims)
    zero = at(g, d, slice(0, 1)) * 0
    cat_ = lambda *t: y.graph.call("cat", (t, value_of(dim)), {})  # noqa: E731
    yield x, cat_(zero, g) - cat_(g, zero)
