"""Custom ops with a registered gradient, as FunctionModels: `@torch.library.custom_op` and `register_autograd`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from gradsmith.source.file import FileModel
from gradsmith.source.method import Method, Role, read_params
from gradsmith.source.model import FunctionModel, decorator_names
from gradsmith.source.walk import nodes_under

# Statements only: documentation speaks of register_autograd far more often than code uses it.
_MENTION = re.compile(r"[ \t]*(?:[\w.]+\.)?register_autograd\(|[ \t]*@(?:[\w.]+\.)?(?:custom_op|triton_op)\b")
_DECORATORS = ("torch.library.custom_op", "torch.library.triton_op")


class _Registration(NamedTuple):
    op: ast.expr
    backward: ast.expr
    setup_context: ast.expr | None


def custom_ops(file: FileModel) -> Iterator[FunctionModel]:
    """One model for every `register_autograd` whose backward is a function of this file."""
    if "register_autograd(" not in file.text:
        return
    places = file.lines_like(_MENTION, "register_autograd(", "custom_op", "triton_op")
    nodes = [node for block in file.blocks_at(places) for node in nodes_under(block)]
    functions = {n.name: n for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for node in nodes:
        registration = _registration(file, node)
        if registration is None:
            continue
        backward = _function(file, functions, registration.backward)
        if backward is None:
            continue
        forward = _operator(file, functions, registration.op)
        name = forward.name if forward else _spelled(registration.op)
        model = FunctionModel(name, forward or backward, file, "custom_op")
        if forward is not None:
            model.methods["forward"] = _method("forward", forward, file, None, "input")
        setup = _function(file, functions, registration.setup_context)
        if setup is not None:
            model.methods["setup_context"] = _method("setup_context", setup, file, _ctx(setup), ("inputs", "output"))
        model.methods["backward"] = _method("backward", backward, file, _ctx(backward), "grad_output")
        yield model


def _registration(file: FileModel, node: ast.AST) -> _Registration | None:
    if not (isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name))):
        return None
    keywords = {k.arg: k.value for k in node.keywords}
    setup = keywords.get("setup_context")
    if (file.dotted(node.func) or "").endswith("torch.library.register_autograd"):
        given = [*node.args, *(keywords[k] for k in ("op", "backward") if k in keywords)]
        return _Registration(given[0], given[1], setup) if len(given) > 1 else None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "register_autograd":
        backward = node.args[0] if node.args else keywords.get("backward")
        return _Registration(node.func.value, backward, setup) if backward is not None else None
    return None


Functions = dict[str, ast.FunctionDef | ast.AsyncFunctionDef]


def _function(
    file: FileModel, functions: Functions, node: ast.expr | None
) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """A function by its name: one next to the registration, or one at the top of the file."""
    return functions.get(node.id) or file.function_named(node.id) if isinstance(node, ast.Name) else None


def _operator(file: FileModel, functions: Functions, op: ast.expr) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The decorated function behind the op: by its own name, or by the "library::name" it was given."""
    for function in functions.values():
        for decorator in function.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if file.dotted(call) not in _DECORATORS:
                continue
            if isinstance(op, ast.Name) and op.id == function.name:
                return function
            named = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
            if isinstance(op, ast.Constant) and isinstance(named, ast.Constant) and op.value == named.value:
                return function
    return None


def _spelled(op: ast.expr) -> str:
    return str(op.value) if isinstance(op, ast.Constant) else ast.unparse(op)


def _ctx(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    names = [*node.args.posonlyargs, *node.args.args]
    return names[0].arg if names else None


def _method(
    name: str,
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    file: FileModel,
    ctx: str | None,
    roles: tuple[Role, ...] | Role,
) -> Method:
    params = read_params(node, 1 if ctx else 0, roles, file)
    return Method(name, node, file, "function", ctx, params, decorator_names(node, file))
