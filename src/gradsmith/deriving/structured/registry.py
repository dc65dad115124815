"""Where derivatives that are more than one line of text are found by name: each yields (operand, gradient) pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradsmith.deriving.node import Node

Pairs = Iterator[tuple[Any, Any]]
RULES: dict[str, Callable[[Node, Any], Pairs]] = {}


def rule(function: Callable[[Node, Any], Pairs]) -> Callable[[Node, Any], Pairs]:
    RULES[function.__name__.rstrip("_")] = function
    return function
