"""Where a gradient is written: the returned expression, or the assignment that it comes from."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.model import FunctionModel


def line_of_gradient(model: FunctionModel, name: str) -> int | None:
    """The line in which backward computes what it returns for this input; None where the source does not say.

    Where several returns give a gradient, it is the first: which of them ran is not known from the source.
    """
    backward = model.backward
    index = next((p.index for p in model.inputs if p.name == name and p.kind == "positional"), None)
    if backward is None or index is None or model.owner(backward.node) is not model.file:
        return None
    given = [item.elements for item in backward.returns if item.elements is not None and index < len(item.elements)]
    for elements in given:
        node = elements[index]
        if not (isinstance(node, ast.Constant) and node.value is None):
            return backward.resolve(node).lineno
    return given[0][index].lineno if given else None
