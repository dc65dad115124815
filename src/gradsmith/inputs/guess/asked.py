"""What forward asks for when it refuses a guess: the comparison that failed is read again, with the values that it had.

`assert y.shape == (B, C, T)` says nothing when it fails. Its two sides, computed once more where it failed, say which shape
`y` should have had. Only names, attributes, sizes and arithmetic are computed again: nothing that could change anything.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any, Literal

import torch
from torch import Tensor

from gradsmith.lab.process import torch_says
from gradsmith.lab.subject.target import Target
from gradsmith.source import knowledge as know
from gradsmith.source.demands import Demand, demands_at, lookups_at, measured_as

What = Literal["shape", "size", "rank", "kind", "dtype", "value"]
_MOST = 64  # a size that is worth trying
_PLAIN = frozenset({"len", "int", "max", "min", "tuple", "list", "math.prod", "abs", "sum"})
_A_LINE = 0.25
_UNDONE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {ast.Add: operator.sub, ast.Sub: operator.add}
_MIRRORED = {"Lt": "Gt", "Gt": "Lt", "LtE": "GtE", "GtE": "LtE"}
_HARMLESS = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice, ast.Tuple, ast.List, ast.UnaryOp, ast.BinOp,
    ast.operator, ast.unaryop, ast.expr_context, ast.Call, ast.Set,
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """One input should have another shape, size (place, size), number of dimensions, kind of elements, dtype, or value."""

    position: int
    what: What
    value: Any


def asked(error: BaseException, args: Sequence[Any]) -> tuple[Asked, ...]:
    """What the code that raised would have accepted, as far as its own condition says; nothing for errors of torch."""
    found: dict[Asked, None] = {}
    for frame, line in _frames(error.__traceback__):
        path = frame.f_code.co_filename
        if demands := (lookups_at(path, line) if isinstance(error, KeyError) else demands_at(path, line)):
            reader = _Reader(frame, args)
            for demand in demands:
                found |= dict.fromkeys(reader.wishes(demand))
            break
    return tuple(found)


def beyond_the_end(text: str, args: Sequence[Any], places: Iterable[int]) -> tuple[Asked, ...]:
    """A larger size for the inputs of which an element was read that is not there: `x[:, 8]` of three channels."""
    found = torch_says.index_beyond(text)
    if found is None:
        return ()
    index, dimension, size = found
    wanted = index + 1 if index >= 0 else -index
    if not size < wanted <= _MOST:
        return ()
    shapes = {i: args[i].shape for i in places if i < len(args) and isinstance(args[i], Tensor)}
    here = [i for i, shape in shapes.items() if len(shape) > dimension and shape[dimension] == size]
    # What was indexed may be a part of the input, whose dimensions have other numbers.
    return tuple(
        Asked(i, "size", (place, wanted))
        for i, shape in shapes.items()
        for place in ([dimension] if i in here else [k for k, n in enumerate(shape) if n == size])
    )


def _frames(trace: TracebackType | None) -> list[tuple[FrameType, int]]:
    """The innermost first, and no more than two: whoever demands something raises it himself, or asks a helper."""
    frames: list[tuple[FrameType, int]] = []
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return frames[::-1][:2]


def lines_reached(error: BaseException, target: Target) -> float:
    """How far down forward came, as a part of an operation for each line; then how far down what it called."""
    reached, weight = 0.0, _A_LINE
    home = target.function.__module__ if target.function is not None else None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if home is None or weight < _A_LINE or trace.tb_frame.f_globals.get("__name__") == home:
            reached += weight * max(0, trace.tb_lineno - code.co_firstlineno)
            weight /= 100
        trace = trace.tb_next
    return reached


class _Reader:
    def __init__(self, frame: FrameType, args: Sequence[Any]) -> None:
        self.frame, self.args = frame, args

    def wishes(self, demand: Demand) -> Iterator[Asked]:
        if demand.right is None:
            yield from self._questions(demand.left)
            return
        yield from self._sided(demand.left, demand.relation, demand.right)
        yield from self._sided(demand.right, _MIRRORED.get(demand.relation, demand.relation), demand.left)

    def _sided(self, mine: ast.expr, relation: str, other: ast.expr) -> Iterator[Asked]:
        """What to change on one side, so that it stands in this relation to the other as it is."""
        try:
            value = self._computed(other)
        except Exception:  # what it needs is not there, or not harmless
            return
        if isinstance(mine, ast.BinOp) and isinstance(mine.op, ast.Mod):
            yield from self._divisible(mine)
            return
        if isinstance(mine, ast.BinOp) and type(mine.op) in _UNDONE and isinstance(value, int):
            try:  # `len(shape) - 2 == n`
                value = _UNDONE[type(mine.op)](value, self._computed(mine.right))
            except Exception:
                return
            mine = mine.left
        wanted = list(_fulfilling(relation, value))
        holder, measure, place = _measured(self._written_as(mine))
        if holder is None:
            return
        position = self._position(holder)
        if position is None:
            return
        for each in wanted:
            found = _asked(position, measure, place, each, self.args[position])
            if found is not None:
                yield found

    def _divisible(self, node: ast.BinOp) -> Iterator[Asked]:
        holder, measure, place = _measured(self._written_as(node.left))
        position = self._position(holder) if holder is not None else None
        try:
            divisor = self._computed(node.right)
        except Exception:
            return
        if position is not None:
            for times in (1, 2):
                each = divisor * times if isinstance(divisor, int) else None
                found = _asked(position, measure, place, each, self.args[position])
                if found is not None:
                    yield found

    def _questions(self, node: ast.expr) -> Iterator[Asked]:
        """`x.is_complex()`, `torch.is_complex(x)`, and the like."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return
        kind = {"is_complex": "complex", "is_floating_point": "floating"}.get(node.func.attr)
        position = self._position(node.args[0] if node.args else node.func.value)
        if kind is not None and position is not None:
            yield Asked(position, "kind", kind)

    def _written_as(self, node: ast.expr) -> ast.expr:
        """`d` after `n, d = x.shape` is `x.shape[1]`: what a local number was measured as."""
        if not isinstance(node, ast.Name) or self._position(node) is not None:
            return node
        code = self.frame.f_code
        return measured_as(code.co_filename, code.co_firstlineno, node.id, self.frame.f_lineno) or node

    def _position(self, node: ast.expr) -> int | None:
        """Which input an expression stands for: the object itself, or what shares its memory."""
        try:
            value = self._computed(node)
        except Exception:
            return None
        simple = isinstance(node, ast.Name)
        for place, given in enumerate(self.args):
            if value is given and (isinstance(given, Tensor) or (simple and not isinstance(given, bool))):
                return place
            if isinstance(value, Tensor) and isinstance(given, Tensor) and _same_memory(value, given):
                return place
        return None

    def _computed(self, node: ast.expr) -> Any:
        for inner in ast.walk(node):
            if not isinstance(inner, _HARMLESS):
                raise ValueError("not computed again")
            if isinstance(inner, ast.Call):
                named = ast.unparse(inner.func)
                if (
                    named not in _PLAIN
                    and getattr(inner.func, "attr", "") not in know.TO_NUMBER | know.TO_INT | know.TO_SHAPE
                ):
                    raise ValueError("not called again")
        return eval(_compiled(node), self.frame.f_globals, dict(self.frame.f_locals))


