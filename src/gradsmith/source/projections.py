"""Linear maps in a layer: `self.linear(z)`, `z @ self.weight`, `F.linear(z, self.weight, self.bias)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.layer import LayerModel
    from gradsmith.source.method import Method

_PRODUCTS = ("matmul", "mm")


def projected(layer: LayerModel, method: Method, node: ast.expr) -> ast.expr | None:
    """What is mapped; None where the expression is no linear map by weights of this layer."""
    node = method.resolve(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return _other(layer, [node.left, node.right])
    if not isinstance(node, ast.Call) or node.keywords or not isinstance(node.func, ast.Attribute):
        return None
    if _own(node.func):
        return node.args[0] if len(node.args) == 1 and layer.built(node.func.attr) == "torch.nn.Linear" else None
    of_torch = (method.dotted(node.func) or "").startswith("torch.")
    operands = node.args if of_torch else [node.func.value, *node.args]
    op = method.op(node)
    if op in _PRODUCTS and len(operands) == 2:
        return _other(layer, operands)
    if op == "linear" and len(operands) in (2, 3) and all(own_parameter(layer, w) for w in operands[1:]):
        return operands[0]
    return None


def own_parameter(layer: LayerModel, node: ast.expr) -> bool:
    """`self.weight`, which is an nn.Parameter, or its transpose."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("t", "transpose"):
        node = node.func.value
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        node = node.value
    return isinstance(node, ast.Attribute) and _own(node) and (layer.built(node.attr) or "").endswith(".Parameter")


def _other(layer: LayerModel, operands: list[ast.expr]) -> ast.expr | None:
    weights = [own_parameter(layer, operand) for operand in operands]
    return operands[weights.index(False)] if sum(weights) == 1 else None


def _own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"
