"""Derivatives of operations that work element by element."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from gradsmith.deriving.node import Node, is_number
from gradsmith.deriving.structured.registry import Pairs, rule
from gradsmith.lab.process import torch_says


@rule
def pow_(y: Node, g: Any) -> Pairs:
    a, b = y.args
    if isinstance(a, Node):
        if is_number(b, 2):
            yield a, 2 * g * a
        elif is_number(b):
            yield a, b * g * a ** (b - 1)
        elif b.is_tensor:
            yield a, (g * b * a ** (b - 1)).masked_fill(y.graph.make("eq", b, 0), 0)
        else:
            yield a, g * b * a ** (b - 1)
    if isinstance(b, Node) and b.is_tensor:
        base = isinstance(a, Node) and a.is_tensor
        log = a.log() if base else y.graph.make("python", "math.log", a)
        still = y.graph.make("eq", a, 0) & (b >= 0) if base else None  # 0 ** b is 0 on both sides of b
        yield b, g * y * log if still is None else (g * y * log).masked_fill(still, 0)


@rule
def quotient(y: Node, g: Any) -> Pairs:
    """g / b and -g * y / b, with the one division written once where both are wanted and b is not small."""
    a, b = y.args
    if is_number(a, 1) and isinstance(b, Node) and b.is_tensor:
        yield b, -g * y**2
        return
    part = g / b
    shared = all(isinstance(n, Node) and n.needs_grad and n.value.numel() == y.value.numel() > 1 for n in (a, b))
    if shared and isinstance(part, Node) and part.op == "div":
        part.shared = True
        yield a, part
        yield b, -part * y
        return
    yield a, part
    if isinstance(b, Node) and b.is_tensor:
        yield b, -g * y / b


@rule
def clamp(y: Node, g: Any) -> Pairs:
    x, low, high = y.args
    if torch_says.clamp_stops_at_its_bounds():
        yield from _clamp_stopping(y, g)
        return
    inside = None
    if low is not None:
        inside = x >= low
    if high is not None:
        inside = x <= high if inside is None else inside & (x <= high)
    yield x, g * inside if inside is not None else g
    if isinstance(low, Node) and low.is_tensor:
        yield low, g * (x < low) if high is None else g * ((x < low) & (low < high))
    if isinstance(high, Node) and high.is_tensor:
        yield high, g * (x > high) if low is None else g * ((x > high) | (low > high))


def _clamp_stopping(y: Node, g: Any) -> Pairs:
    """At a bound that is a number x gets nothing; with a bound that is a tensor it shares."""
    x, low, high = y.args
    lower, upper = (isinstance(bound, Node) and bound.is_tensor for bound in (low, high))
    equal = partial(y.graph.make, "eq")

    def shared(tie: Any, otherwise: Any) -> Any:
        return y.graph.call("where", (tie, 0.5 * g, otherwise), {})

    if low is None and high is None:
        yield x, g
    elif not lower and not upper:
        above = None if low is None else x > low
        below = None if high is None else x < high
        yield x, g * (below if above is None else above if below is None else above & below)
    elif high is None:
        yield x, shared(equal(x, low), g * (x > low))
        yield low, shared(equal(x, low), g * (x < low))
    elif low is None:
        yield x, shared(equal(x, high), g * (x < high))
        yield high, shared(equal(x, high), g * (x > high))
    else:  # torch takes two tensors or two numbers; where the bounds are equal, x has all of it
        apart = low < high
        yield x, shared((equal(x, low) | equal(x, high)) & apart, g * ((x >= low) & (x <= high)))
        yield low, shared(equal(x, low) & apart, g * ((x < low) & (low <= high)))
        yield high, shared(equal(x, high) & apart, g * ((x > high) | (low > high)))


@rule
def larger(y: Node, g: Any) -> Pairs:
    a, b = y.args
    yield from _won(y, g, a > b if y.op == "maximum" else a < b, shared=True)


@rule
def larger_number(y: Node, g: Any) -> Pairs:
    """What is not a number loses."""
    a, b = y.args
    nothing = y.graph.call("isnan", (b,), {})
    yield from _won(
        y, g, (a >= b if y.op == "fmax" else a <= b) | nothing, shared=torch_says.fmax_shares_between_equals()
    )


def _won(y: Node, g: Any, wins: Any, *, shared: bool) -> Pairs:
    a, b = y.args
    make = y.graph.call
    for operand, own in ((a, make("where", (wins, g, 0), {})), (b, make("where", (wins, 0, g), {}))):
        yield operand, make("where", (y.graph.make("eq", a, b), 0.5 * g, own), {}) if shared else own


@rule
def logit(y: Node, g: Any) -> Pairs:
    x, eps = y.args
    if eps is None:
        yield x, g / (x * (1 - x))
    else:
        yield x, y.graph.call("where", ((x >= eps) & (x <= 1 - eps), g / (x * (1 - x)), 0), {})


@rule
def silu(y: Node, g: Any) -> Pairs:
    x = y.args[0]
    s = x.sigmoid()
    yield x, g * s * (1 + x * (1 - s))


@rule
def mish(y: Node, g: Any) -> Pairs:
    x = y.args[0]
    t = x.graph.call("softplus", (x,), {}).tanh()
    yield x, g * (t + x * (1 - t**2) * x.sigmoid())


@rule
def gelu(y: Node, g: Any) -> Pairs:
    x, how = y.args
    graph = y.graph
    pi = graph.literal("math.pi", torch.pi)
    root = lambda value: graph.make("python", "math.sqrt", value)  # noqa: E731
    if how == "tanh":
        slope = root(2 / pi)
        t = (slope * (x + 0.044715 * x**3)).tanh()
        yield x, 0.5 * g * (1 + t + x * (1 - t**2) * (slope * (1 + graph.make("mul", 3, 0.044715) * x**2)))
    else:
        cdf = 0.5 * (1 + (x / root(2)).erf())
        yield x, g * (cdf + x * (-0.5 * x**2).exp() / root(2 * pi))


@rule
def softplus(y: Node, g: Any) -> Pairs:
    x, beta, threshold = y.args
    inner = x if is_number(beta, 1) else beta * x
    slope = inner.sigmoid()
    if is_number(threshold) and threshold >= 20:  # where torch says 1, sigmoid is 1 - 2e-9 and more
        yield x, g * slope
        return
    yield x, y.graph.call("where", (inner > threshold, g, g * slope), {})


@rule
def relu(y: Node, g: Any) -> Pairs:
    """y > 0 where x > 0, and y is what a next layer keeps anyway."""
    x = y.args[0]
    yield x, g * ((x if x.op == "input" else y) > 0)


@rule
def leaky_relu(y: Node, g: Any) -> Pairs:
    """The sign of y is that of x, where the slope is a positive number."""
    x, slope = y.args
    told = y if is_number(slope) and slope > 0 and x.op != "input" else x
    yield x, y.graph.call("where", (told > 0, g, g * slope), {})
