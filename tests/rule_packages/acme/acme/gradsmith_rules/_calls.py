"""What the rules share: a module whose name begins with _ is no rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any


def calls_in_backward(function: Any, name: str) -> Iterator[ast.Call]:
    """Calls of `name`, or of a method of that name, in backward."""
    backward = function.backward
    for node in ast.walk(backward.node) if backward is not None else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
            yield node
