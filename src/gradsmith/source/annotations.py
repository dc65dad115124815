"""What an annotation or a default says about the value of a parameter.

The one table of annotations: lint reads it for the text of a signature, a guess for the same text or, where there is none,
for the object that Python made of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Literal, NamedTuple

from gradsmith.source.knowledge import CONTAINER_ANNOTATIONS

Kind = Literal[
    "tensor", "int", "float", "number", "bool", "str", "shape", "none", "tuple", "list", "dict",
    "dtype", "device", "generator", "module", "callable", "ndarray", "unknown",
]  # fmt: skip
Elements = Literal["", "floating", "integer", "bool", "complex"]


class Value(NamedTuple):
    """What is known of an expression.

    `elements` is the sort of numbers in a tensor, `optional` means it may be None as well, `constant` that its
    derivative by any input is zero wherever it exists (masks, indices, noise, sizes), `holds_tensors` that a list,
    tuple or dict is annotated to contain tensors.

    `parts` are the values that an annotation names inside: those of `dict[str, float]` are a str and a float. Of an
    unknown value they are what it may be: `Union[float, Tensor]`. `dims` are the dimensions that jaxtyping names, `options`
    the values that a Literal allows.
    """

    kind: Kind = "unknown"
    elements: Elements = ""
    optional: bool = False
    constant: bool = False
    holds_tensors: bool = False
    parts: tuple[Value, ...] = ()
    dims: tuple[str, ...] | None = None
    options: tuple[object, ...] = ()

    @property
    def is_tensor(self) -> bool:
        return self.kind == "tensor"

    @property
    def never_tensor(self) -> bool:
        """Certainly no tensor, and not None either."""
        if self.kind == "unknown":
            return bool(self.parts) and not self.optional and all(part.never_tensor for part in self.parts)
        return self.kind not in ("tensor", "none") and not self.optional


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
    "torch.Generator": "generator",
    "torch._C.Generator": "generator",
    "torch.nn.Module": "module",
    "torch.nn.modules.module.Module": "module",
    "numpy.ndarray": "ndarray",
    "numbers.Number": "number",
    "torch.types.Number": "number",
    "torch.types._size": "shape",
    "SymInt": "int",
    "torch.SymInt": "int",
}
# jaxtyping and torchtyping: Float[Tensor, "batch features"].
_JAXTYPING: dict[str, Elements] = {
    "Float": "floating", "Float16": "floating", "Float32": "floating", "Float64": "floating", "BFloat16": "floating",
    "Complex": "complex", "Int": "integer", "Int8": "integer", "Int32": "integer", "Int64": "integer",
    "UInt8": "integer",
    "Integer": "integer", "UInt": "integer", "Bool": "bool", "Shaped": "", "Num": "", "Inexact": "floating", "Real": "",
}  # fmt: skip
TENSOR_TYPES: dict[str, Elements] = {
    "Tensor": "", "FloatTensor": "floating", "DoubleTensor": "floating", "HalfTensor": "floating",
    "BFloat16Tensor": "floating", "LongTensor": "integer", "IntTensor": "integer", "ShortTensor": "integer",
    "CharTensor": "integer", "ByteTensor": "integer", "BoolTensor": "bool", "Parameter": "floating",
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
        return _union([annotated(node.left, dotted), annotated(node.right, dotted)])
    if isinstance(node, ast.Subscript):
        return _generic(node, dotted)
    name = dotted(node) or ""
    last = name.rpartition(".")[2]
    if last in TENSOR_TYPES and ("." not in name or "torch" in name or name.startswith((".", "jaxtyping"))):
        return Value("tensor", TENSOR_TYPES[last])
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
        return _union([annotated(part, dotted) for part in inner])
    if last == "Literal":
        options = [part.value for part in inner if isinstance(part, ast.Constant)]
        return _union([constant(option) for option in options])._replace(options=tuple(options))
    if last in ("Annotated", "Final"):
        return annotated(inner[0], dotted)
    if last in _JAXTYPING and annotated(inner[0], dotted).is_tensor:
        dims = inner[1].value if len(inner) > 1 and isinstance(inner[1], ast.Constant) else None
        return Value("tensor", _JAXTYPING[last], dims=tuple(dims.split()) if isinstance(dims, str) else None)
    if last == "Callable":
        return Value("callable")
    if last in CONTAINER_ANNOTATIONS:
        parts = tuple(annotated(p, dotted) for p in inner if not _is_ellipsis(p))
        return Value(_container(last), holds_tensors=any(p.is_tensor for p in parts), parts=parts)
    return UNKNOWN


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _union(values: Sequence[Value]) -> Value:
    """One of several: what they have in common, and what they are one by one where that is nothing."""
    if not values:
        return UNKNOWN
    out = values[0]
    for value in values[1:]:
        out = either(out, value)
    if out.kind != "unknown":
        return out
    flat = [part for value in values for part in ((value.parts if value.kind == "unknown" else ()) or (value,))]
    return out._replace(parts=tuple(dict.fromkeys(part for part in flat if part.kind != "none")))


def of_live(annotation: object, names: Mapping[str, object]) -> Value:
    """The value that a loaded annotation promises: the object, or the text of one and the names around it.

    >>> of_live(list[str], {}).kind, of_live("Float[Tensor, 'batch in']", {}).dims
    ('list', ('batch', 'in'))
    """

    def dotted(node: ast.AST | None) -> str | None:
        text = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        first, dot, rest = text.partition(".")
        known = names.get(first)
        if isinstance(known, ModuleType):
            return f"{known.__name__}{dot}{rest}"
        return f"{_name_of(known)}{dot}{rest}" if isinstance(known, type) else text or None

    return annotated(ast.Constant(annotation if isinstance(annotation, str) else _written(annotation)), dotted)


def _written(annotation: object) -> str:
    """A loaded annotation as text."""
    plain = isinstance(annotation, type) and not getattr(annotation, "__args__", ())
    return _name_of(annotation) if isinstance(annotation, type) and plain else repr(annotation)


def _name_of(cls: type) -> str:
    """jaxtyping makes a class of each annotation and calls it by what was written."""
    if cls.__module__ == "builtins" or not cls.__qualname__.replace(".", "").isidentifier():
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


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
