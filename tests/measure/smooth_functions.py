"""Random smooth functions with inputs of any size, and how to make Functions of them whose backward is right or wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from gradsmith.lab import resolve
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target

EVERYWHERE = ("sin", "exp", "square", "product", "matmul", "centred", "polynomial")
REAL_ONLY = ("tanh", "softmax", "logsumexp")  # on the complex plane they have poles or no order


@dataclass(frozen=True)
class Smooth:
    """x -> outer * layers(frequency * x / size): smooth, and as steep as `frequency` says."""

    layers: tuple[str, ...]
    count: int
    size: float
    frequency: float
    outer: float
    seed: int
    rows: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.count) if self.rows else (self.count,)

    def __call__(self, x: Tensor) -> Tensor:
        t = torch.sin(x * (self.frequency / self.size)) + x / self.size
        for place, layer in enumerate(self.layers):
            t = self._layer(layer, place, t)
        return t * self.outer

    def _layer(self, kind: str, place: int, t: Tensor) -> Tensor:
        if kind == "exp":
            return torch.exp(torch.sin(t))
        if kind == "square":
            return t * t / 2
        if kind == "product":
            return t * torch.sin(t.flip(-1))
        if kind == "matmul":
            return t @ self.draw(place, t.dtype, (t.shape[-1], 3)) / 2
        if kind == "centred":
            return t - t.mean()
        if kind == "polynomial":
            return 0.3 - t + 0.2 * t**3
        if kind == "softmax":
            return torch.softmax(t, -1)
        if kind == "logsumexp":
            return torch.logsumexp(t, -1, keepdim=True)
        return torch.sin(t) if kind == "sin" else torch.tanh(t)

    def draw(self, place: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        wide = torch.complex128 if dtype.is_complex else torch.float64
        generator = torch.Generator().manual_seed(self.seed + 17 * place)
        return torch.randn(shape, dtype=wide, generator=generator).to(dtype)

    def point(self, dtype: torch.dtype) -> Tensor:
        return self.draw(101, dtype, self.shape) * self.size


@st.composite
def smooth(draw: st.DrawFn, layers: tuple[str, ...] = EVERYWHERE + REAL_ONLY, steepest: int = 3) -> Smooth:
    """Sizes of inputs and outputs from 1e-6 to 1e6, frequencies up to 10**steepest."""
    power = st.floats(-6, 6).map(lambda p: 10.0**p)
    return Smooth(
        tuple(draw(st.lists(st.sampled_from(layers), min_size=1, max_size=3))),
        draw(st.integers(1, 6)),
        draw(power),
        10.0 ** draw(st.integers(-2, steepest)),
        draw(power),
        draw(st.integers(0, 10**6)),
        draw(st.integers(0, 2)),
    )


DTYPES = {"float64": torch.float64, "float32": torch.float32, "complex128": torch.complex128}


def functions(dtype: str, steepest: int = 5) -> st.SearchStrategy[Smooth]:
    """As steep as the precision can resolve: float32 has 7 digits for the input and for the step."""
    if dtype == "complex128":
        return smooth(EVERYWHERE, steepest=0)
    return smooth(steepest=min(steepest, 5 if dtype == "float64" else 1))


def truth(function: Callable[[Tensor], Tensor], x: Tensor, v: Tensor) -> Tensor:
    """The gradient of <v, function(x)>, by autograd in double precision."""
    wide = x.detach().to(torch.complex128 if x.is_complex() else torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(function(wide), wide, v.to(wide.dtype))
    return gradient


def function_of(
    forward: Callable[[Tensor], Tensor],
    *,
    derivative_of: Callable[[Tensor], Tensor] | None = None,
    spoil: Callable[[Tensor], Tensor] = lambda gradient: gradient,
    opaque: bool = False,
) -> type[torch.autograd.Function]:
    """A Function with the derivative of `derivative_of` (or of forward itself), spoiled; `opaque` forwards leave autograd."""

    class Subject(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return forward(x.detach()).detach() if opaque else forward(x)

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                own = x.detach().requires_grad_()
                (gradient,) = torch.autograd.grad((derivative_of or forward)(own), own, grad_output)
            return spoil(gradient)

    return Subject


def subject(function: type[torch.autograd.Function], x: Tensor) -> tuple[Target, Arguments]:
    return resolve(function), Arguments.of([x.detach().requires_grad_()], names=["x"])
