"""What a method returns, on every path: return statements with their elements where the source shows them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gradsmith.source.method import Method


class Return(NamedTuple):
    """One return statement.

    `elements` are the returned values one by one, when their number is certain: a literal tuple, sums and multiples
    of literal tuples, a name assigned once to one of these, or a single tensor. None when the source does not say.
    `at_least` is a lower bound in every case (`return a, *rest` has 1). `is_tuple` is False for a single value.
    """

    node: ast.Return
    value: ast.expr | None
    elements: list[ast.expr] | None
    at_least: int
    is_tuple: bool


def returns_nothing(method: Method) -> bool:
    """Whether what a method gives back is None on every path, and it does not raise on all of them.

    (A body that only raises says that there is no such thing; an empty one is a stub.)
    """
    if method.is_stub or method.raises_only or any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in method.nodes):
        return False
    values = [r.value for r in method.returns if r.value is not None]
    return all(isinstance(value, ast.Constant) and value.value is None for value in values)


def read_returns(method: Method) -> list[Return]:
    found: list[Return] = []
    stack: list[ast.AST] = _reached(method.node.body)[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return):
            found.append(_read(method, node))
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            blocks = [value if isinstance(value, list) else [value] for _, value in ast.iter_fields(node)]
            stack.extend(reversed([child for block in blocks for child in _reached(block)]))
    return found


def _reached(block: Sequence[object]) -> list[ast.AST]:
    """The nodes of a block up to one after which nothing runs: `raise NotImplementedError` before an old return."""
    nodes = [node for node in block if isinstance(node, ast.AST)]
    end = next((i for i, node in enumerate(nodes) if isinstance(node, (ast.Return, ast.Raise))), len(nodes))
    return nodes[: end + 1]


def _read(method: Method, node: ast.Return) -> Return:
    if node.value is None:
        return Return(node, None, [ast.copy_location(ast.Constant(None), node)], 1, False)
    value = method.resolve(node.value)
    elements, at_least = tuple_elements(method, value)
    if elements is not None or at_least:
        return Return(node, value, elements, at_least, True)
    if isinstance(value, ast.List):
        return Return(node, value, None, 0, True)
    inferred = method.value(node.value)
    single = inferred.is_tensor or inferred.kind == "none"
    return Return(node, value, [node.value] if single else None, 1 if single else 0, False)


def tuple_elements(method: Method, node: ast.expr) -> tuple[list[ast.expr] | None, int]:
    """The elements of a tuple the source spells out, and how many there are at least."""
    node = method.resolve(node)
    if isinstance(node, ast.Tuple):
        out: list[ast.expr] | None = []
        at_least = 0
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner, count = tuple_elements(method, element.value)
                at_least += count
                out = out + inner if out is not None and inner is not None else None
            else:
                at_least += 1
                if out is not None:
                    out.append(element)
        return out, at_least
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, at_left = tuple_elements(method, node.left)
        right, at_right = tuple_elements(method, node.right)
        return (left + right if left is not None and right is not None else None), at_left + at_right
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for part, times in ((node.left, node.right), (node.right, node.left)):
            if isinstance(times, ast.Constant) and isinstance(times.value, int) and 0 <= times.value < 1000:
                inner, count = tuple_elements(method, part)
                if inner is not None:
                    return inner * times.value, count * times.value
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "tuple"
        and len(node.args) == 1
    ):
        literal = node.args[0]  # not what a name holds: a list may have grown since
        if isinstance(literal, (ast.Tuple, ast.List)):
            return tuple_elements(method, ast.Tuple(literal.elts, ast.Load()))
    return None, 0
