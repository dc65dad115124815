"""How code uses what it is given: the attributes it reads of it, whether it calls it, walks through it, hands it on.

What a parameter has to be is often said nowhere but in its uses, and these may be spread: forward keeps a list on ctx,
backward walks through it and calls a method of each element. Never imports torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

Path = tuple[str | int, ...]  # a parameter; "each" for an element of it; a number for a place in a tuple
EACH = "each"
_AS_IT_IS = frozenset({"list", "tuple", "reversed", "iter", "sorted"})
_BY_KEY = frozenset({"get", "pop", "setdefault"})
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Uses:
    """What is done with one value; `each` with an element of it, `places` with the parts of a tuple that it is."""

    attributes: set[str] = field(default_factory=set)
    called: int = 0  # with how many values, at least one
    mapping: bool = False  # `f(**value)`
    aliases: set[str] = field(default_factory=set)  # `f(dim=value)`: what others call it
    keys: set[str] = field(default_factory=set)  # `value["width"]`, `value.get("width")`
    spread: bool = False  # `f(*value)`
    passed: list[tuple[str, int | str]] = field(default_factory=list)  # to what, in which place or by which name
    classes: list[str] = field(default_factory=list)  # `isinstance(value, A)`: A as it is written
    each: Uses | None = None
    places: list[Uses] = field(default_factory=list)

    @property
    def known(self) -> bool:
        """Whether anything is said that a tensor or a number would not do as well."""
        said = self.attributes or self.called or self.mapping or self.keys or self.passed or self.classes
        return bool(said or self.each or self.places)


def uses(methods: Sequence[tuple[_Definition, str]]) -> dict[str, Uses]:
    """The uses of every parameter of the first function; `methods` are functions, each with what it calls the object
    that values are kept on: `ctx` in forward and backward, `self` in the methods of a class.

    >>> first = ast.parse("def f(ctx, blocks): ctx.b = blocks").body[0]
    >>> then = ast.parse("def g(ctx, grad):\\n  for block in ctx.b[::-1]: grad = block.undo(grad)").body[0]
    >>> uses([(first, "ctx"), (then, "ctx")])["blocks"].each.attributes
    {'undo'}
    """
    reader = _Reader()
    for number, (node, holder) in enumerate(methods):
        reader.read(node, holder, parameters=not number)
    names = [a.arg for a in _parameters(methods[0][0])] if methods else []
    return {name: reader.found.get(name, Uses()) for name in names}


class _Reader:
    def __init__(self) -> None:
        self.found: dict[str, Uses] = {}
        self.held: dict[str, Path] = {}  # attributes of the object that values are kept on

    def read(self, node: _Definition, holder: str, *, parameters: bool) -> None:
        self.holder = holder
        self.known: dict[str, Path] = {a.arg: (a.arg,) for a in _parameters(node)} if parameters else {}
        for inner in _in_order(node.body):
            self._bind(inner)
            self._note(inner)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assigned(target, node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            self._walked(node.target, node.iter)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        path = self.path(value)
        if isinstance(target, ast.Name):
            if path is None:
                self.known.pop(target.id, None)
            else:
                self.known[target.id] = path
        elif isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == self.holder and path is not None:
            self.held[target.attr] = path
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, other in zip(target.elts, value.elts):
                self._assigned(one, other)
        elif isinstance(target, ast.Tuple) and path is not None:
            self._unpacked(target, path)

    def _walked(self, target: ast.expr, iterated: ast.expr) -> None:
        """`for a, (b, c) in zip(first, second)`: what each of the names is an element of."""
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and isinstance(target, ast.Tuple):
            if iterated.func.id == "enumerate" and len(target.elts) == 2 and iterated.args:
                return self._walked(target.elts[1], iterated.args[0])
            if iterated.func.id == "zip":
                for one, other in zip(target.elts, iterated.args):
                    self._walked(one, other)
                return None
        path = self.path(iterated)
        if path is not None:
            self._unpacked(target, (*path, EACH))
        return None

    def _unpacked(self, target: ast.expr, path: Path) -> None:
        self.at(path)
        if isinstance(target, ast.Name):
            self.known[target.id] = path
        elif isinstance(target, ast.Tuple):
            for place, one in enumerate(target.elts):
                self._unpacked(one, (*path, place))

    def path(self, node: ast.expr) -> Path | None:
        """What an expression stands for, as far as it is a parameter, an element or a part of one."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            return self.held.get(node.attr) if getattr(node.value, "id", "") == self.holder else None
        if isinstance(node, ast.Subscript):
            whole = self.path(node.value)
            return whole if isinstance(node.slice, ast.Slice) or whole is None else (*whole, EACH)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _AS_IT_IS and len(node.args) == 1:
            return self.path(node.args[0])
        return None

    def at(self, path: Path) -> Uses:
        here = self.found.setdefault(str(path[0]), Uses())
        for part in path[1:]:
            if isinstance(part, int):
                here.places += [Uses() for _ in range(part + 1 - len(here.places))]
                here = here.places[part]
            else:
                here.each = here.each or Uses()
                here = here.each
        return here

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            path = self.path(node.value)
            if path is not None:
                self.at(path).attributes.add(node.attr)
        elif isinstance(node, ast.Subscript):
            self._noted_key(node.value, node.slice)
        elif isinstance(node, ast.Call):
            self._noted_call(node)
            if isinstance(node.func, ast.Attribute) and node.func.attr in _BY_KEY and node.args:
                self._noted_key(node.func.value, node.args[0])

    def _noted_key(self, holder: ast.expr, key: ast.expr) -> None:
        path = self.path(holder)
        if path is not None and isinstance(key, ast.Constant) and isinstance(key.value, str):
            self.at(path).keys.add(key.value)

    def _noted_call(self, node: ast.Call) -> None:
        path = self.path(node.func)
        if path is not None:
            here = self.at(path)
            here.called = max(here.called, len(node.args), 1)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        given: list[tuple[int | str | None, ast.expr]] = list(enumerate(node.args))
        given += [(keyword.arg, keyword.value) for keyword in node.keywords]
        for place, value in given:
            spread = isinstance(value, ast.Starred)
            passed = self.path(value.value if isinstance(value, ast.Starred) else value)
            if passed is None:
                continue
            if spread:
                self.at(passed).spread = True
            elif place is None:
                self.at(passed).mapping = True
            elif isinstance(place, str):
                self.at(passed).aliases.add(place)
                self.at(passed).passed += [(name, place)] if name else []
            elif name == "isinstance":
                self.at(passed).classes.append(ast.unparse(node.args[1]))
            elif name and name not in _AS_IT_IS:
                self.at(passed).passed.append((name, place))


def _parameters(node: _Definition) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _in_order(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node, a binding before what stands in its scope: a comprehension's loops come before its element."""
    for node in body:
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            children.sort(key=lambda child: not isinstance(child, ast.comprehension))
        yield from _in_order(children)
