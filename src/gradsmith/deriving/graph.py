"""All values of one derivation: equal operations on equal values are made once, computed on the example, and given a shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from gradsmith.deriving.algebra import Algebra, ratio
from gradsmith.deriving.calls import bound
from gradsmith.deriving.dims import dims_of, fresh
from gradsmith.deriving.indices import simpler
from gradsmith.deriving.node import Node, is_number, key_of, nodes_in, value_of
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.table import INFIX, operations

# What is no line of the table: leaves, looks at the outside of a tensor, parts of a tuple, calls that create.
_OUTSIDE: dict[str, Callable[..., Any]] = {
    "size": lambda x, i: x.shape[i],
    "shape": lambda x: tuple(x.shape),
    "numel": lambda x: x.numel(),
    "dtype": lambda x: x.dtype,
    "device": lambda x: x.device,
    "item": lambda x, i: x[i],
}


# Operations of one tensor that are linear in it.
_LINEAR: tuple[str, ...] = ("sum", "mean", "sum_to_size", "cumsum", "flip", "roll", "triu", "tril")
_LINEAR += (
    "mT",
    "transpose",
    "permute",
    "movedim",
    "reshape",
    "flatten",
    "unflatten",
    "expand",
    "unsqueeze",
    "squeeze",
    "getitem",
    "narrow",
    "index_select",
    "gather",
    "take_along_dim",
)


_MOVES = ("unsqueeze", "squeeze", "mT")


class Graph(Algebra):
    """`backward` is set while the sweep builds, `trusting` where equal sizes of the example are taken to be equal always,
    `pinned` where every size is taken to be that of the example."""

    def __init__(self, *, trusting: bool, pinned: bool = False) -> None:
        self.operations = operations()
        self.trusting, self.pinned = trusting, pinned
        self.backward = False
        self.pool: dict[Any, Node] = {}
        self.conditions: dict[Node, bool] = {}  # comparisons of numbers that decided a branch
        self.trusted: list[tuple[Any, ...]] = []  # sizes that were taken to be equal
        self.counted: dict[Node, int] = {}  # sizes that the user's source asks for, and how it counts: -2 or 1
        self.size_names: dict[Node, str] = {}  # what the user's source calls them
        self.fast = False  # may derivatives be kernels of autograd?
        self.once = False  # will backward never be differentiated?
        self.rather_trusting = False  # would it read better if sizes were trusted?
        self.open_loops: list[Any] = []  # whose body is being read
        self._roots: dict[Any, Any] = {}
        self._count = 0

    def leaf(self, op: str, args: tuple[Any, ...], value: Any, like: Any = None) -> Node:
        """An input, a gradient of an output, a literal; `like` is a value whose shape it is known to have."""
        key = (op, key_of(args))
        if key not in self.pool:
            self.pool[key] = node = self._node(op, args, value)
            if node.is_tensor:
                node.dims = like.dims if isinstance(like, Node) else fresh(self, node)
        return self.pool[key]

    def known(self, op: str, *args: Any) -> Node | None:
        """What forward has computed by this operation, if it has."""
        found = self.pool.get((op, key_of(args)))
        return found if found is not None and not found.back and found.is_tensor else None

    def literal(self, text: str, value: float) -> Node:
        return self.leaf("literal", (text,), value)

    def make(self, op: str, *args: Any, value: Any = None) -> Any:
        """The one Node of this operation; `value` where it is computed already."""
        if op == "numel" and self.pinned:
            return args[0].value.numel()
        if op == "size":
            known = args[0].value.shape[value_of(args[1])] if self.pinned else self._known_size(*args)
            if known is not None:
                return known
            args = (args[0], value_of(args[1]) % args[0].value.ndim)
        if op == "placed" and args[0].op == "placed":
            args = (args[0].args[0], (*args[0].args[1], *args[1]))
        if op in ("getitem", "assign"):
            known = simpler(self, op, args)
            if known is not None:
                return known
        if self.backward and self._signs_pass(op, args):
            return self.neg(self.make(op, args[0].args[0], *args[1:]))
        if self.backward and (made := self._number_outside(op, args)) is not None:
            return made
        if op == "squeeze" and self.backward and _undone(*args):
            return args[0].args[0]
        if op == "squeeze" and (inner := _added_by_index(*args) or _all_undone(*args)) is not None:
            return inner
        if op == "reshape" and self.backward and self._has_shape(args[0], args[1]):
            return args[0]
        if op == "squeeze" and self.backward and _kept_by_sum(*args):
            return self.make("sum", args[0].args[0], args[0].args[1], False)
        if op in ("dtype", "device"):
            args = (_source(self, args[0]),)
        key: tuple[Any, ...] = (op, key_of(args))
        if op in ("rand_like", "randn_like") or (op == "create" and args[0] in ("torch.rand", "torch.randn")):
            key = (*key, self._count)  # two draws are two values
        if key in self.pool:
            return self.pool[key]
        node = self._node(op, args, self._compute(op, args) if value is None else value)
        self.pool[key] = node
        node.inside = frozenset().union(*(n.inside for n in node.operands))
        node.needs_grad = self.grows(node)
        if node.is_tensor:
            node.dims = dims_of(self, node)
        return node

    def _has_shape(self, node: Node, shape: Any) -> bool:
        """Is this the shape that it has, whatever the sizes are?"""
        dims = shape.args[0].dims if isinstance(shape, Node) and shape.op == "shape" else shape
        return isinstance(dims, tuple) and len(dims) == len(node.dims) and all(map(self.same, dims, node.dims))

    def _signs_pass(self, op: str, args: tuple[Any, ...]) -> bool:
        """Is this -x, and is the operation of -x minus that of x? The sign is written outside."""
        first = args[0] if args else None
        if not isinstance(first, Node) or first.op != "neg" or not first.back or first.grad_of is not None:
            return False
        return op in _LINEAR

    def _number_outside(self, op: str, args: tuple[Any, ...]) -> Any:
        """Of 0.5 * x, with an operation that moves elements: 0.5 * op(x), where the number may meet others; else None."""
        first = args[0] if args else None
        if op not in _MOVES or not isinstance(first, Node) or not first.back or first.op not in ("mul", "div"):
            return None
        if first.grad_of is not None and first.grad_of.name:
            return None
        above, below = ratio(first)
        numbers = [f for f in above if is_number(f)]
        if not numbers or len(numbers) == len(above):
            return None
        rest = self.product([f for f in above if not is_number(f)], below)
        return self.product([*numbers, self.make(op, rest, *args[1:])], []) if rest.is_tensor else None

    @contextmanager
    def of_forward(self) -> Iterator[None]:
        """What is made inside belongs to forward: it is not rewritten, has a name, and may be kept."""
        was, self.backward = self.backward, False
        try:
            yield
        finally:
            self.backward = was

    def grows(self, node: Node) -> bool:
        """Does a gradient of an operand reach it?"""
        op, operation = node.op, self.operations.get(node.op)
        reached = any(n.needs_grad for n in node.operands) and (op == "item" or op not in _OUTSIDE)
        floating = isinstance(node.value, Tensor) and (node.value.is_floating_point() or node.value.is_complex())
        return reached and (floating or node.is_parts) and not (operation is not None and operation.zero)

    def alone(self, op: str, args: tuple[Any, ...], value: Any) -> Node:
        """A Node that no other is built on: another way to write a value."""
        made = self._node(op, args, value)
        made.inside = frozenset().union(*(n.inside for n in made.operands))
        return made

    def _node(self, op: str, args: tuple[Any, ...], value: Any) -> Node:
        self._count += 1
        return Node(self, op, args, value, self._count)

    def _known_size(self, node: Node, dim: Any) -> Any:
        if not node.dims:
            return None
        known = node.dims[value_of(dim)]
        return None if isinstance(known, frozenset) else known

    def _compute(self, op: str, args: tuple[Any, ...]) -> Any:
        try:
            if op == "vjp":
                return _pulled_back(args[0], args[1], value_of(args[2]))
            return self.computed(op, [value_of(a) for a in args])
        except Exception as error:
            remedy = "Give inputs on which it runs."
            if "dtype" in str(error):
                remedy = "Forward is read in float64: make tensors with the dtype of an input (`dtype=x.dtype`)."
            raise Refused(f"`{op}` could not be computed on the example: {error}.", remedy) from None

    def computed(self, op: str, values: list[Any]) -> Any:
        """The operation on real values."""
        with torch.no_grad():
            if op in _OUTSIDE:
                return _OUTSIDE[op](*values)
            if op == "python":
                return _python(values[0])(*values[1:])
            if op == "create":
                return _torch(values[0])(*values[1], **dict(values[2]))
            if op in INFIX:
                return INFIX[op][2](*values)
            return self.operations[op].run(*values)

    # ---- sizes

    def same(self, a: Any, b: Any) -> bool:
        """Are two sizes known to be equal, whatever the inputs are?"""
        if isinstance(a, frozenset) or isinstance(b, frozenset):
            return bool(a == b)
        a, b = self._root(a), self._root(b)
        return a is b or (not isinstance(a, Node) and not isinstance(b, Node) and a == b)

    def agree(self, a: Any, b: Any) -> None:
        """torch itself refuses sizes that differ here."""
        if isinstance(a, Node) and isinstance(b, Node) and not self.same(a, b):
            a, b = self._root(a), self._root(b)
            if isinstance(a, Node) and isinstance(b, Node):
                old, young = sorted((a, b), key=lambda n: n.serial)
                self._roots[young.serial] = old

    def trust(self, met: list[Any]) -> None:
        """Equal on the example, so taken to be equal; forward tests it."""
        nodes = [m for m in met if isinstance(m, Node)]
        self.trusted.append(tuple(met))
        for other in nodes[1:]:
            self.agree(nodes[0], other)

    def _root(self, size: Any) -> Any:
        while isinstance(size, Node) and size.serial in self._roots:
            size = self._roots[size.serial]
        return size

    def size(self, node: Node, dim: int) -> Any:
        return self.make("size", node, dim)

    def shape_of(self, node: Node) -> Node:
        made: Node = self.make("shape", node)
        return made

    def zeros_of(self, like: Node, shaped: Node) -> Any:
        return self.make("new_zeros", like, self.shape_of(shaped), None)

    # ---- calls by name, as the table and the structured rules write them

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        op, arguments = bound(self, name, args, kwargs)
        return self.arith(op, *arguments) if op in INFIX else self.make(op, *arguments)

    def transposed(self, node: Node) -> Any:
        """`x.mT`, without a second transpose where x is one already."""
        if node.op == "mT":
            return node.args[0]
        if node.op == "transpose":
            rank = len(node.dims)
            if sorted(value_of(d) % rank for d in node.args[1:]) == [rank - 2, rank - 1]:
                return node.args[0]
        if node.op == "matmul" and node.back and node.grad_of is None:
            a, b = node.args
            if len(a.dims) > 1 and len(b.dims) > 1:
                return self.make("matmul", self.transposed(b), self.transposed(a))
        return self.make("mT", node)

    def mentions(self, node: Any) -> bool:
        return any(True for _ in nodes_in(node))


def _undone(node: Node, dim: Any) -> bool:
    """Is this the dimension that an unsqueeze has just put in?"""
    if node.op != "unsqueeze" or not isinstance(dim, int):
        return False
    return bool(dim % len(node.dims) == value_of(node.args[1]) % len(node.dims))


def _all_undone(node: Node, dims: Any) -> Node | None:
    """What several unsqueezes have put dimensions into, where these are the ones."""
    if not isinstance(dims, tuple):
        return None
    for dim in sorted((d % len(node.dims) for d in dims), reverse=True):
        if not _undone(node, dim):
            return None
        node = node.args[0]
    return node


def _added_by_index(node: Node, dim: Any) -> Node | None:
    """x of `x[:, None]`, where `dim` is the dimension that the index has put in."""
    if node.op != "getitem" or not isinstance(dim, int):
        return None
    index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    whole = all(i is None or (isinstance(i, slice) and i == slice(None)) for i in index)
    if not whole or index.count(None) != 1 or dim % len(node.dims) != index.index(None):
        return None
    inner: Node = node.args[0]
    return inner


def _kept_by_sum(node: Node, dim: Any) -> bool:
    """Is this the dimension that a sum has kept?"""
    if node.op != "sum" or not node.back or not isinstance(dim, int) or not isinstance(node.args[1], int):
        return False
    return bool(node.args[2]) and dim % len(node.dims) == node.args[1] % len(node.dims)


def _source(graph: Graph, node: Node) -> Node:
    """The value whose dtype and device this one has, as far down as that is sure: moving elements changes neither."""
    while node.op in graph.operations and graph.operations[node.op].kind == "v" and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _pulled_back(y: Node, operands: tuple[Node, ...], g: Any) -> Any:
    """What torch.func.vjp gives for one operation on the example."""

    def again(*tensors: Tensor) -> Any:
        swapped = dict(zip((n.serial for n in operands), tensors))
        result = y.graph.operations[y.op].run(*(_swapped(a, swapped) for a in y.args))
        return tuple(result) if isinstance(result, (tuple, list)) else result

    with torch.enable_grad():
        return torch.func.vjp(again, *(n.value for n in operands))[1](g)


def _swapped(value: Any, new: dict[int, Tensor]) -> Any:
    if isinstance(value, Node):
        return new.get(value.serial, value.value)
    return type(value)(_swapped(v, new) for v in value) if isinstance(value, (tuple, list)) else value_of(value)


def _python(name: str) -> Any:
    return getattr(math, name.removeprefix("math.")) if name.startswith("math.") else {"int": int, "float": float}[name]


def _torch(name: str) -> Any:
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


__all__ = ["Graph", "is_number"]
