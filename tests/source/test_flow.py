"""Flow against execution: whatever value a name is seen to have when a function runs must be among those that flow reports.

A program is drawn, and run with every read and every assignment noted; branches, lengths of loops and exceptions are drawn,
too. Context managers here let exceptions pass, and no inner function declares a name `nonlocal`: flow follows neither.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsmith.source.flow import Flow

Place = tuple[int, int]
Pair = tuple[Place, Place]
NAMES = ("a", "b", "c")
CALLED = ("f", "g")
ELEMENT = "d"  # a comprehension's own


class OutOfSteps(BaseException):
    """A drawn program may loop for ever."""


class Tagged:
    """A value that knows which assignment it was given by."""

    def __init__(self, tag: Place, value: object = None) -> None:
        self.tag, self.value = tag, value

    def __call__(self, *args: object) -> object:
        return self.value(*args) if callable(self.value) else None


class Execution:
    """What an instrumented program calls: it notes who sees what, and decides where to go."""

    def __init__(self, seed: int, *, straight: bool) -> None:
        self.random = random.Random(seed)
        self.straight = straight
        self.steps = 0
        self.pairs: set[Pair] = set()

    def step(self) -> None:
        self.steps += 1
        if self.steps > 150:
            raise OutOfSteps
        if not self.straight and self.random.random() < 0.08:
            raise ValueError

    def read(self, place: Place, value: Tagged) -> Tagged:
        self.pairs.add((place, value.tag))
        self.step()
        return value

    def made(self, shape: Any, value: object = None) -> Any:
        if isinstance(shape[0], tuple):
            return tuple(self.made(part) for part in shape)
        return Tagged(shape, value)

    def augmented(self, place: Place, value: Tagged, _: object) -> Tagged:
        self.pairs.add((place, value.tag))
        self.step()
        return Tagged(place)

    def items(self, shape: Any, _: object) -> Iterator[Any]:
        for _round in range(self.random.randrange(4)):
            yield self.made(shape)

    @contextmanager
    def entered(self, shape: Any, _: object) -> Iterator[Any]:
        yield self.made(shape) if shape else None

    def named(self, place: Place) -> Callable[[Callable[..., object]], Tagged]:
        return lambda function: Tagged(place, function)

    def cond(self, *_: object) -> bool:
        self.step()
        return self.random.random() < 0.6


class Instrumented(ast.NodeTransformer):
    """The same program with `run.read`, `run.made`, ... put around reads and values."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        known = node.id in (*NAMES, *CALLED, ELEMENT) and isinstance(node.ctx, ast.Load)
        return _call("read", _place(node), node) if known else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.value = _call("made", _shape(node.targets[0]), self.visit(node.value))
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        node.value = _call("made", _shape(node.target), self.visit(node.value))
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        target = node.target
        assert isinstance(target, ast.Name)
        before = ast.Name(target.id, ast.Load())
        return ast.Assign([target], _call("augmented", _place(target), before, self.visit(node.value)))

    def visit_For(self, node: ast.For) -> ast.AST:
        shape = _shape(node.target)
        self.generic_visit(node)
        node.iter = _call("items", shape, node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        shape = _shape(node.target)
        self.generic_visit(node)
        node.iter = _call("items", shape, node.iter)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        for item in node.items:
            shape = _shape(item.optional_vars) if item.optional_vars is not None else ast.Constant(None)
            item.context_expr = _call("entered", shape, self.visit(item.context_expr))
        node.body = [self.visit(s) for s in node.body]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if node.name:
            node.body.insert(0, _given(node.name, node))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body[:0] = [_given(arg.arg, arg) for arg in node.args.args]
        node.decorator_list = [_call("named", _place(node))]
        return node


def _call(method: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("run", ast.Load()), method, ast.Load()), list(args), [])


def _place(node: ast.AST) -> ast.expr:
    return ast.parse(repr(_at(node)), mode="eval").body


def _shape(target: ast.AST) -> ast.expr:
    if isinstance(target, ast.Tuple):
        return ast.Tuple([_shape(part) for part in target.elts], ast.Load())
    return _place(target)


def _given(name: str, node: ast.AST) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], _call("made", _place(node)))


