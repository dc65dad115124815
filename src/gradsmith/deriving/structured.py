"""Derivatives that are more than one line of text: each yields (operand, gradient) pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from gradsmith.deriving.dims import reduced
from gradsmith.deriving.node import Node, is_number, key_of, value_of
from gradsmith.deriving.refusal import Refused

Pairs = Iterator[tuple[Any, Any]]
RULES: dict[str, Callable[[Node, Any], Pairs]] = {}


def rule(function: Callable[[Node, Any], Pairs]) -> Callable[[Node, Any], Pairs]:
    RULES[function.__name__.rstrip("_")] = function
    return function


def unreduced(node: Node, value: Any) -> Any:
    """A reduced value with the reduced dimensions back as ones."""
    operation = node.graph.operations[node.op]
    dim, keep = operation.argument(node.args, "dim"), operation.argument(node.args, "keepdim")
    if keep or dim is None or value.dims == ():
        return value
    for d in reduced(dim, len(node.args[0].dims)) if isinstance(dim, tuple) else [dim]:
        value = value.unsqueeze(d)
    return value


def count(node: Node) -> Any:
    """How many elements a reduction takes together."""
    x, dim = node.args[0], node.graph.operations[node.op].argument(node.args, "dim")
    if dim is None or x.dims == ():
        return node.graph.make("numel", x) if x.dims else 1
    total: Any = 1
    for d in dim if isinstance(dim, tuple) else (dim,):
        total = node.graph.arith("mul", total, node.graph.size(x, value_of(d)))
    return total


@rule
def pow_(y: Node, g: Any) -> Pairs:
    a, b = y.args
    if isinstance(a, Node):
        if is_number(b, 2):
            yield a, 2 * g * a
        elif is_number(b):
            yield a, b * g * a ** (b - 1)
        else:
            yield a, g * b * a ** (b - 1)
    if isinstance(b, Node) and b.is_tensor:
        log = a.log() if isinstance(a, Node) and a.is_tensor else y.graph.make("python", "math.log", a)
        yield b, g * y * log


@rule
def clamp(y: Node, g: Any) -> Pairs:
    x, low, high = y.args
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


@rule
def larger(y: Node, g: Any) -> Pairs:
    a, b = y.args
    wins = a > b if y.op == "maximum" else a < b
    tie = y.graph.make("eq", a, b)
    make = y.graph.call
    yield a, make("where", (tie, 0.5 * g, make("where", (wins, g, 0), {})), {})
    yield b, make("where", (tie, 0.5 * g, make("where", (wins, 0, g), {})), {})


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
        yield x, 0.5 * g * (1 + t + x * (1 - t**2) * (slope * (1 + 3 * 0.044715 * x**2)))
    else:
        cdf = 0.5 * (1 + (x / root(2)).erf())
        yield x, g * (cdf + x * (-0.5 * x**2).exp() / root(2 * pi))


@rule
def softplus(y: Node, g: Any) -> Pairs:
    x, beta, threshold = y.args
    inner = x if is_number(beta, 1) else beta * x
    slope = inner.sigmoid()
    yield x, y.graph.call("where", (inner > threshold, g, g * slope), {})


@rule
def roll(y: Node, g: Any) -> Pairs:
    x, shifts, dims = y.args
    back = tuple(-s for s in shifts) if isinstance(shifts, tuple) else -shifts
    yield x, y.graph.make("roll", g, back, dims)


@rule
def cumprod(y: Node, g: Any) -> Pairs:
    x, dim = y.args
    if bool((x.value == 0).any()):
        raise Refused("cumprod of a zero has no rule here.")
    yield x, (g * y).flip(dim).cumsum(dim).flip(dim) / x


@rule
def normalize(y: Node, g: Any) -> Pairs:
    x, p, dim, eps = y.args
    if value_of(p) != 2:
        raise Refused(f"normalize with p={value_of(p)} has no rule.", "Write the norm out.")
    length = y.graph.make("vector_norm", x, 2, dim, True)
    floor = y.graph.call("clamp", (length,), {"min": eps})
    along = (g * y).sum(dim, keepdim=True) * (length >= eps)
    yield x, (g - y * along) / floor


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
    yield x, unreduced(y, g) * (x - middle) / (unreduced(y, y) * (count(y) - correction if correction else count(y)))


@rule
def nansum(y: Node, g: Any) -> Pairs:
    x = y.args[0]
    yield x, unreduced(y, g) * ~x.isnan()


@rule
def prod(y: Node, g: Any) -> Pairs:
    x = y.args[0]
    if bool((x.value == 0).any()):
        raise Refused("prod of a zero has no rule here.")
    yield x, unreduced(y, g) * unreduced(y, y) / x


@rule
def extremum(y: Node, g: Any) -> Pairs:
    x, dim, _ = y.args
    hit = y.graph.make("eq", x, unreduced(y, y))
    yield x, unreduced(y, g) * hit / y.graph.make("sum", hit, dim, dim is not None)


@rule
def logsumexp(y: Node, g: Any) -> Pairs:
    x = y.args[0]
    yield x, unreduced(y, g) * (x - unreduced(y, y)).exp()


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
        raise Refused(f"the norm of order {order} has no rule.")


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
        raise Refused("linear with a weight that is not a matrix has no rule.")
    yield x, g @ weight
    rows = lambda t: t.flatten(0, -2) if len(t.dims) > 2 else t.unsqueeze(0) if len(t.dims) == 1 else t  # noqa: E731
    yield weight, rows(g).mT @ rows(x)
    if isinstance(bias, Node):
        yield bias, rows(g).sum(0)


@rule
def bilinear(y: Node, g: Any) -> Pairs:
    a, b, weight, bias = y.args
    if len(a.dims) != 2:
        raise Refused("bilinear with other than two dimensions has no rule.", "Write it with einsum.")
    product = lambda text, *t: y.graph.make("einsum", text, t)  # noqa: E731
    yield a, product("no,nj,oij->ni", g, b, weight)
    yield b, product("no,ni,oij->nj", g, a, weight)
    yield weight, product("no,ni,nj->oij", g, a, b)
    if isinstance(bias, Node):
        yield bias, g.sum(0)


@rule
def einsum(y: Node, g: Any) -> Pairs:
    equation, operands = y.args
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow or "." in equation or any(len(set(t)) < len(t) for t in terms):
        raise Refused(
            f"einsum {equation!r} has no rule.", "Name every index once per operand, and write the result after ->."
        )
    for i, tensor in enumerate(operands):
        if not tensor.needs_grad:
            continue
        others = [(t, o) for j, (t, o) in enumerate(zip(terms, operands)) if j != i]
        known = set(output) | {label for t, _ in others for label in t}
        kept = "".join(label for label in terms[i] if label in known)
        made = y.graph.make(
            "einsum", ",".join([output, *(t for t, _ in others)]) + "->" + kept, (g, *(o for _, o in others))
        )
        for at, label in enumerate(terms[i]):
            made = made.unsqueeze(at) if label not in known else made
        yield tensor, made if kept == terms[i] else made.expand(y.graph.shape_of(tensor))


@rule
def outer(y: Node, g: Any) -> Pairs:
    a, b = y.args
    yield a, g @ b
    yield b, g.mT @ a


@rule
def solve(y: Node, g: Any) -> Pairs:
    a, b = y.args
    if len(b.dims) != len(a.dims) or len(b.dims) < 2:
        raise Refused("solve with a vector has no rule.", "Write b.unsqueeze(-1).")
    grad_b = y.graph.call("solve", (a.mT, g), {})
    yield b, grad_b
    yield a, -(grad_b @ y.mT)


@rule
def cholesky(y: Node, g: Any) -> Pairs:
    graph = y.graph
    phi = graph.call("tril", (y.mT @ g,), {})
    half = phi - 0.5 * graph.call("diag_embed", (phi.diagonal(0, -2, -1),), {})
    inverse = graph.call("inv", (y,), {})
    made = inverse.mT @ half @ inverse
    yield y.args[0], 0.5 * (made + made.mT)


@rule
def conv(y: Node, g: Any) -> Pairs:
    x, weight, bias, stride, padding, dilation, groups = y.args
    if isinstance(padding, str) or len(x.dims) != len(weight.dims):
        raise Refused(
            f"{y.op} with padding={padding!r} or without a batch has no rule.", "Write the padding as numbers."
        )
    graph = y.graph
    options: tuple[tuple[str, Any], ...] = (
        ("stride", stride),
        ("padding", padding),
        ("dilation", dilation),
        ("groups", groups),
    )
    options = tuple((k, v) for k, v in options if not is_number(v, 0 if k == "padding" else 1))
    if x.needs_grad:
        made = graph.make("create", f"torch.nn.grad.{y.op}_input", (graph.shape_of(x), weight, g), options)
        made.dims = x.dims
        yield x, made
    if weight.needs_grad:
        made = graph.make("create", f"torch.nn.grad.{y.op}_weight", (x, graph.shape_of(weight), g), options)
        made.dims = weight.dims
        yield weight, made
    if isinstance(bias, Node):
        yield bias, g.sum((0, *range(2, len(g.dims))))


@rule
def embedding(y: Node, g: Any) -> Pairs:
    index, weight = y.args
    yield weight, y.graph.make("index_put", y.graph.zeros_of(g, weight), (index,), g, True)


@rule
def transpose(y: Node, g: Any) -> Pairs:
    x, a, b = y.args
    rank = len(x.dims)
    last = sorted((value_of(a) % rank, value_of(b) % rank)) == [rank - 2, rank - 1]
    yield x, g.mT if last else g.transpose(a, b)


@rule
def permute(y: Node, g: Any) -> Pairs:
    order = [value_of(d) % len(y.args[1]) for d in y.args[1]]
    yield y.args[0], g.permute(tuple(order.index(i) for i in range(len(order))))


@rule
def squeeze(y: Node, g: Any) -> Pairs:
    x, dim = y.args
    if isinstance(dim, tuple) or dim is None or x.value.shape[value_of(dim)] != 1:
        yield x, g.reshape(y.graph.shape_of(x))
    else:
        yield x, g.unsqueeze(dim)


def at(value: Node, dim: Any, index: Any) -> Any:
    """`value[..., index]` or `value[:, index]`, whichever is shorter."""
    rank = len(value.dims)
    d = value_of(dim) % rank
    return value[(Ellipsis, index)] if d == rank - 1 and d > 0 else value[(slice(None),) * d + (index,)]


@rule
def cat(y: Node, g: Any) -> Pairs:
    tensors, dim = y.args
    start: Any = None
    for i, tensor in enumerate(tensors):
        size = y.graph.size(tensor, value_of(dim))
        stop = None if i == len(tensors) - 1 else size if start is None else y.graph.arith("add", start, size)
        yield tensor, at(g, dim, slice(start, stop))
        start = stop


@rule
def stack(y: Node, g: Any) -> Pairs:
    for i, tensor in enumerate(y.args[0]):
        yield tensor, at(g, y.args[1], i)


@rule
def diff(y: Node, g: Any) -> Pairs:
    x, n, dim = y.args
    if value_of(n) != 1:
        raise Refused("diff with n > 1 has no rule.", "Write diff twice.")
    d = value_of(dim) % len(x.dims)
    zero = at(g, d, slice(0, 1)) * 0
    cat_ = lambda *t: y.graph.call("cat", (t, value_of(dim)), {})  # noqa: E731
    yield x, cat_(zero, g) - cat_(g, zero)


@rule
def getitem(y: Node, g: Any) -> Pairs:
    x, index = y.args
    parts = index if isinstance(index, tuple) else (index,)
    graph = y.graph
    hard = [
        (k, i)
        for k, i in enumerate(parts)
        if not (i is None or i is Ellipsis or (isinstance(i, slice) and key_of(i) == key_of(slice(None))))
    ]
    if not hard:
        yield x, g.reshape(graph.shape_of(x))
        return
    zeros = graph.zeros_of(g, x)
    tensors = [isinstance(i, Node) and i.is_tensor for _, i in hard]
    if (
        len(hard) == len(parts)
        and any(tensors)
        and all(t or isinstance(i, (int, Node)) for t, (_, i) in zip(tensors, hard))
    ):
        as_index = [i if t else graph.make("create", "torch.tensor", (i,), ()) for t, (_, i) in zip(tensors, hard)]
        yield x, graph.make("index_put", zeros, tuple(as_index), g, True)
        return
    if len(hard) == 1 and None not in parts:
        k, i = hard[0]
        dim = k - len(parts) if Ellipsis in parts[:k] else k
        if tensors[0]:
            if i.value.dtype == torch.bool or i.value.ndim != 1:
                raise Refused("this index has no rule.", "Use gather, index_select or torch.where.")
            yield x, zeros.index_add(dim, i, g)
        elif isinstance(i, slice):
            yield x, graph.make("slice_scatter", zeros, g, dim, i.start, i.stop, 1 if i.step is None else i.step)
        else:
            yield x, graph.make("select_scatter", zeros, g, dim, i)
        return
    if any(tensors):
        raise Refused("this mix of indices has no rule.", "Use gather or index_select.")
    yield x, _one_by_one(y, g)


def _one_by_one(y: Node, g: Any) -> Any:
    """x[1:, 2] as x[1:][:, 2]: one slice or integer at a time, so that each has its own scatter."""
    x, parts = y.args[0], y.args[1]
    rank = len(x.dims)
    used = sum(i is not None and i is not Ellipsis for i in parts)
    spread: list[Any] = []
    for i in parts:
        spread += [slice(None)] * (rank - used) if i is Ellipsis else [i]
    if None in spread:
        raise Refused("an index with None and several slices has no rule.", "Write the None as unsqueeze.")
    steps, current, dim = [], x, 0
    for i in spread:
        if isinstance(i, slice) and key_of(i) == key_of(slice(None)):
            dim += 1
            continue
        steps.append((current, dim, i))
        current = at(current, dim, i)
        dim += isinstance(i, slice)
    for source, dim, i in reversed(steps):
        zeros = y.graph.zeros_of(g, source)
        if isinstance(i, slice):
            g = y.graph.make("slice_scatter", zeros, g, dim, i.start, i.stop, 1 if i.step is None else i.step)
        else:
            g = y.graph.make("select_scatter", zeros, g, dim, i)
    return g


@rule
def narrow(y: Node, g: Any) -> Pairs:
    x, dim, start, length = y.args
    stop = y.graph.arith("add", start, length)
    yield x, y.graph.make("slice_scatter", y.graph.zeros_of(g, x), g, dim, start, stop, 1)


@rule
def diagonal(y: Node, g: Any) -> Pairs:
    x, offset, a, b = y.args
    rank = len(x.dims)
    if x.value.shape[value_of(a)] != x.value.shape[value_of(b)]:
        raise Refused("the diagonal of an oblong matrix has no rule.")
    y.graph.agree(x.dims[value_of(a)], x.dims[value_of(b)])
    yield x, y.graph.call("diag_embed", (g, offset, value_of(a) % rank - rank, value_of(b) % rank - rank), {})


@rule
def diag(y: Node, g: Any) -> Pairs:
    x, offset = y.args
    if len(x.dims) == 2 and x.value.shape[0] != x.value.shape[1]:
        raise Refused("the diagonal of an oblong matrix has no rule.")
    yield x, y.graph.make("diag", g, offset)


@rule
def take_along_dim(y: Node, g: Any) -> Pairs:
    x, index, dim = y.args
    if dim is None or index.value.shape != y.value.shape:
        raise Refused("take_along_dim with broadcasting has no rule.", "Use gather.")
    yield x, y.graph.zeros_of(g, x).scatter_add(dim, index, g)


@rule
def take(y: Node, g: Any) -> Pairs:
    x, index = y.args
    flat = y.graph.make("new_zeros", g, (y.graph.make("numel", x),), None)
    yield x, flat.index_add(0, index.reshape((-1,)), g.reshape((-1,))).reshape(y.graph.shape_of(x))


@rule
def scatter(y: Node, g: Any) -> Pairs:
    x, dim, index, src = y.args
    yield x, g.scatter(dim, index, 0)
    if isinstance(src, Node) and src.is_tensor:
        if src.value.shape != index.value.shape:
            raise Refused("scatter with an index smaller than src has no rule.")
        yield src, g.gather(dim, index)


@rule
def scattered(y: Node, g: Any) -> Pairs:
    _, dim, index, src = y.args
    if src.value.shape != index.value.shape:
        raise Refused("scatter_add with an index smaller than src has no rule.")
    yield src, g.gather(dim, index)


@rule
def index_put(y: Node, g: Any) -> Pairs:
    x, indices, values, accumulate = y.args
    zero = y.graph.make("new_full", g, (), 0, None)
    yield x, g if accumulate else y.graph.make("index_put", g, indices, zero, False)
    if isinstance(values, Node) and values.needs_grad:
        yield values, g[indices]


@rule
def select_scatter(y: Node, g: Any) -> Pairs:
    x, src, dim, index = y.args
    yield x, y.graph.make("select_scatter", g, 0 * at(g, dim, index), dim, index)
    yield src, at(g, dim, index)


@rule
def slice_scatter(y: Node, g: Any) -> Pairs:
    x, src, dim, start, end, step = y.args
    part = slice(start, end, None if is_number(step, 1) else step)
    yield x, y.graph.make("slice_scatter", g, 0 * at(g, dim, part), dim, start, end, step)
    yield src, at(g, dim, part)


@rule
def masked_select(y: Node, g: Any) -> Pairs:
    x, mask = y.args
    if mask.value.shape != x.value.shape:
        raise Refused("masked_select with broadcasting has no rule.")
    yield x, y.graph.make("masked_scatter", y.graph.zeros_of(g, x), mask, g)


@rule
def repeat(y: Node, g: Any) -> Pairs:
    x, repeats = y.args
    rank, extra = len(x.dims), len(repeats) - len(x.dims)
    shape: list[Any] = list(repeats[:extra])
    for i in range(rank):
        shape += [repeats[extra + i], y.graph.size(x, i)]
    dims = (*range(extra), *(extra + 2 * i for i in range(rank)))
    yield x, g.reshape(tuple(shape)).sum(dims)


@rule
def repeat_interleave(y: Node, g: Any) -> Pairs:
    x, repeats, dim = y.args
    if dim is None or (isinstance(repeats, Node) and repeats.is_tensor):
        raise Refused("repeat_interleave without dim, or with a tensor of repeats, has no rule.")
    d = value_of(dim) % len(x.dims)
    shape = [y.graph.size(x, i) for i in range(len(x.dims))]
    yield x, g.reshape((*shape[: d + 1], repeats, *shape[d + 1 :])).sum(d + 1)


@rule
def pad(y: Node, g: Any) -> Pairs:
    x, widths, mode, _ = y.args
    if mode != "constant":
        raise Refused(f"F.pad with mode={mode!r} has no rule.")
    yield x, y.graph.make("pad", g, tuple(-w for w in widths), "constant", None)


@rule
def unfold(y: Node, g: Any) -> Pairs:
    x, kernel, dilation, padding, stride = y.args
    size = (y.graph.size(x, -2), y.graph.size(x, -1))
    yield x, y.graph.make("fold", g, size, kernel, dilation, padding, stride)


# ---- operations that return several tensors: the gradients of the parts, by position


def of_parts(node: Node, parts: dict[int, Any]) -> Pairs:
    """The gradient of what chunk, split, unbind, sort and their like were called on."""
    graph = node.graph
    operation = graph.operations[node.op]
    x = node.args[0]
    if operation.structured == "chosen":
        dim, keep = operation.argument(node.args, "dim"), True
        if "keepdim" in operation.params:
            keep = operation.argument(node.args, "keepdim")
        indices, g = graph.make("item", node, 1), parts[0]
        if not keep and len(x.dims) > 0:
            indices, g = indices.unsqueeze(dim), g.unsqueeze(dim)
        yield x, graph.zeros_of(g, x).scatter_add(dim, indices, g)
        return
    some = next(iter(parts.values()))
    whole = tuple(
        parts[i] if i in parts else graph.zeros_of(some, graph.make("item", node, i)) for i in range(len(node.value))
    )
    dim = operation.argument(node.args, "dim")
    made = graph.call("stack" if node.op == "unbind" else "cat", (whole, dim), {})
    made.dims = x.dims
    yield x, made
