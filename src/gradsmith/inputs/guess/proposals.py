"""Values to try for one input, the likeliest first. Shapes are relative to a frame, so that inputs fit together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.subject.wrapped import Wrapped

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Frame:
    """The sizes of one attempt: the main input is `(*lead, d)`, a weight maps `d` to `o`."""

    lead: Shape
    d: int
    o: int = 6
    apart: bool = False  # of documented shapes, the one where `batch*time` are dimensions of their own

    def shape(self, form: str) -> Shape | None:
        """`form` is a word of `_FORMS`, or literal sizes such as `2x3`; None where this frame has no such shape."""
        if form in _FORMS:
            return _FORMS[form](self)
        joined, _, apart = form.partition("/")
        form = apart if apart and self.apart else joined
        return () if form == "scalar" else tuple(int(n) for n in form.split("x"))

    @property
    def x(self) -> Shape:
        return (*self.lead, self.d)


def _convolution(frame: Frame) -> Shape | None:
    rank = len(frame.x) - 2
    return (frame.o, frame.x[1], *(3, 2, 2)[:rank]) if 1 <= rank <= 3 else None


def _batched(frame: Frame, rows: int, columns: int) -> Shape:
    return (*frame.lead[:-1], rows, columns)


_FORMS: dict[str, Callable[[Frame], Shape | None]] = {
    "x": lambda f: f.x,
    "lead": lambda f: f.lead or None,
    "d": lambda f: (f.d,),
    "o": lambda f: (f.o,),
    "scalar": lambda f: (),
    "one": lambda f: (1,),
    "one one": lambda f: (1, 1),
    "o d": lambda f: (f.o, f.d),
    "d o": lambda f: (f.d, f.o),
    "d d": lambda f: (f.d, f.d),
    "lead o": lambda f: (*f.lead, f.o) if f.lead else None,
    "lead 1": lambda f: (*f.lead, 1) if f.lead else None,
    "rows d": lambda f: _batched(f, 5, f.d) if f.lead else None,
    "batch d o": lambda f: _batched(f, f.d, f.o) if len(f.lead) > 1 else None,
    "batch d d": lambda f: _batched(f, f.d, f.d) if len(f.lead) > 1 else None,
    "lead lead": lambda f: _batched(f, f.lead[-1], f.lead[-1]) if f.lead else None,
    "first": lambda f: f.lead[:1] or None,
    "channels": lambda f: (f.x[1],) if len(f.x) > 2 else None,
    "convolution": _convolution,
    "3 d": lambda f: (3 * f.d, f.d),
    "4 d": lambda f: (4 * f.d, f.d),
    # Gated cells: the gates of a state of size o, side by side.
    "3o d": lambda f: (3 * f.o, f.d),
    "4o d": lambda f: (4 * f.o, f.d),
    "3o o": lambda f: (3 * f.o, f.o),
    "4o o": lambda f: (4 * f.o, f.o),
    "o o": lambda f: (f.o, f.o),
    "3o": lambda f: (3 * f.o,),
    "4o": lambda f: (4 * f.o,),
    "first o": lambda f: (f.lead[0], f.o) if len(f.lead) > 1 else None,
    "second o": lambda f: (f.lead[1], f.o) if len(f.lead) > 1 else None,
}

# Sizes that differ, none of them square, at least two dimensions first; then what fewer Functions need.
FRAMES = (
    Frame((3,), 4),
    Frame((2, 3), 4),
    Frame((2, 4, 5), 7),
    Frame((4,), 4, 4),
    Frame((), 5),
    Frame((2, 2, 3), 4),
    Frame((2, 8), 16, 32),
    Frame((2, 3, 4, 5), 6),
)


@dataclass(frozen=True)
class Proposal:
    """One value for one input: a tensor of this kind, form and domain, or a plain value."""

    cost: float
    kind: str = "value"  # floating, integer, bool, complex, tensors, integers (lists), table, wrapped, value
    form: str = ""
    domain: str = "normal"
    value: Any = None  # of lists: how many
    gradient: bool = False
    ndim: int | None = None  # what the body demands
    least: int = 0  # and how many dimensions it reads
    dtype: torch.dtype | None = None  # what forward asks for instead of the dtype of all others

    @property
    def is_tensor(self) -> bool:
        return self.kind != "value"

    def drawn_from(self, domain: str) -> Proposal:
        return replace(self, domain=domain)


@dataclass(frozen=True)
class Recipe:
    """How a tensor subclass is built: `make(*parts)`."""

    make: Callable[..., Any]
    parts: tuple[Proposal, ...]


@dataclass(frozen=True)
class Sparse:
    """Builds a class of numbers, or of numbers and a mask, in coordinates instead of dense."""

    cls: type[Tensor]

    def __call__(self, data: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return self.cls(data.to_sparse().coalesce())
        kept = mask.to_sparse().coalesce()
        return self.cls(data.sparse_mask(kept), kept)

    def __repr__(self) -> str:
        name = self.cls.__name__
        return f"lambda data, mask: {name}(data.sparse_mask(kept := mask.to_sparse().coalesce()), kept)"


@dataclass(frozen=True, eq=False)
class AtEntries:
    """Builds a sparse matrix of some entries of a dense one: where they are never changes, whatever the numbers."""

    layout: torch.layout
    where: Tensor

    def __call__(self, data: Tensor) -> Tensor:
        entries = self.where.to(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CSR is in beta
            if self.layout is torch.sparse_coo:
                rows = entries.to_sparse().indices()
                return torch.sparse_coo_tensor(rows, data[entries > 0], data.shape, is_coalesced=True)
            rows = entries.to_sparse_csr()
            return torch.sparse_csr_tensor(rows.crow_indices(), rows.col_indices(), data[entries > 0], data.shape)


@dataclass(frozen=True)
class OnDiagonals:
    """The same of the three diagonals of a matrix."""

    layout: torch.layout

    def __call__(self, data: Tensor) -> Tensor:
        return AtEntries(self.layout, torch.ones_like(data).tril(1).triu(-1))(data)

    def __repr__(self) -> str:
        name = "to_sparse" if self.layout is torch.sparse_coo else "to_sparse_csr"
        return f"lambda data: data.tril(1).triu(-1).{name}()"


LISTS = {"tensors": "floating", "integers": "integer"}


def made(proposal: Proposal, frame: Frame, dtype: torch.dtype, generator: torch.Generator) -> Any:
    """The value, or NotImplemented where the frame has no such shape."""
    if not proposal.is_tensor:
        return proposal.value
    if proposal.kind in LISTS:
        pair = [replace(proposal, kind=LISTS[proposal.kind])] * (proposal.value or 2)
        values = [made(p, frame, dtype, generator) for p in pair]
        return NotImplemented if any(v is NotImplemented for v in values) else values
    if proposal.kind == "table":
        value = made(replace(proposal, kind="floating"), frame, dtype, generator)
        return value if value is NotImplemented else {proposal.value: value}
    if proposal.kind == "wrapped":
        recipe: Recipe = proposal.value
        inner = [replace(p, gradient=proposal.gradient and p.kind in ("floating", "table")) for p in recipe.parts]
        parts = tuple(made(p, frame, dtype, generator) for p in inner)
        return NotImplemented if any(p is NotImplemented for p in parts) else Wrapped(recipe.make, parts)
    shape = frame.shape(proposal.form)
    if shape is None or len(shape) < proposal.least or (proposal.ndim is not None and len(shape) != proposal.ndim):
        return NotImplemented
    return tensor(proposal, shape, dtype, generator)


def tensor(proposal: Proposal, shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    if proposal.kind == "integer" and proposal.domain == "reversed":
        # Distinct, and its own inverse: good as an index, and as the inverse of an index.
        return torch.arange(shape[-1]).flip(0).expand(shape).clone() if shape else torch.tensor(0)
    if proposal.kind == "integer" and proposal.domain == "ramp":
        end = shape[0] if shape else 1
        return torch.tensor([0, 1, end] if end > 1 else [0, end])
    if proposal.kind == "integer":
        drawn = torch.randint(0, 2 if proposal.domain == "binary" else 3, shape, generator=generator)
        return drawn if proposal.dtype is None else drawn.to(proposal.dtype)
    if proposal.kind == "bool":
        drawn = torch.rand(shape, generator=generator) > 0.4
        if drawn.ndim and drawn.numel():
            drawn.view(-1)[0] = True
        return drawn
    if proposal.kind == "complex":
        made = torch.randn(shape, dtype=torch.complex128, generator=generator)
    else:
        made = DOMAINS[proposal.domain](shape, dtype, generator)
    made = made if proposal.dtype is None else made.to(proposal.dtype)
    return made.requires_grad_(proposal.gradient)


def _normal(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=generator)


def _positive(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.rand(shape, dtype=dtype, generator=generator) + 0.5


def _negative(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return -_positive(shape, dtype, generator)


def _unit(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.rand(shape, dtype=dtype, generator=generator) * 0.8 + 0.1


def _wide(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return 3 * torch.randn(shape, dtype=dtype, generator=generator)


def _definite(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    drawn = torch.randn(shape, dtype=dtype, generator=generator)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return drawn.abs() + 0.5
    return drawn @ drawn.mT + shape[-1] * torch.eye(shape[-1], dtype=dtype)


def _triangular(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    drawn = _definite(shape, dtype, generator)
    return torch.linalg.cholesky(drawn) if len(shape) > 1 and shape[-1] == shape[-2] else drawn


def _negative_definite(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return -_definite(shape, dtype, generator)


def _binary(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return (torch.rand(shape, generator=generator) > 0.5).to(dtype)


DOMAINS: dict[str, Callable[[Shape, torch.dtype, torch.Generator], Tensor]] = {
    "normal": _normal,
    "positive": _positive,
    "unit": _unit,
    "wide": _wide,
    "definite": _definite,
    "triangular": _triangular,
    "negative definite": _negative_definite,
    "binary": _binary,
    "negative": _negative,
}


def ranked(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Without repetitions, cheapest first."""
    kept: list[Proposal] = []
    for proposal in sorted(proposals, key=lambda p: p.cost):
        if not any(_same(proposal, other) for other in kept):
            kept.append(proposal)
    return kept


def _same(a: Proposal, b: Proposal) -> bool:
    if a.is_tensor or b.is_tensor:
        return (a.kind, a.form, a.domain) == (b.kind, b.form, b.domain)
    return type(a.value) is type(b.value) and repr(a.value) == repr(b.value)
