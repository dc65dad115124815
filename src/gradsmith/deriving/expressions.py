"""Values as Python text: expressions, in terms of what is at hand, and the sizes and dtypes that they need."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsmith.deriving.naming import unique
from gradsmith.deriving.node import Node, is_number, key_of
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.table import INFIX, PREFIX, SIZES_APART
from gradsmith.source import knowledge as know

_POSITIONAL = ("bias", "dim", "dims", "diagonal", "start_dim", "ord", "approximate")
_TO_SHAPE = ("reshape", "expand", "new_zeros", "new_ones")
ATOM = 12
ACCUMULATE = "torch.ops.aten.index_put"  # as a method it takes no slices among the indices
_ADDING = ("index_put", "index_add", "scatter_add", "scatter")
FRESH = know.FILLED_NOT_COMPUTED | know.UNWRITTEN
_PI = {math.pi: "math.pi", -math.pi: "-math.pi", 2 * math.pi: "2 * math.pi", math.pi / 2: "math.pi / 2"}
_PI |= {
    math.pi / 4: "math.pi / 4",
    -math.pi / 2: "-math.pi / 2",
    180 / math.pi: "180 / math.pi",
    math.pi / 180: "math.pi / 180",
}


class NotAtHand(Refused):
    """Backward has to write down an input that is not saved, if only for a size: it must be saved, too."""

    def __init__(self, node: Node) -> None:
        super().__init__(f"internal: {node.name} is not at hand.")
        self.node = node


@dataclass
class Expressions:
    """Prints values in terms of the names it has; `outside` prints sizes and dtypes of inputs that are not at hand."""

    names: dict[Node, str]
    outside: Callable[[Node, str], str] | None = None
    taken: set[str] = field(default_factory=set)
    numbers: set[Node] = field(default_factory=set)  # inputs that are numbers, as far as they were printed
    counts: dict[Node, int] = field(default_factory=dict)  # how often a value is read, in what is printed
    final: set[Node] = field(default_factory=set)  # values that whoever asks for statements goes on with
    stacks: dict[Node, str] = field(default_factory=dict)  # of what a loop keeps: its text
    apart: set[Node] = field(default_factory=set)  # calls that are written as the operations they are made of

    def text(self, value: Any, level: int = 0, *, whole: bool = False) -> str:
        """The expression; in parentheses where it binds weaker than `level`."""
        if isinstance(value, Node):
            if value in self.names and not whole:
                return self.names[value]
            text, own = self._node(value)
            return f"({text})" if own < level else text
        if isinstance(value, tuple):
            inner = ", ".join(self.text(v) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if isinstance(value, slice):
            ends = [self.text(v) if v is not None else "" for v in (value.start, value.stop)]
            return ":".join(ends) + (f":{self.text(value.step)}" if value.step is not None else "")
        if value is Ellipsis:
            return "..."
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        if isinstance(value, float) and (named := _PI.get(value)):
            return f"({named})" if " " in named and level > 8 else named
        if isinstance(value, str):
            return '"' + value.replace('"', '\\"') + '"'
        if isinstance(value, torch.device):
            return f'torch.device("{value}")'
        return f"({value!r})" if is_number(value) and value < 0 and level > 8 else repr(value)

    def _node(self, node: Node) -> tuple[str, int]:
        if node.call is not None and node not in self.apart:
            return self._node(node.call)
        op, args = node.op, node.args
        if op == "literal":
            return args[0], ATOM
        if op == "input":
            if node.is_tensor:
                raise NotAtHand(node)
            self.numbers.add(node)
            return str(node.name), ATOM
        if op in know.OUTSIDE:
            return self._outside(node), ATOM
        if op == "python":
            return f"{args[0]}({', '.join(self.text(a) for a in args[1:])})", ATOM
        if op == "item":
            return f"{self.text(args[0], ATOM)}[{self.text(args[1])}]", ATOM
        if op == "vjp":
            return self._vjp(node), ATOM
        if op == "kept":
            return self.stacks[node], ATOM
        if op == "create":
            shown = [self.text(a) for a in args[1]] + [f"{k}={self.text(v)}" for k, v in args[2]]
            name = f"{args[0]}_" if args[0] == ACCUMULATE and self._own(args[1][0]) else args[0]
            return f"{name}({', '.join(shown)})", ATOM
        if op == "neg" and args[0].op == "neg" and args[0] not in self.names:
            return (
                self._node(args[0].args[0])
                if args[0].args[0] not in self.names
                else (self.names[args[0].args[0]], ATOM)
            )
        if op in PREFIX:
            loose = op == "neg" and args[0] not in self.names and args[0].op in ("mul", "div") and node.back
            inner = self.text(args[0], 8 if loose else 9)
            if loose and inner.startswith("-"):
                return inner[1:], 8  # two minus signs in front of a product
            return PREFIX[op][0] + inner, 8 if loose else 9
        if op in INFIX:
            return self._infix(node if op != "gt" else self._before_relu(node))
        return self._call(node), ATOM

    def _before_relu(self, node: Node) -> Node:
        """`relu(x) > 0` is `x > 0`, which is shorter where relu(x) is not at hand."""
        y, bound = node.args
        plain = isinstance(y, Node) and y.op == "relu" and y not in self.names and is_number(bound, 0)
        return node.graph.make("gt", y.args[0], bound) if plain else node

    def _vjp(self, node: Node) -> str:
        """`torch.autograd.functional.vjp(lambda x: F.interpolate(x, ...), (x,), g)[1]`, with a graph where one is asked for.

        torch.func.vjp is shorter, and raises under saved_tensors_hooks (torch 2.13), so under save_on_cpu.
        """
        y, operands, g = node.args
        params = [unique(str(n.name or "x"), set()) for n in operands]
        params = [p if params.count(p) == 1 else f"{p}{i}" for i, p in enumerate(params)]
        inner = Expressions({**self.names, **dict(zip(operands, params))}, self.outside, self.taken, self.numbers)
        given = ", ".join(self.text(n) for n in operands)
        call = f"tuple({inner.text(y, whole=True)})" if y.is_parts else inner.text(y, whole=True)
        given = f"({given},)" if len(operands) == 1 else f"({given})"
        known = re.fullmatch(rf"([\w.]+)\({re.escape(', '.join(params))}\)", call)
        function = known[1] if known else f"lambda {', '.join(params)}: {call}"
        once = "" if node.graph.once else ", create_graph=torch.is_grad_enabled()"
        return f"torch.autograd.functional.vjp({function}, {given}, {self.text(g)}{once})[1]"

    def _infix(self, node: Node) -> tuple[str, int]:
        sign, level, _ = INFIX[node.op]
        a, b = node.args
        if node.op == "pow":
            base, power = self.text(a, level + 1), self.text(b, level)
            simple = all(c.isalnum() or c in "._" for c in base + power.lstrip("-"))
            return f"{base}{'**' if simple else ' ** '}{power}", level
        number = is_number(b) or (isinstance(b, Node) and not b.is_tensor)
        if node.op == "mul" and number and _is_tensor(a) and (a in self.names or self._node(a)[1] != level):
            return (
                f"{self.text(b, level)} {sign} {self.text(a, level + 1)}",
                level,
            )  # `2 * x`, which torch tells as `x * 2`
        # What the sweep has made may be regrouped; what the user wrote is computed in the user's order.
        regrouped = {"add": ("add", "sub"), "mul": ("mul", "div")}.get(node.op, ())
        loose = node.back and isinstance(b, Node) and b.op in regrouped
        if loose and node.op == "mul" and b.op == "div" and is_number(b.args[0], 1) and b not in self.names:
            sign, b, loose = "/", b.args[1], False  # `g * (1 / n)`, where `1 / n` is the user's
        left, right = self.text(a, level + (level == 2)), self.text(b, level + (not loose))
        if node.op == "add" and node.back and right.startswith("-"):
            return f"{left} - {right[1:]}", level
        return f"{left} {sign} {right}", level

    def _call(self, node: Node) -> str:
        operation = node.graph.operations.get(node.op)
        if operation is None:
            told = "the size of what a loop has made is needed outside of it."
            raise Refused(told, "Derive the body of the loop alone.", node.line)
        args = node.args
        if operation.style == "item":
            index = self.text(args[1])
            return f"{self.text(args[0], ATOM)}[{index[1:-1].rstrip(',') if isinstance(args[1], tuple) else index}]"
        if operation.style == "attribute":
            return f"{self.text(args[0], ATOM)}.{operation.name}"
        if node.op == "einsum":
            return f"torch.einsum({self.text(args[0])}, {', '.join(self.text(t) for t in args[1])})"
        method = operation.style == "method"
        if node.op == "new_zeros" and (like := self._like(node)):
            return f"torch.zeros_like({like})"
        if node.op == "unsqueeze" and (text := self._unsqueezed(node)):
            return text
        if node.op == "expand" and isinstance(args[1], Node):
            shape = self.text(args[1])
            if shape.endswith(".shape"):
                return f"{self.text(args[0], ATOM)}.expand_as({shape.removesuffix('.shape')})"
        shown: list[str] = []
        skipped = False
        for i, (param, value) in enumerate(zip(operation.params, args)):
            spelled = param == "dim" and operation.keeps_all(args)
            if param in operation.defaults and key_of(value) == key_of(operation.defaults[param]) and not spelled:
                skipped = True
                continue
            named = skipped or param in operation.keyword or (param in operation.defaults and param not in _POSITIONAL)
            skipped = named
            if method and i == 1 and operation.name in SIZES_APART and isinstance(value, tuple) and value:
                whole = self._shaped_like(value) if operation.name in _TO_SHAPE else None
                if whole is not None:
                    shown.append(f"{whole}.shape")
                    continue
                shown += [self.text(v) for v in value]
                continue
            shown.append((f"{param}=" if named and i else "") + self.text(value, ATOM if method and not i else 0))
        if node.op == "to" and shown[1:] == [f"{shown[0]}.dtype"]:
            return shown[0]
        if method:
            name = f"{operation.name}_" if operation.name in _ADDING and self._own(args[0]) else operation.name
            return f"{shown[0]}.{name}({', '.join(shown[1:])})"
        return f"{operation.style}.{operation.name}({', '.join(shown)})"

    def _like(self, node: Node) -> str:
        """The name of a tensor at hand with the very shape and dtype of new zeros; "" where there is none."""
        of, shape = node.args[:2]
        text = (
            self.text(shape)
            if isinstance(shape, Node)
            else f"{self._shaped_like(shape)}.shape"
            if isinstance(shape, tuple)
            else ""
        )
        name = text.removesuffix(".shape")
        known = (n for n, own in self.names.items() if own == name and n.is_tensor)
        return name if any(n.value.dtype == of.value.dtype for n in known) else ""

    def _unsqueezed(self, node: Node) -> str:
        """`t[..., None, None]` for two new dimensions and more behind the last; "" where they are elsewhere."""
        inner, count = node, 0
        while inner.op == "unsqueeze" and (not count or inner not in self.names):
            if inner.args[1] not in (-1, len(inner.args[0].dims)):
                return ""
            inner, count = inner.args[0], count + 1
        return f"{self.text(inner, ATOM)}[...{', None' * count}]" if count > 1 else ""

    def _shaped_like(self, sizes: tuple[Any, ...]) -> str | None:
        """The name of a tensor at hand that has all these sizes, where they are more than one."""
        if len(sizes) < 2 or sum(isinstance(d, Node) for d in sizes) < 2:
            return None
        for other, name in self.names.items():
            dims = other.dims if other.is_tensor else ()
            if len(dims) == len(sizes) and all(other.graph.same(p, q) for p, q in zip(dims, sizes)):
                return name
        return None

    def _own(self, value: Any) -> bool:
        """Is this memory that backward has made in this very expression? Then it may be written to."""
        if not isinstance(value, Node) or not value.back or self.counts.get(value, 0) > 1 or value in self.final:
            return False
        if value.op == "create" and value.args[0] == ACCUMULATE:
            return True
        return value.op in FRESH or (value.op in _ADDING and self._own(value.args[0]))

    # ---- sizes and dtypes: of whatever is at hand and has the same

    def _outside(self, node: Node) -> str:
        x = node.args[0]
        if node.op == "size":
            return self._size(node)
        if node.op in ("dtype", "device"):
            for other, name in self.names.items():
                if other.is_tensor and (other.value.dtype == x.value.dtype or node.op == "device"):
                    return f"{name}.{node.op}"
            return self._of_input(x, node.op)
        tail = "numel()" if node.op == "numel" else "shape"
        for other, name in sorted(self.names.items(), key=lambda item: item[0] is not x):
            if other is x or (other.is_tensor and x.dims and _same_dims(other, x)):
                return f"{name}.{tail}"
        if x.op == "input":
            return self._of_input(x, tail)
        for other in x.graph.pool.values():
            if other.op == "input" and other.is_tensor and _same_dims(other, x) and x.dims:
                return self._of_input(other, tail)
        if any(isinstance(d, frozenset) for d in x.dims):
            if x.op not in x.graph.operations or x.graph.operations[x.op].kind != "e":
                raise Refused(f"the shape of a value in line {x.line} cannot be written down.")
            shapes = ", ".join(self.text(x.graph.shape_of(n)) for n in x.operands if n.is_tensor)
            return f"torch.broadcast_shapes({shapes})" + (".numel()" if tail == "numel()" else "")
        if tail == "shape":
            return self.text(tuple(x.dims))
        sizes = [d for d in x.dims if not is_number(d, 1)]
        if len(sizes) < 2:
            return self.text(sizes[0], 9) if sizes else "1"
        return "(" + " * ".join(self.text(d, 9) for d in sizes) + ")"

    def _size(self, node: Node) -> str:
        x, dim = node.args
        for other, name in sorted(self.names.items(), key=lambda item: item[0] is not x):
            if not other.is_tensor:
                continue
            for i, d in enumerate(other.dims):
                if d is node or (not isinstance(d, frozenset) and node.graph.same(d, node)):
                    return f"{name}.shape[{counted(node, i, len(other.dims))}]"
        if x.op == "input":
            return self._of_input(x, "shape") + f"[{counted(node, dim, len(x.dims))}]"
        if x.op in x.graph.operations and x.graph.operations[x.op].kind == "v":  # moves elements: cheap to do again
            return f"{self.text(x, ATOM)}.shape[{dim}]"
        raise Refused(f"the size of a value in line {x.line} cannot be written down.")

    def _of_input(self, x: Node, what: str) -> str:
        if self.outside is None or x.op != "input":
            raise Refused(f"internal: the {what} of {x.name or x.op} is not at hand.")
        return self.outside(x, what)


def counted(size: Node, dim: int, rank: int) -> int:
    """The number of a dimension, counted as the user's source counts it; the last is -1."""
    asked = size.graph.counted.get(size)
    if asked is None:
        return -1 if dim == rank - 1 else dim
    return dim - rank if asked < 0 else dim


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Node) and value.is_tensor


def _same_dims(a: Node, b: Node) -> bool:
    return len(a.dims) == len(b.dims) and all(a.graph.same(p, q) for p, q in zip(a.dims, b.dims))
