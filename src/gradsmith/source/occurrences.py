"""Where a parameter of forward is read: in forward, through ctx in backward, and in the functions it is handed to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gradsmith.source.behind import body_called
from gradsmith.source.flow import Binding
from gradsmith.source.method import Method, Param, read_params
from gradsmith.source.model import FunctionModel
from gradsmith.source.walk import once

_DEPTH = 2  # a wrapper that applies a Function, and a helper of that


class Occurrence(NamedTuple):
    """An expression that may be the parameter, and the method that it stands in."""

    method: Method
    node: ast.expr


def occurrences(subject: FunctionModel | Method, parameter: str) -> tuple[Occurrence, ...]:
    """Every expression that may be this parameter of forward (or of a plain function), in the order of the methods.

    `config['mode']` and `stride[0]` are entries of parameters. Each parameter is looked for once: an explorer asks hundreds of times.
    """
    known = _known(subject)
    if parameter not in known:
        known[parameter] = tuple(_found(subject, parameter, _DEPTH))
    return known[parameter]


@once
def _known(subject: FunctionModel | Method) -> dict[str, tuple[Occurrence, ...]]:
    """What was found so far, by parameter."""
    return {}


def _found(subject: FunctionModel | Method, parameter: str, depth: int) -> Iterator[Occurrence]:
    for place in _places(subject, parameter):
        for node in place.method.nodes:
            if isinstance(node, ast.expr) and place.reads(node):
                whole = _whole(place.method, node)
                yield Occurrence(place.method, whole)
                if depth:
                    yield from _handed_on(place.method, whole, depth - 1)


@dataclass(eq=False)
class _Place:
    """One method, and under which names the parameter is known there: its own, a ctx attribute, an entry of `inputs`.

    `attributes` are those of ctx, with the index in the tuple that was put there; `packed` the same for the method's
    parameters.
    """

    method: Method
    own: str | None = None
    attributes: dict[str, int | str | None] = field(default_factory=dict)
    packed: dict[str, int | str] = field(default_factory=dict)

    def reads(self, node: ast.expr) -> bool:
        """Is this the parameter, as far as a reader can tell? Without what only names it once more."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return any(self._bound(b, frozenset()) for b in self.method.definitions(node))
        return self._read(node, frozenset())

    def is_it(self, node: ast.expr | None, seen: frozenset[Binding] = frozenset()) -> bool:
        if isinstance(node, ast.Name):
            return any(self._bound(b, seen) for b in self.method.definitions(node))
        if isinstance(node, ast.IfExp):
            return self.is_it(node.body, seen) or self.is_it(node.orelse, seen)
        if isinstance(node, ast.BoolOp):
            return any(self.is_it(value, seen) for value in node.values)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_respelt(node):
            return self.is_it(node.func.value, seen)
        return node is not None and self._read(node, seen)

    def _bound(self, binding: Binding, seen: frozenset[Binding]) -> bool:
        if binding in seen:
            return False
        if binding.how == "param":
            return binding.name == self.own
        if binding.how == "assign":
            return self.is_it(binding.value, seen | {binding})
        if binding.how == "unpack" and binding.value is not None and binding.index is not None:
            whole = self.method.resolve(binding.value)
            if isinstance(whole, (ast.Tuple, ast.List)):
                return binding.index < len(whole.elts) and self.is_it(whole.elts[binding.index], seen | {binding})
            return self.entry(whole) == binding.index
        return False

    def _read(self, node: ast.expr, seen: frozenset[Binding]) -> bool:
        """`ctx.mode`, `ctx.options[1]`, `inputs[1]`, `config.get("mode")`."""
        key: ast.expr | None = node.slice if isinstance(node, ast.Subscript) else None
        whole = node.value if isinstance(node, ast.Subscript) else None
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and node.args
        ):
            key, whole = node.args[0], node.func.value
        if whole is not None:
            entry = self.entry(self.method.resolve(whole))
            return entry is not None and isinstance(key, ast.Constant) and entry == key.value
        attribute = self._attribute(node)
        return attribute is not None and self.attributes.get(attribute, 0) is None

    def entry(self, node: ast.expr) -> int | str | None:
        """Which entry of this the parameter is: of `inputs`, or of a tuple or dict in ctx."""
        if isinstance(node, ast.Name) and any(b.how == "param" for b in self.method.definitions(node)):
            return self.packed.get(node.id)
        attribute = self._attribute(node)
        return self.attributes.get(attribute) if attribute is not None else None

    def _attribute(self, node: ast.expr) -> str | None:
        here = isinstance(node, ast.Attribute) and self.method.context.is_ctx(node.value)
        return node.attr if isinstance(node, ast.Attribute) and here and isinstance(node.ctx, ast.Load) else None


