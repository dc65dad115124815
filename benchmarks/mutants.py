"""Mutants: the gallery's correct Functions, each broken by one generic change to its source.

Whether a mutant differs from its original at all is decided here without gradsmith: backward is called directly on 20
random inputs, strided ones and every single required gradient among them, and compared bit by bit.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import itertools
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
_COUNT = itertools.count()
_FOLDER = tempfile.TemporaryDirectory(prefix="gradsmith-mutants-")


@dataclass(frozen=True)
class Mutant:
    """One broken Function: where it comes from, which operator broke it, and its whole source."""

    name: str
    operator: str
    line: int
    cls: str
    source: str
    original: str


def breed(limit: int = 3, seed: int = 0) -> Iterator[Mutant]:
    """Up to `limit` mutants for each operator and Function, the same ones whatever other files the gallery has."""
    kernels = GALLERY / "kernels"  # run in the interpreter only, and broken by benchmarks/kernels.py
    for path in sorted(p for p in GALLERY.rglob("*.py") if p.parent != kernels):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and _is_subject(node, source):
                chooser = random.Random(f"{seed} {path.stem}.{node.name}")
                for operator, make in OPERATORS.items():
                    changes = list(make(node))
                    for change in chooser.sample(changes, min(limit, len(changes))):
                        broken = _with(source, tree, node, change)
                        name = f"{path.stem}.{node.name}:{operator}@{change.line}"
                        yield Mutant(name, operator, change.line, node.name, broken, source)


def load(source: str) -> ModuleType:
    """The source as a module in a file of its own, so that inspect finds it."""
    name = f"mutant_{next(_COUNT)}"
    path = Path(_FOLDER.name) / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def examples(module: ModuleType, cls: str) -> list[Callable[[], Any]]:
    entry = module.gradsmith_inputs[cls]
    return list(entry) if isinstance(entry, list) else [entry]


def is_equivalent(mutant: Mutant) -> bool:
    """Bitwise the same raw backward on 20 random inputs, or not distinguishable because neither runs."""
    before, after = load(mutant.original), load(mutant.source)
    for trial in range(20):
        for build_a, build_b in zip(examples(before, mutant.cls), examples(after, mutant.cls)):
            a = _raw(getattr(before, mutant.cls), build_a, trial)
            b = _raw(getattr(after, mutant.cls), build_b, trial)
            if not _identical(a, b):
                return False
    return True


def _raw(cls: Any, build: Callable[[], Any], trial: int) -> list[Any]:
    """What two backwards in a row return, and what they leave of their inputs; an exception is an answer, too."""
    torch.manual_seed(trial)
    args = [a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in build()]
    floats = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad]
    if trial % 3 == 2 and len(floats) > 1:
        for i in floats[:-1]:
            args[i].requires_grad_(False)
    inputs = [args[i] for i in floats if args[i].requires_grad]
    passed = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    try:
        torch.manual_seed(trial)
        outputs = cls.apply(*passed)
        outputs = [o for o in (outputs if isinstance(outputs, tuple) else (outputs,)) if o.requires_grad]
        if trial % 4 == 3:
            torch.manual_seed(trial + 1)
            cls.apply(
                *[a.detach() * 0.5 if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in passed]
            )
        torch.manual_seed(trial)
        v = [torch.randn(o.shape, dtype=o.dtype) for o in outputs]
        if trial % 2:
            v = [g.mT.contiguous().mT if g.ndim > 1 else g for g in v]
        first = torch.autograd.grad(outputs, inputs, v, retain_graph=True, allow_unused=True)
        second = torch.autograd.grad(outputs, inputs, v, allow_unused=True)
    except Exception as error:
        return [type(error).__name__]
    return [*first, *second, *v, *[p.detach() for p in passed if isinstance(p, torch.Tensor)]]


def _identical(a: list[Any], b: list[Any]) -> bool:
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
            if x.dtype != y.dtype or not torch.equal(x.nan_to_num(), y.nan_to_num()):
                return False
        elif type(x) is not type(y) or (isinstance(x, str) and x != y):
            return False
    return True


# --- operators ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """Replace the `index`-th node of the class (in walking order) by what `make` builds from a copy of it."""

    index: int
    line: int
    make: Callable[[Any], Any]


def _is_subject(node: ast.ClassDef, source: str) -> bool:
    header = ast.get_source_segment(source, node) or ""
    first = header.split("def ")[0]
    methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
    declared = f'"{node.name}"' in source.partition("gradsmith_inputs")[2]
    return {"forward", "backward"} <= methods and "gradsmith:" not in first and declared


def _nodes(cls: ast.ClassDef, method: str = "backward") -> Iterator[tuple[int, Any]]:
    inside = {id(n) for f in cls.body if isinstance(f, ast.FunctionDef) and f.name == method for n in ast.walk(f)}
    for index, node in enumerate(ast.walk(cls)):
        if id(node) in inside:
            yield index, node


def _sign(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _nodes(cls):
        if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Add, ast.Sub)) and not isinstance(n.left, ast.Constant):
            yield Change(i, n.lineno, lambda m: _set(m, op=ast.Sub() if isinstance(m.op, ast.Add) else ast.Add()))
        if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Mult, ast.MatMult)):
            yield Change(i, n.lineno, lambda m: ast.UnaryOp(ast.USub(), m))


def _constant(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _nodes(cls):
        number = isinstance(n, ast.Constant) and isinstance(n.value, (int, float)) and not isinstance(n.value, bool)
        if number and n.value not in (0, -1):
            yield Change(i, n.lineno, lambda m: ast.Constant(m.value + 1))
        if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Mult, ast.MatMult)):
            yield Change(i, n.lineno, lambda m: ast.BinOp(m, ast.Mult(), ast.Constant(2)))


def _swapped_operands(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _nodes(cls):
        if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Sub, ast.Div, ast.MatMult)):
            yield Change(i, n.lineno, lambda m: _set(m, left=m.right, right=m.left))


def _dropped_term(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _nodes(cls):
        if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Add, ast.Sub, ast.Mult)):
            yield Change(i, n.lineno, lambda m: m.left)


def _transpose(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _nodes(cls):
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult):
            yield Change(i, n.lineno, lambda m: _set(m, right=ast.Attribute(m.right, "mT", ast.Load())))
        if isinstance(n, ast.Attribute) and n.attr in ("T", "mT"):
            yield Change(i, n.lineno, lambda m: m.value)


def _returns(cls: ast.ClassDef) -> Iterator[tuple[int, ast.Return]]:
    for i, n in _nodes(cls):
        if isinstance(n, ast.Return) and n.value is not None:
            yield i, n


def _swapped_gradients(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _returns(cls):
        if isinstance(n.value, ast.Tuple) and len(n.value.elts) >= 2:
            yield Change(
                i,
                n.lineno,
                lambda m: _set(m, value=_set(m.value, elts=[m.value.elts[1], m.value.elts[0], *m.value.elts[2:]])),
            )


def _dropped_gradient(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _returns(cls):
        if isinstance(n.value, ast.Tuple) and len(n.value.elts) >= 2:
            yield Change(i, n.lineno, lambda m: _set(m, value=_set(m.value, elts=m.value.elts[:-1])))


def _none_gradient(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _returns(cls):
        if isinstance(n.value, ast.Tuple):
            for k, e in enumerate(n.value.elts):
                if not (isinstance(e, ast.Constant) and e.value is None):
                    yield Change(
                        i,
                        n.lineno,
                        lambda m, k=k: _set(
                            m,
                            value=_set(
                                m.value, elts=[ast.Constant(None) if j == k else x for j, x in enumerate(m.value.elts)]
                            ),
                        ),
                    )
        else:
            yield Change(i, n.lineno, lambda m: _set(m, value=ast.Constant(None)))


def _ignored_grad_output(cls: ast.ClassDef) -> Iterator[Change]:
    grads = {
        a.arg for f in cls.body if isinstance(f, ast.FunctionDef) and f.name == "backward" for a in f.args.args[1:]
    }
    for i, n in _nodes(cls):
        if (
            isinstance(n, ast.BinOp)
            and isinstance(n.op, ast.Mult)
            and isinstance(n.left, ast.Name)
            and n.left.id in grads
        ):
            yield Change(i, n.lineno, lambda m: m.right)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in grads:
            yield Change(
                i,
                n.lineno,
                lambda m: ast.Call(ast.Attribute(ast.Name("torch", ast.Load()), "ones_like", ast.Load()), [m], []),
            )


def _unreduced(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _nodes(cls):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "sum" and n.args:
            yield Change(i, n.lineno, lambda m: _set(m, func=_set(m.func, attr="mean")))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("sum_to_size", "sum"):
            yield Change(i, n.lineno, lambda m: m.func.value)


def _flipped_comparison(cls: ast.ClassDef) -> Iterator[Change]:
    turned = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
    for i, n in _nodes(cls):
        if isinstance(n, ast.Compare) and type(n.ops[0]) in turned:
            yield Change(i, n.lineno, lambda m: _set(m, ops=[turned[type(m.ops[0])]()]))


def _wrong_saved(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _nodes(cls):
        unpack = (
            isinstance(n, ast.Assign)
            and isinstance(n.targets[0], ast.Tuple)
            and "saved_tensors" in ast.unparse(n.value)
        )
        if unpack and len(n.targets[0].elts) >= 2:
            yield Change(
                i,
                n.lineno,
                lambda m: _set(
                    m,
                    targets=[
                        _set(m.targets[0], elts=[m.targets[0].elts[1], m.targets[0].elts[0], *m.targets[0].elts[2:]])
                    ],
                ),
            )


def _low_precision(cls: ast.ClassDef) -> Iterator[Change]:
    grads = {
        a.arg for f in cls.body if isinstance(f, ast.FunctionDef) and f.name == "backward" for a in f.args.args[1:]
    }
    for i, n in _nodes(cls):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in grads:
            yield Change(
                i,
                n.lineno,
                lambda m: _call(_call(m, "float"), "to", ast.Attribute(copy.deepcopy(m), "dtype", ast.Load())),
            )


def _inplace(cls: ast.ClassDef) -> Iterator[Change]:
    grads = {
        a.arg for f in cls.body if isinstance(f, ast.FunctionDef) and f.name == "backward" for a in f.args.args[1:]
    }
    for i, n in _nodes(cls):
        if (
            isinstance(n, ast.BinOp)
            and isinstance(n.op, ast.Mult)
            and isinstance(n.left, ast.Name)
            and n.left.id in grads
        ):
            yield Change(i, n.lineno, lambda m: _call(m.left, "mul_", m.right))


def _state(cls: ast.ClassDef) -> Iterator[Change]:
    for i, n in _nodes(cls):
        if (
            isinstance(n, ast.Assign)
            and "saved_tensors" in ast.unparse(n.value)
            and isinstance(n.targets[0], ast.Tuple)
        ):
            name = cls.name
            keep = ast.parse(f"{name}.kept = {name}.__dict__.get('kept') or list(ctx.saved_tensors)").body[0]
            yield Change(
                i,
                n.lineno,
                lambda m, keep=keep, name=name: [
                    copy.deepcopy(keep),
                    _set(m, value=ast.parse(f"{name}.kept", mode="eval").body),
                ],
            )


OPERATORS: dict[str, Callable[[ast.ClassDef], Iterator[Change]]] = {
    "sign": _sign,
    "constant": _constant,
    "swapped operands": _swapped_operands,
    "dropped term": _dropped_term,
    "transpose": _transpose,
    "swapped gradients": _swapped_gradients,
    "dropped gradient": _dropped_gradient,
    "None gradient": _none_gradient,
    "ignored grad_output": _ignored_grad_output,
    "unreduced broadcast": _unreduced,
    "flipped comparison": _flipped_comparison,
    "wrong saved tensor": _wrong_saved,
    "lower precision": _low_precision,
    "in-place write": _inplace,
    "state": _state,
}


def _set(node: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        setattr(node, name, value)
    return node


def _call(value: ast.expr, method: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(value, method, ast.Load()), list(args), [])


def _with(source: str, tree: ast.Module, cls: ast.ClassDef, change: Change) -> str:
    twin = copy.deepcopy(tree)
    mine = next(n for n in twin.body if isinstance(n, ast.ClassDef) and n.name == cls.name)
    node = next(n for i, n in enumerate(ast.walk(mine)) if i == change.index)

    class Put(ast.NodeTransformer):
        def visit(self, visited: ast.AST) -> Any:
            return change.make(copy.deepcopy(visited)) if visited is node else self.generic_visit(visited)

    # Comments are lost by unparse, and with them suppressions: declarations are all in classes we left out.
    return ast.unparse(ast.fix_missing_locations(Put().visit(twin)))
