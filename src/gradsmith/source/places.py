"""Where in a Function something is written that a check has to say something about: a gradient, a save, a mark, a method."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gradsmith.source.model import FunctionModel

Part = Literal["gradient", "backward", "save", "mark", "kept"]


def line_of_part(model: FunctionModel, part: Part, name: str | None) -> int | None:
    """The line of a part of a Function; None where the class inherits it, or has more than one of the kind.

    "gradient" is what backward computes for the input `name`, else the head of backward; "save" is the one call of
    save_for_backward, "mark" the one of mark_non_differentiable, "kept" the one assignment to an attribute of ctx.
    """
    if part == "gradient" and name is not None and (line := line_of_gradient(model, name)) is not None:
        return line
    found: list[ast.Attribute] | list[ast.Call]
    if part == "save":
        found = [save.node for save in model.saves]
    elif part == "kept":
        found = [write.node for write in model.ctx_writes]
    elif part == "mark":
        found = [mark.node for mark in model.marks if mark.name == "mark_non_differentiable"]
    else:
        if model.backward is None or model.owner(model.backward.node) is not model.file:
            return None
        return model.backward.node.lineno
    return found[0].lineno if len(found) == 1 and model.owner(found[0]) is model.file else None


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