def _at(node: Any) -> Place:
    return node.lineno, node.col_offset


def executed(source: str, seeds: range, *, straight: bool = False) -> set[Pair]:
    """Every (read, assignment) that really happens in some run."""
    tree = Instrumented().visit(copy.deepcopy(ast.parse(source)))
    code = compile(ast.fix_missing_locations(tree), "<drawn>", "exec")
    pairs: set[Pair] = set()
    for seed in seeds:
        run = Execution(seed, straight=straight)
        names: dict[str, Any] = {"run": run, "cond": run.cond}
        exec(code, names)
        with suppress(Exception, OutOfSteps):
            names["function"](None)
        pairs |= run.pairs
    return pairs


def reported(source: str) -> set[Pair]:
    """Every (read, assignment) that flow thinks possible; an augmented assignment reads what it builds on."""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    flow = Flow(function)
    reads = {(_at(name), _at(b.node)) for name, bindings in flow.at.items() for b in bindings}
    return reads | {(_at(b.node), _at(before.node)) for b in flow.bindings for before in b.previous}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0:
        return draw(st.sampled_from(NAMES))
    inner = expressions(depth - 1)
    kind = draw(st.integers(0, 11))
    name = draw(st.sampled_from(NAMES))
    if kind <= 5:
        return name
    if kind == 6:
        return f"({name} := {draw(inner)})"
    if kind == 7:
        return f"cond() and {draw(inner)}"
    if kind == 8:
        return f"({draw(inner)} if cond({draw(inner)}) else {draw(inner)})"
    if kind == 9:
        return f"[cond({ELEMENT}, {draw(inner)}) for {ELEMENT} in {name} if cond({draw(inner)})]"
    if kind == 10:
        return f"(lambda: {draw(inner)})"
    return f"{draw(st.sampled_from(CALLED))}({draw(inner)})"


def targets() -> st.SearchStrategy[str]:
    return st.sampled_from((*NAMES, "(a, b)", "(b, (c, a))"))


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@st.composite
def simple(draw: st.DrawFn) -> list[str]:
    name, value = draw(st.sampled_from(NAMES)), draw(expressions())
    kind = draw(st.integers(0, 8))
    if kind <= 3:
        return [f"{draw(targets())} = {value}"]
    if kind == 4:
        return [f"{name} += {value}"]
    if kind == 5:
        return [f"del {name}"]
    if kind == 6:
        return [f"{draw(st.sampled_from(CALLED))} = {value}"]
    return [f"{draw(st.sampled_from((*CALLED, 'cond')))}({value})"]


@st.composite
def statements(draw: st.DrawFn, depth: int, in_loop: bool) -> list[str]:
    kinds = ["simple"] * 4 + ["return", "raise"] + ["continue", "break"] * in_loop
    if depth:
        kinds += ["if", "if", "for", "while", "try", "try", "with", "def"]
    kind = draw(st.sampled_from(kinds))

    def block(in_loop: bool = in_loop) -> list[str]:
        return _indented(draw(blocks(depth - 1, in_loop)))

    def otherwise(word: str, in_loop: bool = in_loop) -> list[str]:
        return [word, *block(in_loop)] if draw(st.booleans()) else []

    if kind == "simple":
        return draw(simple())
    value = draw(expressions(1))
    if kind == "return":
        return ["if cond():", f"    return {value}"]
    if kind == "raise":
        return ["if cond():", f"    raise ValueError({value})"]
    if kind in ("continue", "break"):
        return ["if cond():", f"    {kind}"] if draw(st.booleans()) else [kind]
    if kind == "if":
        return [f"if cond({value}):", *block(), *otherwise("else:")]
    if kind == "for":
        return [f"for {draw(targets())} in {value}:", *block(True), *otherwise("else:")]
    if kind == "while":
        return [f"while cond({value}):", *block(True), *otherwise("else:")]
    if kind == "with":
        named = f" as {draw(targets())}" if draw(st.booleans()) else ""
        return [f"with {value}{named}:", *block()]
    if kind == "def":
        parameters = draw(st.sampled_from(("", "a")))
        return [f"def {draw(st.sampled_from(CALLED))}({parameters or '*_'}):", *block(False)]
    caught = draw(st.sampled_from(("except ValueError:", "except Exception as c:", "")))
    handler = [caught, *block(), *otherwise("else:")] if caught else []
    last = ["finally:", *block()] if not caught or draw(st.booleans()) else []
    return ["try:", *block(), *handler, *last]