def _same_memory(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(a.numel()) and a.data_ptr() == b.data_ptr()


def _compiled(node: ast.expr) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(node)), "<demand>", "eval")


def _measured(node: ast.expr) -> tuple[ast.expr | None, str, int | None]:
    """`x.shape`, `x.shape[1]`, `x.size(1)`, `x.dim()`, `len(x)`, `x.dtype`, `x`: of what, what, and which place."""
    if isinstance(node, ast.Subscript):
        holder, measure, _ = _measured(node.value)
        place = _number(node.slice)
        known = {"shape": "size", "value": "element"}.get(measure) if place is not None else None
        return (holder, known, place) if known is not None else (None, "", None)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
            holder, measure, _ = _measured(node.args[0])
            return holder, "rank" if measure == "shape" else "length", None
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "size":
                place = _number(node.args[0]) if node.args else None
                return node.func.value, "size" if node.args else "shape", place
            if node.func.attr in ("dim", "ndimension"):
                return node.func.value, "rank", None
        return None, "", None
    if isinstance(node, ast.Attribute) and node.attr in ("shape", "ndim", "dtype"):
        return node.value, {"ndim": "rank", "dtype": "kind"}.get(node.attr, "shape"), None
    return node, "value", None


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def _fulfilling(relation: str, value: Any) -> Iterator[Any]:
    if relation == "In" and isinstance(value, (list, tuple, set, frozenset, dict)):
        yield from (sorted(value) if all(isinstance(v, int) for v in value) else list(value))[:4]
    elif relation in ("Eq", "Is", "LtE", "GtE"):
        yield value
    elif relation == "Lt" and isinstance(value, int):
        yield value - 1
    elif relation == "Gt" and isinstance(value, int):
        yield value + 1


def _asked(position: int, measure: str, place: int | None, value: Any, given: Any) -> Asked | None:
    if isinstance(value, bool) and measure != "value":
        return None
    fits = isinstance(value, int) and 0 < value <= _MOST
    if measure == "shape" and isinstance(value, (tuple, list)) and all(isinstance(n, int) for n in value):
        return Asked(position, "shape", tuple(value))
    if measure == "size" and fits and isinstance(given, Tensor) and place is not None and given.ndim:
        return Asked(position, "size", (place % given.ndim if place < 0 else place, value))
    if measure == "rank" and isinstance(value, int) and 0 <= value <= 5:
        return Asked(position, "rank", value)
    if measure == "length" and fits:
        return Asked(position, "size", (0, value)) if isinstance(given, Tensor) else Asked(position, "rank", value)
    if measure == "element" and isinstance(given, (tuple, list)) and place is not None and place < len(given):
        return Asked(position, "value", type(given)((*given[:place], value, *given[place:][1:])))
    if measure == "kind" and isinstance(value, torch.dtype):
        same = isinstance(given, Tensor) and _kind(given.dtype) == _kind(value)
        return Asked(position, "dtype", value) if same else Asked(position, "kind", _kind(value))
    # A tensor may be compared with a number; compared with a word, it should have been one.
    plain = (str,) if isinstance(given, Tensor) else (bool, int, float, str, tuple)
    if measure == "value" and isinstance(value, plain):
        return Asked(position, "value", value)
    return None


def _kind(dtype: torch.dtype) -> str:
    if dtype.is_complex:
        return "complex"
    return "floating" if dtype.is_floating_point else "bool" if dtype is torch.bool else "integer"
