"""What an annotation or a default says about the value of a parameter."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Literal, NamedTuple

from gradsmith.source.knowledge import CONTAINER_ANNOTATIONS

Kind = Literal[
    "tensor", "int", "float", "number", "bool", "str", "shape", "none", "tuple", "list", "dict",
    "dtype", "device", "module", "callable", "ndarray", "unknown",
]  # fmt: skip
Elements = Literal["", "floating", "integer", "bool"]


class Value(NamedTuple):
    """What is known of an expression.

    `elements` is the sort of numbers in a tensor, `optional` means it may be None as well, `constant` that its
    derivative by any input is zero wherever it exists (masks, indices, noise, sizes), `holds_tensors` that a list,
    tuple or dict is annotated to contain tensors.
    """

    kind: Kind = "unknown"
    elements: Elements = ""
    optional: bool = False
    constant: bool = False
    holds_tensors: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.kind == "tensor"

    @property
    def never_tensor(self) -> bool:
        """Certainly no tensor, and not None either."""
        return self.kind not in ("tensor", "unknown", "none") and not self.optional


UNKNOWN = Value()
NONE = Value("none", optional=True, constant=True)
TENSOR = Value("tensor")
_SCALARS: dict[str, Kind] = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "bytes": "str",
    "complex": "number",
}
_NAMED: dict[str, Kind] = {
    "torch.Size": "shape",
    "torch.dtype": "dtype",
    "torch.device": "device",
    "torch.nn.Module": "module",
    "numpy.ndarray": "ndarray",
    "numbers.Number": "number",
    "SymInt": "int",
    "torch.SymInt": "int",
}
# jaxtyping and torchtyping: Float[Tensor, "batch features"].
_JAXTYPING: dict[str, Elements] = {
    "Float": "floating", "Float16": "floating", "Float32": "floating", "Float64": "floating", "BFloat16": "floating",
    "Complex": "floating", "Int": "integer", "Int8": "integer", "Int32": "integer", "Int64": "integer",
    "UInt8": "integer",
    "Integer": "integer", "UInt": "integer", "Bool": "bool", "Shaped": "", "Num": "", "Inexact": "floating", "Real": "",
}  # fmt: skip
_TENSOR_TYPES: dict[str, Elements] = {
    "Tensor": "", "FloatTensor": "floating", "DoubleTensor": "floating", "HalfTensor": "floating",
    "LongTensor": "integer",
    "IntTensor": "integer", "BoolTensor": "bool", "ByteTensor": "integer", "Parameter": "floating",
}  # fmt: skip

Dotted = Callable[[ast.AST | None], str | None]


def annotated(node: ast.expr | None, dotted: Dotted) -> Value:
    """The value an annotation promises."""
    if node is None:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        if node.value is None:
            return NONE
        if isinstance(node.value, str):
            try:
                return annotated(ast.parse(node.value, mode="eval").body, dotted)
            except (SyntaxError, ValueError):
                return UNKNOWN
        return UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return either(annotated(node.left, dotted), annotated(node.right, dotted))
    if isinstance(node, ast.Subscript):
        return _generic(node, dotted)
    name = dotted(node) or ""
    last = name.rpartition(".")[2]
    if last in _TENSOR_TYPES and ("." not in name or "torch" in name or name.startswith((".", "jaxtyping"))):
        return Value("tensor", _TENSOR_TYPES[last])
    if name in _SCALARS:
        return Value(_SCALARS[name], constant=True)
    if name in _NAMED:
        return Value(_NAMED[name], constant=True)
    if last in CONTAINER_ANNOTATIONS:
        return Value(_container(last))
    return Value("callable") if last == "Callable" else UNKNOWN


def _generic(node: ast.Subscript, dotted: Dotted) -> Value:
    last = (dotted(node.value) or "").rpartition(".")[2]
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not inner:
        return UNKNOWN
    if last == "Optional":
        return annotated(inner[0], dotted)._replace(optional=True)
    if last == "Union":
        out = annotated(inner[0], dotted)
        for part in inner[1:]:
            out = either(out, annotated(part, dotted))
        return out
    if last in ("Annotated", "Final"):
        return annotated(inner[0], dotted)
    if last in _JAXTYPING and annotated(inner[0], dotted).is_tensor:
        return Value("tensor", _JAXTYPING[last])
    if last == "Callable":
        return Value("callable")
    if last in CONTAINER_ANNOTATIONS:
        parts = [annotated(p, dotted) for p in inner]
        return Value(_container(last), holds_tensors=any(p.is_tensor for p in parts))
    return UNKNOWN


def _container(name: str) -> Kind:
    if name in ("tuple", "Tuple"):
        return "tuple"
    return "dict" if name in ("dict", "Dict", "Mapping") else "list"


def constant(value: object) -> Value:
    """The value of a literal."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return Value("bool", constant=True)
    if isinstance(value, int):
        return Value("int", constant=True)
    if isinstance(value, float):
        return Value("float", constant=True)
    if isinstance(value, (str, bytes)):
        return Value("str", constant=True)
    return Value("number", constant=True) if isinstance(value, complex) else UNKNOWN


def either(a: Value, b: Value) -> Value:
    """What is known of something that is one or the other."""
    if a == b:
        return a
    if a.kind == "none" or b.kind == "none":
        other = b if a.kind == "none" else a
        return other._replace(optional=True)
    numbers = {"int", "float", "number", "bool"}
    if a.kind == b.kind:
        kind: Kind = a.kind
    elif a.kind in numbers and b.kind in numbers:
        kind = "number"
    else:
        kind = "unknown"
    return Value(
        kind,
        a.elements if a.elements == b.elements else "",
        a.optional or b.optional,
        a.constant and b.constant,
        a.holds_tensors or b.holds_tensors,
    )
