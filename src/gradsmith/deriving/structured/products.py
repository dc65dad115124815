"""Derivatives of products and of linear algebra."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

from gradsmith.deriving.node import Node
from gradsmith.deriving.structured.kernels import vjp
from gradsmith.deriving.structured.registry import Pairs, rule


@rule
def matmul(y: Node, g: Any) -> Pairs:
    a, b = y.args
    p, q = len(a.dims), len(b.dims)
    if p == q == 1:
        yield a, g * b
        yield b, g * a
    elif q == 1:
        yield a, g.unsqueeze(-1) * b
        yield b, a.mT @ g if p == 2 else (g.unsqueeze(-1) * a).flatten(0, -2).sum(0)
    elif p == 1:
        yield a, b @ g if q == 2 else (b * g.unsqueeze(-2)).sum(-1).flatten(0, -2).sum(0)
        yield b, a.unsqueeze(-1) * g.unsqueeze(-2)
    else:
        yield a, g @ b.mT
        yield b, a.flatten(0, -2).mT @ g.flatten(0, -2) if q == 2 and p > 2 else a.mT @ g


@rule
def linear(y: Node, g: Any) -> Pairs:
    x, weight, bias = y.args
    if len(weight.dims) != 2:
        yield from vjp(y, g)
        return
    yield x, g @ weight
    yield weight, _rows(g, weight, 0).mT @ _rows(x, weight, 1)
    if isinstance(bias, Node):
        yield bias, g  # summed to its own shape, whatever the number of dimensions


def _rows(t: Any, weight: Node, dim: int) -> Any:
    """Everything but the last dimension as one: `t.reshape(-1, n)`, which is right for any number of dimensions."""
    if len(t.dims) == 2:
        return t
    return t.unsqueeze(0) if len(t.dims) == 1 else t.reshape((-1, weight.graph.size(weight, dim)))


@rule
def bilinear(y: Node, g: Any) -> Pairs:
    a, b, weight, bias = y.args
    if len(a.dims) != 2:
        yield from vjp(y, g)
        return
    product = lambda text, *t: y.graph.make("einsum", text, t)  # noqa: E731
    yield a, product("no,nj,oij->ni", g, b, weight)
    yield b, product("no,ni,oij->nj", g, a, weight)
    yield weight, product("no,ni,nj->oij", g, a, b)
    if isinstance(bias, Node):
        yield bias, g.sum(0)


@rule
def einsum(y: Node, g: Any) -> Pairs:
    equation, operands = y.args
    inputs, _, output = equation.partition("->")
    terms = inputs.split(",")
    if any(len(set(t.replace("...", ""))) < len(t.replace("...", "")) for t in terms) or len(set(output)) < len(
        output.replace("...", ".")
    ):
        yield from vjp(y, g)  # a diagonal
        return
    for i, tensor in enumerate(operands):
        if not tensor.needs_grad:
            continue
        others = [(t, o) for j, (t, o) in enumerate(zip(terms, operands)) if j != i]
        known = set(output) | {label for t, _ in others for label in t}
        own = terms[i]
        kept = "".join(label for label in own if label in known)
        if "..." in own and "..." not in output and all("..." not in t for t, _ in others):
            yield from vjp(y, g)
            return
        factors = _in_order([(output, g), *others], kept)
        made = y.graph.make("einsum", ",".join(t for t, _ in factors) + "->" + kept, tuple(o for _, o in factors))
        if kept == own:
            yield tensor, made
            continue
        for at, label in enumerate(own.replace("...", ".")):
            made = (
                made.unsqueeze(at if "." not in own else at - len(own.replace("...", ".")))
                if label not in known
                else made
            )
        yield tensor, made.expand(y.graph.shape_of(tensor))


def _in_order(factors: list[tuple[str, Any]], kept: str) -> list[tuple[str, Any]]:
    """The order in which torch, which multiplies from left to right, has least to do on the example."""
    if not 2 < len(factors) < 6 or any("." in labels for labels, _ in factors):
        return factors
    sizes = {label: int(n) for labels, node in factors for label, n in zip(labels, node.value.shape)}
    orders = [[factors[0], *rest] for rest in permutations(factors[1:])]  # the gradient is small, and is told first
    return min(orders, key=lambda order: _multiplications([t for t, _ in order], kept, sizes))


def _multiplications(terms: list[str], kept: str, sizes: dict[str, int]) -> int:
    total, left = 0, set(terms[0])
    for i, term in enumerate(terms[1:], start=1):
        left |= set(term)
        total += math.prod(sizes[label] for label in left)
        left &= set(kept).union(*terms[i + 1 :])
    return total


@rule
def outer(y: Node, g: Any) -> Pairs:
    a, b = y.args
    yield a, g @ b
    yield b, g.mT @ a


@rule
def solve(y: Node, g: Any) -> Pairs:
    a, b = y.args
    if len(b.dims) != len(a.dims) or len(b.dims) < 2:
        yield from vjp(y, g)
        return
    grad_b = y.graph.call("solve", (a.mT, g), {})
    yield b, grad_b
    yield a, -(grad_b @ y.mT)


@rule
def solve_triangular(y: Node, g: Any) -> Pairs:
    """`a` is read on one side of its diagonal only, so only that side has a gradient."""
    a, b, upper, left, unitriangular = y.args
    if len(b.dims) != len(a.dims):
        yield from vjp(y, g)
        return
    options = {"upper": not upper, "left": left, "unitriangular": unitriangular}
    grad_b = y.graph.call("solve_triangular", (a.mT, g), options)
    yield b, grad_b
    whole = -(grad_b @ y.mT) if left else -(y.mT @ grad_b)
    shift = (1 if upper else -1) if unitriangular else 0
    yield a, y.graph.call("triu" if upper else "tril", (whole, shift), {})


@rule
def cholesky(y: Node, g: Any) -> Pairs:
    graph = y.graph
    phi = graph.call("tril", (y.mT @ g,), {})
    half = phi - 0.5 * graph.call("diag_embed", (phi.diagonal(0, -2, -1),), {})
    inverse = graph.call("inv", (y,), {})
    made = inverse.mT @ half @ inverse
    yield y.args[0], 0.5 * (made + made.mT)
