"""Thin Functions around built-in operations, whose backward is autograd's own, are free of errors at level standard."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import gradsmith as gs


def thin(op):
    """A Function whose backward differentiates `op` by autograd, on inputs it recomputes from."""

    class Thin(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return op(*inputs)

        @staticmethod
        def backward(ctx, *grad_outputs):
            wanted = [x for x, needed in zip(ctx.saved_tensors, ctx.needs_input_grad) if needed]
            with torch.enable_grad():
                fresh = [
                    x if x.requires_grad else x.detach().requires_grad_(n)
                    for x, n in zip(ctx.saved_tensors, ctx.needs_input_grad)
                ]
                outputs = op(*fresh)
                asked = [x for x, needed in zip(fresh, ctx.needs_input_grad) if needed]
                grads = iter(
                    torch.autograd.grad(
                        outputs,
                        asked,
                        grad_outputs,
                        create_graph=torch.is_grad_enabled() and bool(wanted),
                        allow_unused=True,
                    )
                )
            return tuple(next(grads) if needed else None for needed in ctx.needs_input_grad)

    return Thin


def x(*shape: int, low: float = -2.0, high: float = 2.0) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape) + 7)
    drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
    return (low + (high - low) * drawn).requires_grad_()


def pos(*shape: int) -> Tensor:
    return x(*shape, low=0.3, high=2.0)


OPS = {
    **{
        name: (getattr(torch, name), lambda: (x(4, 3),))
        for name in [
            "sin",
            "cos",
            "tanh",
            "sigmoid",
            "exp",
            "expm1",
            "erf",
            "atan",
            "asinh",
            "sinh",
            "cosh",
            "abs",
            "square",
            "relu",
            "neg",
        ]
    },
    **{
        name: (getattr(torch, name), lambda: (pos(4, 3),))
        for name in ["log", "log1p", "log2", "sqrt", "rsqrt", "reciprocal", "lgamma", "digamma"]
    },
    **{
        name: (getattr(F, name), lambda: (x(4, 3),))
        for name in [
            "gelu",
            "silu",
            "softplus",
            "mish",
            "elu",
            "selu",
            "celu",
            "hardswish",
            "logsigmoid",
            "leaky_relu",
            "softsign",
            "tanhshrink",
        ]
    },
    "softmax": (lambda a: torch.softmax(a, -1), lambda: (x(4, 3),)),
    "log_softmax": (lambda a: torch.log_softmax(a, -1), lambda: (x(4, 3),)),
    "logsumexp": (lambda a: torch.logsumexp(a, -1), lambda: (x(4, 3),)),
    "cumsum": (lambda a: torch.cumsum(a, -1), lambda: (x(4, 3),)),
    "cumprod": (lambda a: torch.cumprod(a, -1), lambda: (pos(4, 3),)),
    "prod": (lambda a: torch.prod(a, -1), lambda: (pos(4, 3),)),
    "mean": (lambda a: a.mean(0), lambda: (x(4, 3),)),
    "sum": (lambda a: a.sum(), lambda: (x(4, 3),)),
    "var": (lambda a: a.var(-1), lambda: (x(4, 3),)),
    "std": (lambda a: a.std(-1), lambda: (x(4, 3),)),
    "norm": (lambda a: torch.linalg.vector_norm(a, dim=-1), lambda: (x(4, 3),)),
    "amax": (lambda a: a.amax(-1), lambda: (x(4, 3),)),
    "median": (lambda a: a.median(-1).values, lambda: (x(4, 3),)),
    "sort": (lambda a: a.sort(-1).values, lambda: (x(4, 3),)),
    "flip": (lambda a: a.flip(0), lambda: (x(4, 3),)),
    "roll": (lambda a: a.roll(1, 0), lambda: (x(4, 3),)),
    "transpose": (lambda a: a.transpose(-1, -2).contiguous(), lambda: (x(4, 3),)),
    "clamp": (lambda a: a.clamp(-1, 1), lambda: (x(4, 3),)),
    "matmul": (torch.matmul, lambda: (x(4, 3), x(3, 5))),
    "linear": (F.linear, lambda: (x(4, 3), x(5, 3), x(5))),
    "bmm": (torch.bmm, lambda: (x(2, 4, 3), x(2, 3, 5))),
    "mul": (torch.mul, lambda: (x(4, 3), x(3))),
    "div": (torch.div, lambda: (x(4, 3), pos(4, 3))),
    "pow": (torch.pow, lambda: (pos(4, 3), x(4, 3))),
    "atan2": (torch.atan2, lambda: (pos(4, 3), pos(4, 3))),
    "layer_norm": (lambda a, w, b: F.layer_norm(a, a.shape[-1:], w, b), lambda: (x(4, 6), pos(6), x(6))),
    "mse_loss": (F.mse_loss, lambda: (x(4, 3), x(4, 3))),
    "conv1d": (F.conv1d, lambda: (x(2, 3, 8), x(4, 3, 3))),
    "inverse": (lambda a: torch.linalg.inv(a + 5 * torch.eye(a.shape[-1], dtype=a.dtype)), lambda: (x(3, 3),)),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), lambda: (x(4, 3), x(3, 2))),
    "outer": (torch.outer, lambda: (x(4), x(3))),
}
SAMPLE = ("sin", "sqrt", "softmax", "amax", "linear", "mul", "norm")


def test_there_are_sixty_of_them() -> None:
    assert len(OPS) >= 60


def clean(name: str) -> None:
    op, inputs = OPS[name]
    report = gs.check(thin(op), *inputs())
    assert not report.errors, "\n".join(f"{f.rule}: {f.message}" for f in report.errors)
    assert report.subjects[0].verdict == "verified", report.subjects[0].reason


@pytest.mark.parametrize("name", SAMPLE)
def test_a_thin_function_is_free_of_errors(name: str) -> None:
    clean(name)


@pytest.mark.deep
@pytest.mark.parametrize("name", [n for n in OPS if n not in SAMPLE])
def test_every_thin_function_is_free_of_errors(name: str) -> None:
    clean(name)
