"""The user's function with every `for` made ready to be read once instead of turn by turn.

for t in range(n):                  loop = _loops(range(n), locals(), "h", "t")
    h = f(h, x[t])                  if loop.rolled:
                                        if "h" in loop.states: h = loop.states["h"]
                                        t = loop.item
                                        h = f(h, x[t])
                                        loop.leave(locals())
                                        if "h" in loop.results: h = loop.results["h"]
                                    else:
                                        for t in loop.items: h = f(h, x[t])
"""

from __future__ import annotations

import ast
import copy
import dis
import textwrap
import types
from typing import Any

from gradsmith.source.edited import statements
from gradsmith.source.loaded import definition_of

BEGIN = "__gradsmith_loops__"


def made_ready(function: types.FunctionType, scope: dict[str, Any]) -> types.FunctionType | None:
    """The function with its loops rewritten; None where it has none, or where its source cannot be had."""
    if function.__closure__ or dis.opmap["FOR_ITER"] not in function.__code__.co_code[::2]:
        return None
    written = definition_of(function)
    if written is None:
        return None
    definition = copy.deepcopy(written)
    rewriter = _Rewriter(set(function.__code__.co_varnames))
    rewriter.visit(definition)
    if not rewriter.count:
        return None
    definition.decorator_list, definition.returns = [], None
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    tree = ast.fix_missing_locations(ast.Module([definition], []))
    inner: dict[str, Any] = {}
    exec(compile(tree, function.__code__.co_filename, "exec"), scope, inner)  # the user's own source
    made: types.FunctionType = inner[definition.name]
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


class _Rewriter(ast.NodeTransformer):
    def __init__(self, variables: set[str]) -> None:
        self.count, self.variables = 0, variables

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.body = [self._statement(s) for s in node.body]
        return node

    def _statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            return node
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                setattr(node, field, [self._statement(s) for s in inner if isinstance(s, ast.stmt)] or inner)
        return self._for(node) if isinstance(node, ast.For) and _simple(node) else node

    def _for(self, node: ast.For) -> ast.stmt:
        self.count += 1
        loop = f"__loop_{self.count}"
        names = sorted(_assigned(node.body) & self.variables)
        template = textwrap.dedent(f"""
            {loop} = {BEGIN}(__ITER__, locals(), {_target(node)!r}, {names!r})
            if {loop}.rolled:
                __ENTER__
                __TARGET__ = {loop}.item
                __BODY__
                {loop}.leave(locals())
                __LEAVE__
            else:
                for __TARGET__ in {loop}.items:
                    __BODY__
        """)
        return _filled(template, node, loop, names)


def _filled(template: str, node: ast.For, loop: str, names: list[str]) -> ast.stmt:
    begin, branch = statements(template)
    assert isinstance(begin, ast.Assign) and isinstance(begin.value, ast.Call) and isinstance(branch, ast.If)
    begin.value.args[0] = node.iter
    enter = [_given(loop, "states", name) for name in names]
    leave = [_given(loop, "results", name) for name in names]
    bind, leaving = branch.body[1], branch.body[3]
    assert isinstance(bind, ast.Assign)
    bind.targets = [node.target]
    branch.body = [*enter, bind, *node.body, leaving, *leave]
    plain = branch.orelse[0]
    assert isinstance(plain, ast.For)
    plain.target, plain.body = node.target, node.body
    whole = ast.If(test=ast.Constant(True), body=[begin, branch], orelse=[])
    for part in ast.walk(whole):
        if isinstance(part, (ast.stmt, ast.expr)) and (not hasattr(part, "lineno") or part.lineno < node.lineno):
            _placed(part, node)
    for part in (begin, branch, *enter, bind, leaving, *leave, plain):
        for inner in ast.walk(part) if part not in (branch, plain) else [part]:
            if isinstance(inner, (ast.stmt, ast.expr)) and inner is not node.iter:
                _placed(inner, node)
    return whole


def _placed(part: ast.stmt | ast.expr, node: ast.For) -> None:
    """In the first line of the loop alone: Python puts an attribute into the last line of what it belongs to."""
    part.lineno = part.end_lineno = node.lineno
    part.col_offset = part.end_col_offset = node.col_offset


def _given(loop: str, which: str, name: str) -> ast.stmt:
    return statements(f"if {name!r} in {loop}.{which}: {name} = {loop}.{which}[{name!r}]")[0]


def _target(node: ast.For) -> str:
    return node.target.id if isinstance(node.target, ast.Name) else ""


def _assigned(body: list[ast.stmt]) -> set[str]:
    """Names that the body binds, and those whose memory it writes into (`out[t] = h`, `out[t].add_(h)`, `hs.append(h)`)."""
    found = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for part in (n for s in body for n in ast.walk(s)):
        written: ast.expr | None = None
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            written = part
        elif (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and (part.func.attr.endswith("_") or part.func.attr == "append")
        ):
            written = part.func.value
        while isinstance(written, (ast.Subscript, ast.Attribute, ast.Call)):
            written = written.func if isinstance(written, ast.Call) else written.value
        if isinstance(written, ast.Name):
            found.add(written.id)
    return found


def _simple(node: ast.For) -> bool:
    """Every turn runs the whole body."""
    if node.orelse:
        return False
    todo: list[ast.AST] = list(node.body)
    while todo:
        part = todo.pop()
        if isinstance(part, (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)):
            return False
        todo += list(ast.iter_child_nodes(part))
    return True