def _places(subject: FunctionModel | Method, parameter: str) -> list[_Place]:
    own, entry = _split(parameter)
    if isinstance(subject, Method):
        return [_Place(subject, own) if entry is None else _Place(subject, packed={own: entry})]
    forward, setup, backward = subject.forward, subject.setup_context, subject.backward
    param = forward.param(own) if forward is not None else None
    if forward is None or param is None:
        return []
    found = _places(forward, parameter)
    if setup is not None and entry is None:
        found.append(_Place(setup, packed=_packed(setup, param)))
    attributes = {a: e for place in found for a, e in _attributes(place)}
    for place in found:
        place.attributes.update(attributes)
    return [*found, *([_Place(backward, attributes=attributes)] if backward is not None else [])]


def _split(parameter: str) -> tuple[str, int | str | None]:
    """The parameter, and which entry of it.

    >>> _split("mode"), _split("config['mode']"), _split("stride[0]")
    (('mode', None), ('config', 'mode'), ('stride', 0))
    """
    own, bracket, rest = parameter.partition("[")
    key = rest.removesuffix("]")
    return own, None if not bracket else int(key) if key.isdecimal() else key.strip("'\"")


def _packed(setup: Method, param: Param) -> dict[str, int | str]:
    """setup_context gets `inputs`, and those of a custom op that are keywords in a dict of their own."""
    names = [p.name for p in setup.positional]
    if param.kind == "positional":
        return dict.fromkeys(names[:1], param.index)
    return dict.fromkeys(names[1:-1], param.name)


def _attributes(place: _Place) -> Iterator[tuple[str, int | str | None]]:
    for write in place.method.context.writes:
        if place.is_it(write.value):
            yield write.attr, None
        elif isinstance(write.value, ast.Name) and (entry := place.entry(write.value)) is not None:
            yield write.attr, entry
        elif isinstance(write.value, (ast.Tuple, ast.List)):
            yield from ((write.attr, i) for i, part in enumerate(write.value.elts) if place.is_it(part))
        elif isinstance(write.value, ast.Dict):
            for key, part in zip(write.value.keys, write.value.values):
                if isinstance(key, ast.Constant) and isinstance(key.value, (int, str)) and place.is_it(part):
                    yield write.attr, key.value


def _is_respelt(call: ast.Call) -> bool:
    """`mode.lower()`, `mode.strip()`: for a reader still the same word."""
    plain = isinstance(call.func, ast.Attribute) and not call.args and not call.keywords
    return plain and hasattr(str, getattr(call.func, "attr", ""))


def _whole(method: Method, node: ast.expr) -> ast.expr:
    """`mode.lower()` for `mode`."""
    parent = method.file.parents.get(node)
    call = method.file.parents.get(parent) if isinstance(parent, ast.Attribute) else None
    return call if isinstance(call, ast.Call) and call.func is parent and _is_respelt(call) else node


def _handed_on(method: Method, node: ast.expr, depth: int) -> Iterator[Occurrence]:
    """What becomes of it in a function of this file, or in a Function of this file that is applied to it."""
    parent = method.file.parents.get(node)
    call = method.file.parents.get(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args):
        return
    keyword = parent.arg if isinstance(parent, ast.keyword) else None
    position = call.args.index(node) if node in call.args else None
    inside = _applied(method, call.func) or _called(method, call.func)
    if inside is None or inside is method:
        return
    names = [p.name for p in (inside.inputs if isinstance(inside, FunctionModel) else inside.positional)]
    name = keyword or (names[position] if position is not None and position < len(names) else None)
    if name is not None:
        yield from _found(inside, name, depth)


def _called(method: Method, func: ast.expr) -> Method | None:
    body = body_called(method, func)
    if body is None or body is method.node:
        return None
    return Method(body.name, body, method.file, "function", None, read_params(body, 0, "input", method.file), ())


def _applied(method: Method, func: ast.expr) -> FunctionModel | None:
    """The Function behind `Fn.apply`, or behind a name that the file gives to it."""
    if isinstance(func, ast.Name) and method.is_free(func):
        func = method.file.value_of(func.id) or func
    if not (isinstance(func, ast.Attribute) and func.attr == "apply" and isinstance(func.value, ast.Name)):
        return None
    name = func.value.id
    return next((model for model in method.file.functions if model.name == name and model.kind == "function"), None)
