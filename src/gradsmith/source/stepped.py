"""A function with a loop over time, with a step in its place: what `gs.scan` can run.

    for t in range(x.shape[1]):              def step(xs, state):
        h = torch.tanh(x[:, t] + h @ w)          (x_t,), (h,) = xs, state
        out.append(h)                            h = torch.tanh(x_t + h @ w)
    return torch.stack(out, 1)                   return (h,), (h,)
                                             (ys,), (h,) = gs.scan(step, (x.movedim(1, 0)[:x.shape[1]],), (h,))
                                             return ys.movedim(0, 1)

Whether the new function computes the same is found by running both. Never imports torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

SCAN = "_gs_scan"
_ENDS = (
    ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete, ast.Import,
    ast.ImportFrom, ast.FunctionDef, ast.ClassDef,
)  # fmt: skip


def with_scan(text: str) -> Iterator[str]:
    """The text of a function with one of its loops as a call of `SCAN`, for each loop that has the form of one over time.

    >>> print(next(with_scan("def f(x, h):\\n    for x_t in x.unbind(1):\\n        h = h * x_t\\n    return h")))
    def f(x, h):
    <BLANKLINE>
        def _gs_step(_gs_xs, _gs_state):
            x_t, = _gs_xs
            h, = _gs_state
            h = h * x_t
            return ((h,), (h,))
        _gs_ys, _gs_last = _gs_scan(_gs_step, (x.movedim(1, 0),), (h,))
        h, = _gs_last
        return h
    """
    place = 0
    while (function := _function_in(text)) is not None and place < len(function.body):
        statement = function.body[place]
        if isinstance(statement, ast.For) and not statement.orelse:
            written = _written(function, statement, place)
            if written is not None:
                function.body[place:] = written
                function.decorator_list = []
                yield ast.unparse(ast.fix_missing_locations(function))
        place += 1


def _function_in(text: str) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    found = tree.body[0] if len(tree.body) == 1 else None
    return found if isinstance(found, ast.FunctionDef) else None


@dataclass
class _Course:
    """What a step is given of a tensor with time in dimension `along`, under the name `step`."""

    whole: str
    along: int
    step: str


@dataclass
class _Loop:
    """One loop, as far as it is understood."""

    counter: str | None
    length: str | None
    courses: list[_Course] = field(default_factory=list)
    results: list[tuple[str, int | None, str]] = field(default_factory=list)
    """The name that a result goes to after the loop, the dimension of time (None: a list), and what a step returns."""


def _written(function: ast.FunctionDef, loop: ast.For, place: int) -> list[ast.stmt] | None:
    ahead, behind = function.body[:place], function.body[place + 1 :]
    if any(isinstance(node, _ENDS) for statement in loop.body for node in ast.walk(statement)):
        return None
    read = _read_header(loop)
    before = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)} | _names(ahead, ast.Store)
    if read is None:
        return None
    lists = {s.targets[0].id for s in ahead if _is_empty_list(s)}  # type: ignore[attr-defined]
    body = [_Steps(read, lists, loop.body).visit(statement) for statement in loop.body]
    stored = _names(body, ast.Store)
    used_after = _names(behind, ast.Load)
    taken = {name for name, _, _ in read.results}
    state = sorted(stored & before & (_names(body, ast.Load) | used_after) - taken)
    for name in sorted(stored & used_after - before):  # the last step's value
        read.results.append((name, None, name))
    others = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Attribute | ast.Subscript | ast.Name)]
    changed = any(isinstance(n.ctx, ast.Store) and not isinstance(n, ast.Name) for n in others)
    counted = any(isinstance(n, ast.Name) and n.id in (read.counter, *taken) for n in others)
    if changed or counted or not state or not read.courses:
        return None
    results = [what for _, _, what in read.results] or state[:1]
    cut = "" if read.length is None else f"[:{read.length}]"
    courses = [f"{c.whole}.movedim({c.along}, 0){cut}" for c in read.courses]
    step: ast.stmt = ast.parse("def _gs_step(_gs_xs, _gs_state): pass").body[0]
    assert isinstance(step, ast.FunctionDef)
    step.body = [
        *_lines(f"{_tuple(c.step for c in read.courses)} = _gs_xs", f"{_tuple(state)} = _gs_state"),
        *body,
        *_lines(f"return ({_tuple(results)}), ({_tuple(state)})"),
    ]
    given = f"({_tuple(courses)}), ({_tuple(state)})"
    text = [f"_gs_ys, _gs_last = {SCAN}(_gs_step, {given})", f"{_tuple(state)} = _gs_last"]
    ending = _Stacked({name: i for i, (name, along, _) in enumerate(read.results) if along is None and name in lists})
    rest = [ending.visit(statement) for statement in behind]
    for i, (name, along, _) in enumerate(read.results):
        if name in lists:
            text += [f"{name} = list(_gs_ys[{i}].unbind(0))"] if name in _names(rest, ast.Load) else []
        else:
            text.append(f"{name} = _gs_ys[{i}]" + ("[-1]" if along is None else f".movedim(0, {along})"))
    return [step, *_lines(*text), *rest]


def _read_header(loop: ast.For) -> _Loop | None:
    """`for t in range(T)`, `for x_t in x.unbind(1)`, `for a, b in zip(x, y)`, `for t, x_t in enumerate(x)`."""
    target, over, counter = loop.target, loop.iter, None
    if _called(over) == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        first, target = target.elts
        over = over.args[0]  # type: ignore[attr-defined]
        counter = first.id if isinstance(first, ast.Name) else None
    if _called(over) == "range":
        length = over.args[-1]  # type: ignore[attr-defined]
        begins = over.args[:-1]  # type: ignore[attr-defined]
        plain = isinstance(target, ast.Name) and [ast.unparse(b) for b in begins] in ([], ["0"])
        return _Loop(target.id, ast.unparse(length)) if plain else None  # type: ignore[attr-defined]
    found = _Loop(counter, None)
    zipped = _called(over) == "zip" and isinstance(target, ast.Tuple)
    for name, whole in zip(target.elts, over.args) if zipped else [(target, over)]:  # type: ignore[attr-defined]
        course = _unbound(whole)
        if not isinstance(name, ast.Name) or course is None:
            return None
        found.courses.append(_Course(*course, name.id))
    return found


def _called(node: ast.expr) -> str:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args and not node.keywords
    return node.func.id if is_call else ""  # type: ignore[attr-defined]


def _unbound(node: ast.expr) -> tuple[str, int] | None:
    """The tensor that is taken apart, and the dimension: of `x.unbind(1)`, `torch.unbind(x, dim=1)`, `x`."""
    if isinstance(node, ast.Name):
        return node.id, 0
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "unbind":
        of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        parts = [*([] if of_torch else [node.func.value]), *node.args, *(k.value for k in node.keywords)]
        along = 0 if len(parts) == 1 else _whole_number(parts[1])
        return (ast.unparse(parts[0]), along) if along is not None and len(parts) <= 2 else None
    return None


def _whole_number(node: ast.expr) -> int | None:
    try:
        found = ast.literal_eval(node)
    except ValueError:
        return None
    return found if type(found) is int else None


class _Steps(ast.NodeTransformer):
    """Of the body of a loop: `x[:, t]` becomes what the step is given, `out.append(y)` and `out[t] = y` what it returns."""

    def __init__(self, loop: _Loop, lists: set[str], body: Sequence[ast.stmt]) -> None:
        self.loop, self.lists, self.own = loop, lists, _names(body, ast.Store)
        self.top = {id(statement) for statement in body}

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        appends = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append"
        if appends and id(node) in self.top and isinstance(call.func.value, ast.Name) and len(call.args) == 1:  # type: ignore[attr-defined]
            name = call.func.value.id  # type: ignore[attr-defined]
            if name in self.lists:
                return self._result(name, None, call.args[0])  # type: ignore[attr-defined]
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        if len(node.targets) == 1 and id(node) in self.top and isinstance(target, ast.Subscript):
            along = self._along(target)
            if along is not None and isinstance(target.value, ast.Name):
                return self._result(target.value.id, along, node.value)
        return self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """`h += y` writes into a state that the step does not own."""
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        return ast.Assign([node.target], ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value))

    def _result(self, name: str, along: int | None, value: ast.expr) -> ast.stmt:
        what = f"_gs_y{len(self.loop.results)}"
        self.loop.results.append((name, along, what))
        target = ast.Name(what, ast.Store())
        return ast.Assign([target], self.visit(value))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        along = self._along(node)
        if along is None or not isinstance(node.ctx, ast.Load) or _names([node.value], ast.Load) & self.own:
            return self.generic_visit(node)
        whole = ast.unparse(node.value)
        known = next((c for c in self.loop.courses if (c.whole, c.along) == (whole, along)), None)
        if known is None:
            known = _Course(whole, along, f"_gs_x{len(self.loop.courses)}")
            self.loop.courses.append(known)
        return ast.Name(known.step, ast.Load())

    def _along(self, node: ast.Subscript) -> int | None:
        """The dimension that the counter picks from, where all others are taken whole."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        texts = [ast.unparse(part) for part in parts]
        if self.loop.counter is None or texts.count(self.loop.counter) != 1:
            return None
        at = texts.index(self.loop.counter)
        if set(texts) - {self.loop.counter} - {":", "..."}:
            return None
        if "..." in texts[:at]:
            return at - len(texts)
        return at


class _Stacked(ast.NodeTransformer):
    """`torch.stack(out, 1)` of a list that the loop filled is the results, with time in that dimension."""

    def __init__(self, lists: dict[str, int]) -> None:
        self.lists = lists

    def visit_Call(self, node: ast.Call) -> ast.AST:
        stacks = isinstance(node.func, ast.Attribute) and node.func.attr == "stack" and node.args
        first = node.args[0] if stacks else None
        if not isinstance(first, ast.Name) or first.id not in self.lists:
            return self.generic_visit(node)
        along = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "dim")]
        text = f"_gs_ys[{self.lists[first.id]}].movedim(0, {ast.unparse(along[0]) if along else 0})"
        return ast.parse(text, mode="eval").body


def _is_empty_list(statement: ast.stmt) -> bool:
    one = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return one and isinstance(statement.targets[0], ast.Name) and ast.unparse(statement.value) in ("[]", "list()")  # type: ignore[attr-defined]


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _lines(*texts: str) -> list[ast.stmt]:
    return [statement for text in texts for statement in ast.parse(text).body]


def _tuple(names: Iterable[str]) -> str:
    return ", ".join(names) + ","
