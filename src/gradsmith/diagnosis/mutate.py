"""Every small change to a backward: the candidates among which a repair is looked for."""

from __future__ import annotations

import ast
import contextlib
import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradsmith.source import knowledge as know

_SWAPS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
}
_TURNED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.Gt, ast.LtE),
    ast.Gt: (ast.Lt, ast.GtE),
    ast.LtE: (ast.GtE, ast.Lt),
    ast.GtE: (ast.LtE, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
_FUNCTIONS = {
    "sum": "mean", "mean": "sum", "sin": "cos", "cos": "sin", "exp": "log", "log": "exp", "max": "min", "min": "max",
    "sigmoid": "tanh", "tanh": "sigmoid", "maximum": "minimum", "minimum": "maximum", "sqrt": "rsqrt", "rsqrt": "sqrt",
    "amax": "amin", "amin": "amax", "sinh": "cosh", "cosh": "sinh",
}  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """A changed backward, valid until the next one is asked for: the kind of change, the expression before and after."""

    kind: str
    tree: ast.FunctionDef
    line: int
    old: ast.expr
    new: ast.expr

    @property
    def before(self) -> str:
        return _text(self.old)

    @property
    def after(self) -> str:
        return _text(self.new)


def _text(node: ast.expr) -> str:
    """As people write it: several names that are assigned to stand without parentheses."""
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store):
        return ", ".join(map(ast.unparse, node.elts))
    return ast.unparse(node)


def candidates(tree: ast.FunctionDef) -> Iterator[Candidate]:
    """All single changes, the likeliest kinds first."""
    names = _names(tree)
    places = list(_places(tree))
    # Inside a comparison almost any change fits by accident: between two samples any threshold will do.
    compared = {id(n) for p in places if isinstance(p.node, ast.Compare) for n in ast.walk(p.node) if n is not p.node}
    yield from _unpacked(tree)
    yield from _renamed(tree, places, names)
    for make in (_operands, _operators, _constants, _comparisons, _tensors, _parts):
        for place in places:
            if id(place.node) in compared and make is not _tensors:
                continue
            for kind, replacement in list(make(place.node, names)):
                yield from _offered(tree, place, replacement, kind)


def of_ctx(tree: ast.FunctionDef, kept: Sequence[str]) -> Iterator[Candidate]:
    """What takes a number that forward keeps on ctx: an option written down as a constant, a factor that nobody reads."""
    if not tree.args.args:
        return
    ctx = tree.args.args[0].arg
    places = list(_places(tree))
    attribute = lambda name: ast.Attribute(ast.Name(ctx, ast.Load()), name, ast.Load())  # noqa: E731
    read = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for place in places:
        value = place.node.value if isinstance(place.node, ast.Constant) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            for name in kept:
                yield from _offered(tree, place, attribute(name), "wrong-constant")
                for op in (ast.Sub(), ast.Add()):
                    yield from _offered(tree, place, ast.BinOp(attribute(name), op, _number(1)), "wrong-constant")
    for name in kept:
        if name not in read:
            for place in places:
                if isinstance(place.node, (ast.BinOp, ast.Call, ast.Name)):
                    for factor in (ast.Mult(), ast.Div()):
                        yield from _offered(tree, place, ast.BinOp(place.node, factor, attribute(name)), "chain-factor")


def _unpacked(tree: ast.FunctionDef) -> Iterator[Candidate]:
    """Two names exchanged where several are assigned at once: `w, x = ctx.saved_tensors`."""
    for statement in tree.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        (target,) = statement.targets
        if isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
            place = _Place(target, statement, "targets", 0)
            for i, j in itertools.combinations(range(len(target.elts)), 2):
                order = list(target.elts)
                order[i], order[j] = order[j], order[i]
                yield from _offered(tree, place, ast.Tuple(order, ast.Store()), "wrong-tensor")


