"""Triton kernels: memory and races, seen by the guard over Triton's interpreter; four of them in the source alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradsmith.findings import Finding, Severity
    from gradsmith.lab import Lab
    from gradsmith.lab.triton.events import WrongAccess

# What a wrong access does to the numbers is a symptom of it.
SYMPTOMS = (
    "wrong-gradient",
    "nonfinite-gradient",
    "uninitialised-memory",
    "nondeterministic",
    "not-repeatable",
    "shape-dependent",
    "value-dependent",
    "layout-dependent",
    "nonlinear-backward",
    "ignored-grad-output",
    "frozen-input",
    "unused-output",
    "low-precision",
    "class-state",
    "random-backward",
)
# Both kernels of a Function that squares a vector: the examples are this with one line changed.
SQUARE = """
import torch
import triton
import triton.language as tl


@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    tl.store(y_ptr + i, x * x, mask=mask)


@triton.jit
def square_backward(x_ptr, g_ptr, d_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    g = tl.load(g_ptr + i, mask=mask, other=0.0)
    tl.store(d_ptr + i, 2 * x * g, mask=mask)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        square[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = torch.empty_like(x)
        square_backward[(triton.cdiv(x.numel(), 16),)](x, grad_output.contiguous(), grad, x.numel(), BLOCK=16)
        return grad


gradsmith_inputs = {"Square": lambda: (torch.randn(37, requires_grad=True),)}
"""
# A Function whose programs share one result: each adds its part of a sum.
TOTAL = """
import torch
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(y_ptr, tl.sum(x, 0))


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        y = x.new_zeros(())
        total[(triton.cdiv(x.numel(), 16),)](x.contiguous(), y, x.numel(), BLOCK=16)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.expand(ctx.shape)


gradsmith_inputs = {"Total": lambda: (torch.randn(37, requires_grad=True),)}
"""


def told(lab: Lab, kinds: tuple[str, ...], what: str, advice: str, worst: Severity = "error") -> Iterator[Finding]:
    """Findings about the guard's events of these kinds, each at the kernel's own line.

    What happened only on inputs that gradsmith made out of the example is a warning: they may be none that the author means.
    """
    from dataclasses import replace

    from gradsmith.lab.triton.witness import events
    from gradsmith.source.loaded import line_of

    for event, on_example in events(lab, *kinds):
        shape = f"of shape {event.shape}" if event.shape else "(a tensor with 1 element)"
        where = "" if on_example else " gradsmith made this shape out of the example."
        text = line_of(event.path, event.line)
        yield replace(
            lab.finding(
                f"The kernel '{event.kernel}', launched by {lab.target.name}, {what} '{event.argument}' {shape}: {event.words}.{where}",
                argument=None,
                advice=advice,
                severity=worst if on_example else "warning",
                evidence={
                    "kernel": event.kernel,
                    "pointer": event.argument,
                    "times": event.count,
                    "elsewhere": not on_example,
                    **({"access": _drawn(event)} if event.touched else {}),
                },
            ),
            path=event.path,
            line=event.line,
            column=len(text) - len(text.lstrip()),
            snippet=text.rstrip("\n"),
        )


def _drawn(event: WrongAccess) -> dict[str, Any]:
    """What one program touched, for those who draw it: a tensor that is not all of its storage is drawn as its storage."""
    shape = event.shape if event.whole else (event.elements,)
    touched = [list(run) for run in event.touched]
    return {"shape": list(shape), "elements": event.elements, "touched": touched, "words": event.words}
