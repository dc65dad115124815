"""What an annotation says: tensor, number, callable ...; jaxtyping's `Float[Tensor, "batch in"]` with its sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "",
    "tensor",
    "int",
    "float",
    "bool",
    "str",
    "callable",
    "module",
    "shape",
    "tensors",
    "table",
    "dtype",
    "device",
    "generator",
]


@dataclass(frozen=True)
class Declared:
    """`elements` is floating, integer, bool or complex where the annotation tells; `dims` are jaxtyping's names."""

    kind: Kind = ""
    optional: bool = False
    elements: str = ""
    dims: tuple[str, ...] | None = None


# Order matters: `list[Tensor]` and `Callable[[Tensor], Tensor]` mention Tensor, too.
_PATTERNS: tuple[tuple[str, Kind], ...] = (
    (r"\bCallable\b", "callable"),
    (r"\b(dict|Dict|Mapping)\[int, [^\]]*Tensor", "table"),
    (r"\b(list|List|tuple|Tuple|Sequence|Iterable)\[[^\]]*Tensor", "tensors"),
    (r"\b(list|List|tuple|Tuple|Sequence|Iterable)\[[^\]]*int|\bSize\b|\b_size", "shape"),
    (r"\bTensor\b|\bParameter\b", "tensor"),
    (r"\bModule\b", "module"),
    (r"\bdtype\b", "dtype"),
    (r"\bdevice\b", "device"),
    (r"\bGenerator\b", "generator"),
    (r"\bbool\b", "bool"),
    (r"\bfloat\b|\bNumber\b|\bScalar\b", "float"),
    (r"\bint\b|\bSymInt\b", "int"),
    (r"\bstr\b|\bLiteral\b", "str"),
)
_ELEMENTS = {"Float": "floating", "Int": "integer", "Bool": "bool", "Complex": "complex", "UInt": "integer"}


def declared_kind(annotation: Any, names: Mapping[str, Any]) -> Declared:
    """Read an annotation, as an object or as the text that `from __future__ import annotations` leaves.

    >>> declared_kind("Float[Tensor, 'batch in']", {}).dims
    ('batch', 'in')
    """
    if hasattr(annotation, "dim_str") and hasattr(annotation, "dtypes"):
        return Declared("tensor", False, _jax_elements(annotation.__name__), tuple(annotation.dim_str.split()))
    text = annotation if isinstance(annotation, str) else _text(annotation)
    optional = bool(re.search(r"\bOptional\b|\bNone\b", text))
    shaped = re.search(r"\b(\w+)\[(?:\w+\.)*(?:Tensor|Array),\s*['\"]([^'\"]*)['\"]\]", text)
    if shaped:
        return Declared("tensor", optional, _jax_elements(shaped[1]), tuple(shaped[2].split()))
    if re.search(r"\b(Long|Int)Tensor\b", text):
        return Declared("tensor", optional, "integer")
    for pattern, kind in _PATTERNS:
        if re.search(pattern, text):
            return Declared(kind, optional)
    return Declared(optional=optional)


def _jax_elements(name: str) -> str:
    return next((kind for word, kind in _ELEMENTS.items() if name.startswith(word)), "")


def _text(annotation: Any) -> str:
    name = getattr(annotation, "__name__", "")
    return name if isinstance(annotation, type) and not hasattr(annotation, "__args__") else str(annotation)