@st.composite
def blocks(draw: st.DrawFn, depth: int, in_loop: bool = False) -> list[str]:
    drawn = draw(st.lists(statements(depth, in_loop), min_size=1, max_size=3))
    return [line for lines in drawn for line in lines]


@st.composite
def programs(draw: st.DrawFn) -> str:
    body = [line for _ in range(draw(st.integers(1, 3))) for line in draw(blocks(3))]
    return "\n".join(["def function(a):", *_indented(body), "    cond(a, b, c)"])


@st.composite
def straight_programs(draw: st.DrawFn) -> str:
    value = st.sampled_from((*NAMES, "(a := b)", "cond(c, (b := a))"))
    line = st.builds("{} = {}".format, targets(), value) | st.builds("{} += {}".format, st.sampled_from(NAMES), value)
    lines = draw(st.lists(line | st.builds("cond({})".format, value), max_size=12))
    return "\n".join(["def function(a):", "    (b, c) = a", *_indented(lines), "    cond(a, b, c)"])


def _missed(source: str, runs: int) -> set[Pair]:
    return executed(source, range(runs)) - reported(source)


@given(programs())
@settings(max_examples=60)
def test_what_a_name_is_seen_to_hold_is_among_what_flow_reports(source: str) -> None:
    assert not _missed(source, 10)


@pytest.mark.deep
@given(programs())
@settings(max_examples=3_000)
def test_what_a_name_is_seen_to_hold_is_among_what_flow_reports_deep(source: str) -> None:
    assert not _missed(source, 30)


@given(straight_programs())
@settings(max_examples=60)
def test_in_straight_lines_flow_reports_exactly_what_happens(source: str) -> None:
    assert reported(source) == executed(source, range(1), straight=True)


def _held(source: str, line: int, name: str) -> set[int]:
    """The lines on which flow thinks `name`, as read on `line`, may have got its value."""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    at = Flow(function).at
    return {_at(b.node)[0] for read, held in at.items() if _at(read)[0] == line and read.id == name for b in held}


def test_continue_brings_its_values_to_the_next_round() -> None:
    source = "def f(x, xs):\n y = 0\n for i in xs:\n  use(y)\n  if i:\n   y = 1\n   continue\n  y = 2\n return y"
    assert _held(source, 4, "y") == {2, 6, 8}


def test_continue_brings_its_values_to_the_else_of_a_loop_and_break_does_not() -> None:
    source = "def f(x):\n y = 0\n while x:\n  if x:\n   y = 1\n   {}\n  y = 2\n else:\n  use(y)"
    assert _held(source.format("continue"), 9, "y") == {2, 5, 7}
    assert _held(source.format("break"), 9, "y") == {2, 7}


def test_a_handler_sees_what_was_assigned_before_the_exception() -> None:
    source = "def f(x):\n y = 0\n try:\n  y = 1\n  y = g(x)\n except E:\n  use(y)"
    assert _held(source, 7, "y") == {2, 4, 5}


def test_finally_sees_what_a_return_leaves_behind() -> None:
    source = "def f(x):\n y = 0\n try:\n  y = 1\n  return x\n finally:\n  use(y)"
    assert _held(source, 7, "y") == {2, 4}


def test_an_inner_function_sees_what_is_assigned_after_it() -> None:
    source = "def f(x):\n y = 0\n def inner():\n  return y\n y = 1\n return inner()"
    assert _held(source, 4, "y") == {2, 5}


def test_a_walrus_that_may_be_skipped_leaves_the_old_value_possible() -> None:
    source = "def f(x):\n y = 0\n z = x and (\n  y := 1)\n return y"
    assert _held(source, 5, "y") == {2, 4}


def test_a_failed_guard_leaves_its_names_bound() -> None:
    source = "def f(x):\n y = 0\n match x:\n  case [y] if x:\n   pass\n  case _:\n   use(y)"
    assert _held(source, 7, "y") == {2, 4}
