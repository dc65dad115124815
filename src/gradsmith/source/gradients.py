"""Which inputs backward returns a gradient for, as far as its source says."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradsmith.source.returns import tuple_elements

if TYPE_CHECKING:
    from gradsmith.source.method import Method
    from gradsmith.source.model import FunctionModel
    from gradsmith.source.returns import Return


def given(function: FunctionModel, index: int) -> bool | None:
    """True where backward returns a gradient for this input on some path, False where it always returns None.

    None where the source does not say: a call returns all of them, or a starred value stands before and behind.
    """
    backward = function.backward
    if backward is None or not backward.returns:
        return None
    seen = {_in(function, backward, item, index) for item in backward.returns}
    return True if True in seen else None if None in seen else False


def _in(function: FunctionModel, backward: Method, item: Return, index: int) -> bool | None:
    elements = item.elements
    if elements is None and isinstance(item.value, ast.Tuple):
        elements = _without_star(item.value.elts, function, index)
    elif elements is None and isinstance(item.value, ast.Subscript):
        elements = _from_the_first(backward, item.value)
    elif elements is None and item.value is not None and not item.is_tuple and len(function.inputs) == 1:
        elements = [item.value]
    if elements is None or index >= len(elements):
        return None
    return _is_given(backward, elements[index], set())


def _from_the_first(backward: Method, node: ast.Subscript) -> list[ast.expr] | None:
    """`(None, grad, None)[: len(ctx.needs_input_grad)]`: as many as there are inputs, in order."""
    cut = node.slice
    if not isinstance(cut, ast.Slice) or cut.lower is not None or cut.step is not None:
        return None
    return tuple_elements(backward, node.value)[0]


def _without_star(elements: list[ast.expr], function: FunctionModel, index: int) -> list[ast.expr] | None:
    """The elements as they fall on the inputs, where a star in the middle leaves this one readable."""
    stars = [i for i, element in enumerate(elements) if isinstance(element, ast.Starred)]
    if len(stars) != 1 or any(param.kind == "vararg" for param in function.inputs):
        return None
    before, behind = elements[: stars[0]], elements[stars[0] + 1 :]
    if index < len(before):
        return before
    missing = len(function.inputs) - len(behind)
    return [elements[stars[0]]] * missing + behind if index >= missing else None


def _is_given(method: Method, node: ast.expr, seen: set[str]) -> bool | None:
    if isinstance(node, ast.Constant):
        return node.value is not None
    if isinstance(node, ast.IfExp):
        sides = {_is_given(method, node.body, seen), _is_given(method, node.orelse, seen)}
        return True if True in sides else None if None in sides else False
    if not isinstance(node, ast.Name) or node.id in seen:
        return True
    found: set[bool | None] = set()
    for binding in method.definitions(node):
        value = binding.value
        if binding.how == "unpack" and value is not None and binding.index is not None:
            elements, _ = tuple_elements(method, value)
            value = elements[binding.index] if elements is not None and binding.index < len(elements) else None
        plain = binding.how in ("assign", "unpack") and isinstance(value, (ast.Constant, ast.Name, ast.IfExp))
        found.add(_is_given(method, value, seen | {node.id}) if plain and value is not None else True)
    return True if True in found else None if None in found or not found else False