def _operators(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.BinOp):
        for op in _SWAPS.get(type(node.op), ()):
            yield "wrong-operator", ast.BinOp(node.left, op(), node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "wrong-operator", node.operand
    if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
        yield "wrong-operator", node.args[0]  # without the call: a zeros_like, a mean that forward does not take
    if isinstance(node, ast.Attribute) and node.attr in _FUNCTIONS:
        yield "wrong-operator", ast.Attribute(node.value, _FUNCTIONS[node.attr], ast.Load())


def _operands(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult)):
        yield "wrong-operands", ast.BinOp(node.right, node.op, node.left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        left, right = node.left, node.right
        yield "wrong-operands", ast.BinOp(_turned(left), node.op, right)
        yield "wrong-operands", ast.BinOp(left, node.op, _turned(right))
        yield "wrong-operands", ast.BinOp(_turned(left), node.op, _turned(right))
        yield "wrong-operands", ast.BinOp(_turned(right), node.op, left)
        yield "wrong-operands", ast.BinOp(right, node.op, _turned(left))
    if isinstance(node, ast.Call) and len(node.args) == 2 and _called(node) in {"mm", "matmul", "bmm"}:
        a, b = node.args
        for x, y in ((b, a), (_turned(a), b), (a, _turned(b)), (_turned(a), _turned(b))):
            yield "wrong-operands", ast.Call(node.func, [x, y], node.keywords)


def _constants(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        c = node.value
        for other in dict.fromkeys((c + 1, c - 1, 2 * c, c / 2, -c, 1 / c if c else 1, 3 * c, c / 3)):
            if other != c:
                yield "wrong-constant", _number(int(other) if float(other).is_integer() else other)


def _comparisons(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for op in _TURNED.get(type(node.ops[0]), ()):
            yield "wrong-comparison", ast.Compare(node.left, [op()], node.comparators)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        yield "wrong-comparison", node.operand


def _tensors(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Name) and node.id in names:
        for other in names:
            if other != node.id:
                yield "wrong-tensor", ast.Name(other, ast.Load())


def _parts(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        kind = "chain-factor" if isinstance(node.op, (ast.Mult, ast.Div)) else "missing-term"
        yield kind, node.left
        if not isinstance(node.op, ast.Div):
            yield kind, node.right
    if isinstance(node, (ast.BinOp, ast.Call, ast.Name)):
        for name in names:
            other = ast.Name(name, ast.Load())
            yield "chain-factor", ast.BinOp(node, ast.Mult(), other)
            yield "chain-factor", ast.BinOp(node, ast.Div(), other)
            yield "missing-term", ast.BinOp(node, ast.Sub(), other)
            yield "missing-term", ast.BinOp(node, ast.Add(), other)
        yield "missing-term", ast.BinOp(_number(1), ast.Sub(), node)


def _renamed(tree: ast.FunctionDef, places: list[_Place], names: list[str]) -> Iterator[Candidate]:
    """One name for another throughout a statement: `1 - x * x` where `1 - y * y` was meant."""
    for place in places:
        if not isinstance(place.parent, (ast.Assign, ast.Return, ast.AugAssign)):
            continue
        used = {n.id for n in ast.walk(place.node) if isinstance(n, ast.Name) and n.id in names}
        for old in sorted(used):
            for new in names:
                if new != old:
                    renamed = _Rename(old, new).visit(copy.deepcopy(place.node))
                    yield from _offered(tree, place, renamed, "wrong-tensor")


def _offered(tree: ast.FunctionDef, place: _Place, replacement: ast.expr, kind: str) -> Iterator[Candidate]:
    if _writes_elsewhere(place, replacement):
        return
    with _changed(place, replacement):
        if _cancels(place.parent) or any(map(_cancels, ast.walk(replacement))):
            return
        yield Candidate(kind, tree, place.node.lineno, place.node, replacement)


def _writes_elsewhere(place: _Place, replacement: ast.expr) -> bool:
    """Whether another tensor would be written into: that may mend one gradient and spoil what the caller holds."""
    receives = isinstance(place.parent, ast.Attribute) and know.is_inplace_name(place.parent.attr)
    return receives or not set(_written(replacement)) <= set(_written(place.node))


def _cancels(node: ast.AST) -> bool:
    """`x - x`, `x / x`: a change that makes a number out of a tensor takes something away, whatever it seems to add."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Sub, ast.Div)):
        return False
    return ast.dump(node.left) == ast.dump(node.right)


def _written(node: ast.expr) -> Iterator[str]:
    """What in-place methods are called on."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and know.is_inplace_name(call.func.attr):
            yield ast.unparse(call.func.value)


class _Rename(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.new, node.ctx) if node.id == self.old else node


@contextlib.contextmanager
def _changed(place: _Place, replacement: ast.expr) -> Iterator[None]:
    """The tree with one expression replaced while the block runs; copying the tree for each change took 6 ms."""
    ast.fix_missing_locations(ast.copy_location(replacement, place.node))
    place.put(replacement)
    try:
        yield
    finally:
        place.put(place.node)


@dataclass(frozen=True)
class _Place:
    """Where an expression hangs in its tree."""

    node: ast.expr
    parent: ast.AST
    field: str
    index: int | None

    def put(self, node: ast.expr) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _places(tree: ast.AST) -> Iterator[_Place]:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for index, node in enumerate(value) if isinstance(value, list) else ((None, value),):
                if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
                    yield _Place(node, parent, field, index)


def _names(tree: ast.FunctionDef) -> list[str]:
    """Local names that may be tensors: parameters after ctx, and what is assigned."""
    found = [a.arg for a in tree.args.args[1:]]
    found += [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys(found))[:10]


def _turned(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in know.TRANSPOSES:
        return node.func.value
    if isinstance(node, ast.Attribute) and node.attr in know.TRANSPOSES:
        return node.value
    return ast.Attribute(node, "mT", ast.Load())


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _number(value: float) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))
