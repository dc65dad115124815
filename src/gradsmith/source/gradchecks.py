"""Calls of gradcheck in tests: their options, their inputs, and what becomes of their result."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.source import knowledge as know
from gradsmith.source.method import Method, read_params
from gradsmith.source.walk import nodes_under, once

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel

_NAMES = frozenset(("gradcheck", "gradgradcheck"))


@dataclass(frozen=True, eq=False)
class Gradcheck:
    """One call of torch's gradcheck or gradgradcheck, in the function that makes it."""

    node: ast.Call
    method: Method
    file: FileModel

    @property
    def name(self) -> str:
        func = self.node.func
        return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "gradcheck")

    def option(self, name: str) -> ast.expr | None:
        return next((k.value for k in self.node.keywords if k.arg == name), None)

    def number(self, name: str) -> float | None:
        """A literal option."""
        value = self.option(name)
        if isinstance(value, ast.Constant) and isinstance(value.value, (int, float)):
            return float(value.value)
        return None

    @property
    def is_silenced(self) -> bool:
        value = self.option("raise_exception")
        return isinstance(value, ast.Constant) and value.value is False

    @cached_property
    def inputs(self) -> list[ast.expr] | None:
        """The expressions behind the inputs, one by one; None where the source does not say."""
        given = self.node.args[1] if len(self.node.args) > 1 else self.option("inputs")
        if given is None:
            return None
        whole = self.method.resolve(given)
        parts = whole.elts if isinstance(whole, (ast.Tuple, ast.List)) else [whole]
        if any(isinstance(p, ast.Starred) for p in parts):
            return None
        return [self.method.resolve(p) for p in parts]


class Made(NamedTuple):
    """What is known of a tensor from the expression that makes it."""

    factory: ast.Call
    dtype: str  # "float32", "float64", "other"
    requires_grad: bool


def made(check: Gradcheck, node: ast.expr) -> Made | None:
    """`torch.randn(3, dtype=torch.double, requires_grad=True)`, also with `.double()` or `.requires_grad_()` after it."""
    dtype, requires_grad = "", False
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if know.bare_op(check.method.dotted(node.func)) in know.FLOAT_FACTORIES:
            given = next((k.value for k in node.keywords if k.arg == "dtype"), None)
            if any(k.arg is None for k in node.keywords):
                return None
            if given is not None and not dtype:
                dtype = _dtype((check.method.dotted(given) or "?").rpartition(".")[2])
            asks = next((k.value for k in node.keywords if k.arg == "requires_grad"), None)
            if asks is not None and not isinstance(asks, ast.Constant):
                return None
            requires_grad = requires_grad or (isinstance(asks, ast.Constant) and asks.value is True)
            return Made(node, dtype or "float32", requires_grad)
        name = node.func.attr
        if name in ("double", "float", "half", "bfloat16"):
            dtype = dtype or _dtype(name)
        elif name in ("to", "type", "type_as"):
            dtype = dtype or next(
                (
                    _dtype(d.rpartition(".")[2])
                    for a in (*node.args, *(k.value for k in node.keywords))
                    if (d := check.method.dotted(a))
                ),
                "other",
            )
        elif name == "requires_grad_":
            requires_grad = True
        elif name not in (
            "clone",
            "detach",
            "mul",
            "add",
            "abs",
            "t",
            "transpose",
            "view",
            "reshape",
            "cuda",
            "contiguous",
        ):
            return None
        node = node.func.value
    return None


def _dtype(name: str) -> str:
    if name in ("float64", "double"):
        return "float64"
    return "float32" if name in ("float32", "float") else "other"


@once
def gradchecks(file: FileModel) -> list[Gradcheck]:
    """Every call of gradcheck in the file, with the function around it; the module itself where there is none."""
    return list(_gradchecks(file))


def _gradchecks(file: FileModel) -> Iterator[Gradcheck]:
    module: Method | None = None
    lines = (file.line_number(at) for at in file.occurrences("gradcheck("))
    # A test class may be thousands of lines long: its methods are parsed alone.
    for block in dict.fromkeys(file.function_at(line, outermost=True) for line in lines):
        for node in nodes_under(block) if block is not None else ():
            if not isinstance(node, ast.Call) or not _is_gradcheck(file, node.func):
                continue
            around = _function_around(file, node)
            if around is not None:
                yield Gradcheck(node, _method(around, file), file)
                continue
            module = module or _method(_as_function(file.tree), file)
            inside = next((n for n in module.of(ast.Call) if _same_place(n, node)), None)
            if inside is not None:
                yield Gradcheck(inside, module, file)


def _is_gradcheck(file: FileModel, func: ast.expr) -> bool:
    dotted = file.dotted(func) or ""
    name = dotted.rpartition(".")[2]
    # `self.gradcheck(...)` and projects' own wrappers may do anything.
    return name in _NAMES and (dotted.startswith(("torch.", "gradsmith.")) or dotted == name)


def _function_around(file: FileModel, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    current = file.parents.get(node)
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef)):
        current = file.parents.get(current)
    return current


def _as_function(tree: ast.Module) -> ast.FunctionDef:
    """The module's statements as the body of a function, so that the same questions can be asked of it."""
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.FunctionDef("<module>", empty, tree.body, [], lineno=1, col_offset=0)


def _method(node: ast.FunctionDef | ast.AsyncFunctionDef, file: FileModel) -> Method:
    return Method(node.name, node, file, "function", None, read_params(node, 0, "other", file), ())


def _same_place(left: ast.AST, right: ast.AST) -> bool:
    return (getattr(left, "lineno", 0), getattr(left, "col_offset", 0)) == (
        getattr(right, "lineno", 1),
        getattr(right, "col_offset", 1),
    )


def becomes(check: Gradcheck) -> str:
    """What happens to the result: "dropped", "unread" (a name nobody reads), "asserted", "returned" or "used"."""
    parents = check.file.parents
    current: ast.AST = check.node
    while not isinstance(current, ast.stmt):
        current = parents[current]
    if isinstance(current, ast.Expr):
        return "dropped" if current.value is check.node else _called_with(current.value)
    if isinstance(current, ast.Assert):
        return "asserted"
    if isinstance(current, ast.Return):
        return "returned"
    if isinstance(current, ast.Assign) and isinstance(current.targets[0], ast.Name):
        name = current.targets[0].id
        loads = [n for n in check.method.of(ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]
        if not loads:
            return "unread"
        kinds = {_use(check, load) for load in loads}
        return next((k for k in ("asserted", "returned") if k in kinds), "used")
    return "used"


def _use(check: Gradcheck, node: ast.AST) -> str:
    current = node
    while not isinstance(current, ast.stmt):
        current = check.file.parents[current]
    if isinstance(current, ast.Assert):
        return "asserted"
    if isinstance(current, ast.Return):
        return "returned"
    if isinstance(current, ast.If) and any(
        isinstance(n, (ast.Raise, ast.Return)) for s in current.body for n in nodes_under(s)
    ):
        return "asserted"
    return _called_with(current.value) if isinstance(current, ast.Expr) else "used"


def _called_with(value: ast.expr) -> str:
    """`self.assertTrue(gradcheck(...))`, `np.testing.assert_(...)`: asserted; `print(...)`: used."""
    name = ast.unparse(value.func).lower() if isinstance(value, ast.Call) else ""
    return (
        "asserted"
        if any(word in name for word in ("assert", "check", "expect", "require", "fail", "append"))
        else "used"
    )
