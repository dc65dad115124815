"""Ways of breaking a right backward, most of them over more than one token; each takes a class and a seeded chooser."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Iterator

Breaker = Callable[[ast.ClassDef, random.Random], ast.ClassDef | None]


def backward_of(cls: ast.ClassDef) -> ast.FunctionDef:
    return next(n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "backward")


def _changed(cls: ast.ClassDef, nodes: Callable[[ast.FunctionDef], list[ast.AST]], chooser: random.Random,
             new: Callable[[ast.AST], ast.AST], count: int = 1) -> ast.ClassDef | None:  # fmt: skip
    """A copy with `count` of the nodes replaced, none inside another."""
    made = copy.deepcopy(cls)
    found = nodes(backward_of(made))
    chooser.shuffle(found)
    chosen: list[ast.AST] = []
    for node in found:
        inner = {id(n) for n in ast.walk(node)}
        if not any(id(c) in inner or any(node is n for n in ast.walk(c)) for c in chosen):
            chosen.append(node)
        if len(chosen) == count:
            break
    if len(chosen) < count:
        return None
    swap = {id(node): new(node) for node in chosen}

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return swap[id(node)] if id(node) in swap else self.generic_visit(node)

    return ast.fix_missing_locations(Swap().visit(made))


def _binary(*ops: type[ast.operator]) -> Callable[[ast.FunctionDef], list[ast.AST]]:
    return lambda f: [n for n in ast.walk(f) if isinstance(n, ast.BinOp) and isinstance(n.op, ops)]


def missing_term(cls: ast.ClassDef, chooser: random.Random) -> ast.ClassDef | None:
    """A sum keeps one of its terms."""
    return _changed(cls, _binary(ast.Add, ast.Sub), chooser, lambda n: chooser.choice([n.left, n.right]))  # type: ignore[attr-defined]


def missing_factors(cls: ast.ClassDef, chooser: random.Random) -> ast.ClassDef | None:
    """Two products keep one of their factors each."""
    return _changed(cls, _binary(ast.Mult, ast.Div), chooser, lambda n: n.left, 2)  # type: ignore[attr-defined]


def wrong_reduction(cls: ast.ClassDef, chooser: random.Random) -> ast.ClassDef | None:
    """A sum over dimensions becomes a mean over the first, one slice, or nothing."""

    def reductions(f: ast.FunctionDef) -> list[ast.AST]:
        names = ("sum", "mean", "sum_to_size")
        return [n for n in ast.walk(f) if isinstance(n, ast.Call) and getattr(n.func, "attr", "") in names]

    def new(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        value = (
            node.func.value
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "torch")
            else node.args[0]
        )
        kind = chooser.randrange(3)
        if kind == 0:
            return ast.Call(
                ast.Attribute(value, "mean", ast.Load()),
                [ast.Constant(0)],
                [ast.keyword("keepdim", ast.Constant(True))],
            )
        if kind == 1:
            return ast.Subscript(value, ast.Constant(0), ast.Load())
        return ast.Call(ast.Attribute(value, "cumsum", ast.Load()), [ast.Constant(-1)], [])

    return _changed(cls, reductions, chooser, new)


def one_returned_otherwise(cls: ast.ClassDef, chooser: random.Random) -> ast.ClassDef | None:
    """None or zeros for one input."""
    made = copy.deepcopy(cls)
    returns = [n for n in ast.walk(backward_of(made)) if isinstance(n, ast.Return) and n.value is not None]
    if not returns:
        return None
    last = returns[-1]
    elements = last.value.elts if isinstance(last.value, ast.Tuple) else None
    places = [
        i for i, e in enumerate(elements or [last.value]) if not (isinstance(e, ast.Constant) and e.value is None)
    ]
    if not places:
        return None
    place = chooser.choice(places)
    old = elements[place] if elements is not None else last.value
    assert old is not None
    zero = ast.Call(ast.Attribute(ast.Name("torch", ast.Load()), "zeros_like", ast.Load()), [old], [])
    new: ast.expr = chooser.choice([ast.Constant(None), zero]) if elements is not None else zero
    if elements is not None:
        elements[place] = new
    else:
        last.value = new
    return ast.fix_missing_locations(made)


def whole_wrong(cls: ast.ClassDef, chooser: random.Random) -> ast.ClassDef | None:
    """A backward that passes grad_output on, scaled, to every input."""
    made = copy.deepcopy(cls)
    backward = backward_of(made)
    grad = backward.args.args[1].arg
    returns = [n for n in ast.walk(backward) if isinstance(n, ast.Return)]
    if len(backward.args.args) != 2 or len(returns) != 1 or returns[0].value is None:
        return None
    value = returns[0].value
    elements = value.elts if isinstance(value, ast.Tuple) else [value]
    unpack = [s for s in backward.body if isinstance(s, ast.Assign) and "saved_tensors" in ast.unparse(s.value)]
    ctx = backward.args.args[0].arg
    names = [f"{ctx}.saved_tensors[0]"] if unpack else []
    text = f"{grad}.sum() * torch.ones_like({names[0]})" if names else f"2 * {grad}"
    new = [ast.Constant(None) if isinstance(e, ast.Constant) else ast.parse(text, mode="eval").body for e in elements]
    returned = ast.Tuple(new, ast.Load()) if isinstance(value, ast.Tuple) else new[0]
    backward.body = [ast.Return(returned)]
    return ast.fix_missing_locations(made)


def none_at_all(cls: ast.ClassDef, chooser: random.Random) -> ast.ClassDef | None:
    """No backward, one that raises, or one that does nothing."""
    made = copy.deepcopy(cls)
    backward = backward_of(made)
    kind = chooser.randrange(3)
    if kind == 0:
        made.body = [n for n in made.body if n is not backward]
        return made
    backward.body = ast.parse("raise NotImplementedError" if kind == 1 else "pass").body
    return ast.fix_missing_locations(made)


def lines_lost(cls: ast.ClassDef, chooser: random.Random) -> ast.ClassDef | None:
    """A statement that changes a gradient further is gone, or two statements are exchanged for what they read."""
    made = copy.deepcopy(cls)
    backward = backward_of(made)
    simple = [s for s in backward.body if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and len(s.targets) == 1
              and isinstance(s.value, (ast.BinOp, ast.Call))]  # fmt: skip
    if not simple:
        return None
    chosen = chooser.choice(simple)
    names = [n for n in ast.walk(chosen.value) if isinstance(n, ast.Name) and n.id not in ("torch", "F", "math")]
    if not names:
        return None
    chosen.value = ast.Name(names[0].id, ast.Load())
    return ast.fix_missing_locations(made)


BREAKERS: dict[str, Breaker] = {
    "missing term": missing_term,
    "missing factors": missing_factors,
    "wrong reduction": wrong_reduction,
    "None or zeros": one_returned_otherwise,
    "whole backward": whole_wrong,
    "no backward": none_at_all,
    "lines lost": lines_lost,
}


def names() -> Iterator[str]:
    yield from BREAKERS
