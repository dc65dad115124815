"""The shape of every value in symbols: a literal number, a size of an input, or the sizes that meet in a broadcast."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from gradsmith.deriving.node import Dim, Node, is_number, value_of
from gradsmith.source import knowledge as know

if TYPE_CHECKING:
    from gradsmith.deriving.graph import Graph


def members(dim: Dim) -> frozenset[Any]:
    return dim if isinstance(dim, frozenset) else frozenset([dim])


def broadcast(graph: Graph, shapes: Iterable[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    """The dimensions of the result; sizes that are not known to be equal meet in a set."""
    result: list[Dim] = []
    for column in zip_longest(*(tuple(reversed(s)) for s in shapes), fillvalue=1):
        met: list[Any] = []
        for part in [p for dim in column for p in sorted(members(dim), key=_order) if p != 1]:
            if not any(graph.same(part, other) for other in met):
                met.append(part)
        if len(met) > 1 and graph.trusting and len({value_of(p) for p in met}) == 1:
            graph.trust(met)
            met = met[:1]
        result.append(1 if not met else met[0] if len(met) == 1 else frozenset(met))
    return tuple(reversed(result))


def _order(part: Any) -> tuple[int, int]:
    return (part.serial, 0) if isinstance(part, Node) else (0, part)


def fresh(graph: Graph, node: Node) -> tuple[Dim, ...]:
    """Sizes of which only the value itself can tell."""
    if graph.pinned:
        return tuple(node.value.shape)
    return tuple(graph.make("size", node, i) for i in range(node.value.ndim))


def dims_of(graph: Graph, node: Node) -> tuple[Dim, ...]:
    """The symbolic shape of a value, checked against the real one."""
    found = None if graph.pinned else _inferred(graph, node)
    if found is None or tuple(_number(d) for d in found) != tuple(node.value.shape):
        return fresh(graph, node)
    return found


def _number(dim: Dim) -> int:
    sizes = {int(value_of(p)) for p in members(dim)} - {1}
    return sizes.pop() if len(sizes) == 1 else 1 if not sizes else -1


def _inferred(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    operation = graph.operations.get(node.op)
    if node.op in _SHAPES:
        found: tuple[Dim, ...] | None = _SHAPES[node.op](graph, node)
        return found
    if operation is None:
        return None
    if operation.kind == "e":
        return broadcast(graph, [a.dims for a in node.operands if a.is_tensor])
    first = next((a for a in node.operands if a.is_tensor), None)
    if operation.kind == "s" and first is not None:
        return first.dims
    if operation.kind == "r" and first is not None:
        dim, keep = operation.argument(node.args, "dim"), operation.argument(node.args, "keepdim")
        gone = reduced(dim, len(first.dims))
        return tuple(1 if i in gone else d for i, d in enumerate(first.dims) if keep or i not in gone)
    return None


def reduced(dim: Any, rank: int) -> list[int]:
    """The dimensions that a reduction takes away, counted from the front."""
    dim = value_of(dim)
    if dim is None or dim == ():
        return list(range(rank))
    return sorted(int(d) % rank for d in (dim if isinstance(dim, (tuple, list)) else [dim])) if rank else []


def _matmul(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    a, b = (x.dims for x in node.args)
    graph.agree(a[-1], b[-2] if len(b) > 1 else b[-1])
    batch = broadcast(graph, [a[:-2], b[:-2]])
    return batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def _solve(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    """Stacks of matrices on both sides: what a system is solved for has the shape of the right-hand side."""
    a, b = (x.dims for x in node.args[:2])
    if len(a) != len(b):
        return None
    if node.op == "solve" or node.args[3]:
        graph.agree(a[-1], b[-2])
    return (*broadcast(graph, [a[:-2], b[:-2]]), *b[-2:])


def _linear(graph: Graph, node: Node) -> Any:
    x, weight = node.args[0].dims, node.args[1].dims
    graph.agree(x[-1], weight[-1])
    return x[:-1] + weight[:-1]


def _permute(graph: Graph, node: Node) -> tuple[Dim, ...]:
    dims = node.args[0].dims
    return tuple(dims[int(value_of(d))] for d in node.args[1])


def _transpose(graph: Graph, node: Node) -> tuple[Dim, ...]:
    dims = list(node.args[0].dims)
    i, j = (-2, -1) if node.op == "mT" else (int(value_of(d)) for d in node.args[1:])
    dims[i], dims[j] = dims[j], dims[i]
    return tuple(dims)


def _unsqueeze(graph: Graph, node: Node) -> tuple[Dim, ...]:
    dims = node.args[0].dims
    at = int(value_of(node.args[1])) % (len(dims) + 1)
    return (*dims[:at], 1, *dims[at:])


def _squeeze(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    dims, dim = node.args[0].dims, value_of(node.args[1])
    if dim is None:
        return tuple(d for d in dims if d != 1)
    gone = reduced(dim, len(dims))
    return tuple(d for i, d in enumerate(dims) if i not in gone or node.args[0].value.shape[i] != 1)


def _to_shape(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    """reshape, expand, new_zeros, sum_to_size: as the source says, where it says it; the one -1 by elimination."""
    shape = node.args[1]
    if isinstance(shape, Node):
        return shape.args[0].dims if shape.op == "shape" else None
    own = node.args[0].dims
    if node.op == "expand":
        offset = len(shape) - len(own)
        return tuple(own[i - offset] if i >= offset and _is_minus_one(d) else d for i, d in enumerate(shape))
    if not any(_is_minus_one(d) for d in shape):
        return tuple(shape)
    if node.op == "reshape" and all(not isinstance(d, frozenset) for d in own):
        left, rest = list(own), [d for d in shape if not _is_minus_one(d)]
        divisor = 1
        for d in rest:
            match = next((o for o in left if graph.same(o, d)), None)
            if match is not None:
                left.remove(match)
            elif isinstance(d, int):
                divisor *= d
            else:
                return None
        product: Any = 1
        for d in left:
            product = graph.arith("mul", product, d)
        product = product if divisor == 1 else graph.arith("floor_divide", product, divisor)
        return tuple(product if _is_minus_one(d) else d for d in shape)
    return None


def _is_minus_one(dim: Any) -> bool:
    return not isinstance(dim, Node) and dim == -1


def _flatten(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    dims = node.args[0].dims
    if not dims:
        return None
    start, end = (int(value_of(a)) % len(dims) for a in node.args[1:])
    product: Any = dims[start]
    for d in dims[start + 1 : end + 1]:
        if isinstance(product, frozenset) or isinstance(d, frozenset):
            return None
        product = graph.arith("mul", product, d)
    return (*dims[:start], product, *dims[end + 1 :])


def _index(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    """x[...] with integers, None and whole or open slices."""
    dims, index = node.args[0].dims, node.args[1]
    if (
        isinstance(index, Node)
        and index.is_tensor
        and not index.value.dtype.is_floating_point
        and index.value.dtype.itemsize > 1
    ):
        return (*index.dims, *dims[1:])
    index = index if isinstance(index, tuple) else (index,)
    if any((isinstance(i, Node) and i.is_tensor) or isinstance(i, (list, bool)) for i in index):
        return None
    used = sum(i is not None and i is not Ellipsis for i in index)
    spread: list[Any] = []
    for i in index:
        spread += [slice(None)] * (len(dims) - used) if i is Ellipsis else [i]
    result: list[Dim] = []
    left = list(dims)
    for i in spread:
        if i is None:
            result.append(1)
            continue
        d = left.pop(0)
        if isinstance(i, slice):
            result.append(d if i == slice(None) else _sliced(graph, d, i))
    result += left
    return None if any(d is None for d in result) else tuple(result)


def _sliced(graph: Graph, dim: Dim, part: slice) -> Dim | None:
    """The size of x[start:stop:step]; None where it cannot be told. `dims_of` compares it with the real one."""
    if isinstance(dim, frozenset) or not (part.step is None or is_number(part.step)):
        return None
    start, stop = (_end(graph, dim, end) for end in (part.start, part.stop))
    length = dim if stop is None else stop
    if start is not None and not is_number(start, 0):
        length = graph.arith("sub", length, start)
    step = part.step or 1
    if step < 1:
        return None
    return length if step == 1 else graph.arith("floor_divide", graph.arith("add", length, step - 1), step)


def _end(graph: Graph, dim: Dim, end: Any) -> Any:
    if end is None or value_of(end) > value_of(dim):
        return None if end is None else dim
    return graph.arith("sub", dim, -end) if is_number(end) and end < 0 else end


def _like_index(graph: Graph, node: Node) -> tuple[Dim, ...]:
    dims: tuple[Dim, ...] = node.args[2].dims
    return dims


def _stack(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    tensors, dim = node.args
    if isinstance(tensors, Node):  # a list that a loop has filled
        count, *inner = tensors.dims
        at = int(value_of(dim)) % len(tensors.dims)
        return (*inner[:at], count, *inner[at:])
    dims = tensors[0].dims
    at = int(value_of(dim)) % (len(dims) + 1)
    return (*dims[:at], len(tensors), *dims[at:])


def _cat(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    tensors, dim = node.args
    if not isinstance(tensors, (tuple, list)):
        return None
    dims = list(tensors[0].dims)
    at = int(value_of(dim)) % len(dims)
    total: Any = dims[at]
    for t in tensors[1:]:
        if len(t.dims) != len(dims) or isinstance(t.dims[at], frozenset) or isinstance(total, frozenset):
            return None
        total = graph.arith("add", total, t.dims[at])
        for i, d in enumerate(t.dims):
            if i != at:
                graph.agree(dims[i], d)
    dims[at] = total
    return tuple(dims)


def _created(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    """torch.arange(n), torch.zeros(n, m), torch.eye(n), torch.linspace(a, b, n)."""
    name, args = node.args[0], node.args[1]
    if name == "torch.arange" and len(args) == 1:
        return tuple(args)
    if name == "torch.arange" and len(args) == 2:
        return (graph.arith("sub", args[1], args[0]),)
    if name == "torch.eye":
        return (args[0], args[1] if len(args) > 1 else args[0])
    if name in ("torch.zeros", "torch.ones", "torch.rand", "torch.randn", "torch.full"):
        shape = args[0] if args and isinstance(args[0], (tuple, list)) else args
        return tuple(shape)
    return None


def _outer(graph: Graph, node: Node) -> tuple[Dim, ...]:
    return (*node.args[0].dims, *node.args[1].dims)


def _einsum(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    equation, operands = node.args
    inputs, _, output = equation.partition("->")
    known: dict[str, Dim] = {}
    spread: list[tuple[Dim, ...]] = []
    for term, tensor in zip(inputs.split(","), operands):
        front, dots, back = term.partition("...")
        labels = list(zip(front, tensor.dims)) + (list(zip(reversed(back), reversed(tensor.dims))) if back else [])
        if dots:
            spread.append(tensor.dims[len(front) : len(tensor.dims) - len(back)])
        for label, dim in labels:
            if label in known:
                _meet(graph, known[label], dim)
            known.setdefault(label, dim)
    front, dots, back = output.partition("...")
    middle = broadcast(graph, spread) if dots else ()
    return (*(known[c] for c in front), *middle, *(known[c] for c in back))


def _meet(graph: Graph, a: Dim, b: Dim) -> None:
    """Two sizes of one label: einsum spreads a size of 1, so forward tests that they are equal."""
    if graph.same(a, b) or a == 1 or b == 1:
        return
    graph.rather_trusting = True
    if graph.trusting and not isinstance(a, frozenset) and not isinstance(b, frozenset):
        graph.trust([a, b])
    else:
        graph.agree(a, b)


def _conv(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    """(n + 2 * padding - dilation * (k - 1) - 1) // stride + 1 in every dimension that the window moves along."""
    x, weight, _, *options = node.args
    spatial = len(weight.dims) - 2
    if len(x.dims) != len(weight.dims) or any(isinstance(d, frozenset) for d in (*x.dims[2:], *weight.dims)):
        return None
    stride, padding, dilation = (
        [v] * spatial if not isinstance(v, (tuple, list)) else list(v) * (spatial // len(v)) for v in options[:3]
    )
    if any(isinstance(p, str) for p in padding):
        return None
    sizes: list[Dim] = []
    for i in range(spatial):
        window = graph.arith("mul", dilation[i], graph.arith("sub", weight.dims[2 + i], 1))
        free = graph.arith("sub", graph.arith("add", x.dims[2 + i], graph.arith("mul", 2, padding[i])), window)
        if value_of(stride[i]) == 1:
            sizes.append(free)
        else:
            sizes.append(graph.arith("add", graph.arith("floor_divide", graph.arith("sub", free, 1), stride[i]), 1))
    return (x.dims[0], weight.dims[0], *sizes)


def _first(graph: Graph, node: Node) -> tuple[Dim, ...]:
    dims: tuple[Dim, ...] = node.args[0].dims
    return dims


def _part(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    """One of the equal pieces that chunk and unbind make."""
    whole, at = node.args
    if whole.op == "unbind":
        dims, dim = whole.args[0].dims, int(value_of(whole.args[1])) % len(whole.args[0].dims)
        return (*dims[:dim], *dims[dim + 1 :])
    if whole.op == "topk":
        x, k, dim = whole.args[:3]
        d = int(value_of(dim)) % len(x.dims)
        return (*x.dims[:d], k, *x.dims[d + 1 :])
    if whole.op in ("sort", "cummax", "cummin"):
        same: tuple[Dim, ...] = whole.args[0].dims
        return same
    if whole.op in know.WITH_INDICES:
        operation = graph.operations[whole.op]
        dim, keep = operation.argument(whole.args, "dim"), operation.argument(whole.args, "keepdim")
        x = whole.args[0]
        gone = reduced(dim, len(x.dims))
        return tuple(1 if i in gone else d for i, d in enumerate(x.dims) if keep or i not in gone)
    if whole.op not in ("chunk", "split"):
        return None
    dims, dim = whole.args[0].dims, int(value_of(whole.args[2])) % len(whole.args[0].dims)
    if whole.op == "split":
        piece = whole.args[1][at] if isinstance(whole.args[1], tuple) else whole.args[1]
    elif isinstance(dims[dim], frozenset):
        return None
    else:
        if graph.trusting and not graph.backward and isinstance(dims[dim], Node) and isinstance(whole.args[1], int):
            even = graph.make("eq", graph.make("remainder", dims[dim], whole.args[1]), 0)
            if even.value:  # the last piece is as long as the others
                graph.conditions.setdefault(even, True)
        piece = graph.arith("floor_divide", dims[dim], whole.args[1])
    return (*dims[:dim], piece, *dims[dim + 1 :])


def _index_select(graph: Graph, node: Node) -> tuple[Dim, ...] | None:
    x, dim, index = node.args
    at = int(value_of(dim)) % len(x.dims)
    return (*x.dims[:at], *index.dims, *x.dims[at + 1 :]) if len(index.dims) == 1 else None


_SHAPES: dict[str, Any] = {
    "item": _part,
    "matmul": _matmul,
    "linear": _linear,
    "permute": _permute,
    "transpose": _transpose,
    "mT": _transpose,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "reshape": _to_shape,
    "expand": _to_shape,
    "new_zeros": _to_shape,
    "new_ones": _to_shape,
    "new_full": _to_shape,
    "sum_to_size": _to_shape,
    "flatten": _flatten,
    "getitem": _index,
    "gather": _like_index,
    "stack": _stack,
    "cat": _cat,
    "create": _created,
    "outer": _outer,
    "einsum": _einsum,
    "placed": _first,
    "assign": _first,
    "scatter": _first,
    "scatter_add": _first,
    "index_add": _first,
    "index_put": _first,
    "index_fill": _first,
    "index_select": _index_select,
    "scatter_reduce": _first,
    "select_scatter": _first,
    "slice_scatter": _first,
    "masked_scatter": _first,
    "inv": _first,
    "solve": _solve,
    "solve_triangular": _solve,
    "conv1d": _conv,
    "conv2d": _conv,
    "conv3d": _conv,
    "cholesky": _first,
}
