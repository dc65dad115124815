"""The patterns of `gradsmith new`: a forward to start from, or a whole file where there is nothing to derive."""

from __future__ import annotations

# Forwards whose backward is derived: (parameters, body, code of the inputs).
FORWARDS: dict[str, tuple[str, str, str]] = {
    "elementwise": ("x", "return x * torch.sigmoid(x)", "torch.randn(3, 4{d}, requires_grad=True),"),
    "matrix": (
        "x, weight",
        "return torch.tanh(x @ weight.mT)",
        "torch.randn(3, 4{d}, requires_grad=True), torch.randn(5, 4{d}, requires_grad=True)",
    ),
    "broadcasting": (
        "x, scale, shift",
        "return x * scale + shift",
        "torch.randn(3, 4{d}, requires_grad=True), torch.randn(4{d}, requires_grad=True), torch.randn(4{d}, requires_grad=True)",
    ),
    "reduction": ("x", "return torch.sqrt((x * x).mean(-1) + 1e-6)", "torch.randn(3, 4{d}, requires_grad=True),"),
    "loss": (
        "prediction, target",
        "gap = prediction - target\n    return torch.log(torch.cosh(gap)).mean()",
        "torch.randn(3, 4{d}, requires_grad=True), torch.randn(3, 4{d})",
    ),
    "module": (
        "x, weight",
        "rstd = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)\n    return x * rstd * weight",
        "torch.randn(3, 4{d}, requires_grad=True), torch.randn(4{d}, requires_grad=True)",
    ),
    "recompute": (
        "x",
        "inner = torch.exp(-x * x)\n    outer = torch.sin(inner) * inner\n    return outer * torch.cos(outer)",
        "torch.randn(3, 4{d}, requires_grad=True),",
    ),
}

SURROGATE = '''import torch


# gradsmith: surrogate[custom]
class {cls}(torch.autograd.Function):
    """A step forward, a smooth slope backward."""

    @staticmethod
    def forward(x):
        return (x > 0).to(x.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs()) ** 2


def {name}(x):
    return {cls}.apply(x)
'''

CUSTOM_OP = """import torch


@torch.library.custom_op("{name}::{name}", mutates_args=())
def {name}(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


@{name}.register_fake
def _(x):
    return torch.empty_like(x)


def _setup_context(ctx, inputs, output):
    (x,) = inputs
    ctx.save_for_backward(x)


def _backward(ctx, grad_output):
    (x,) = ctx.saved_tensors
    s = torch.sigmoid(x)
    return grad_output * (s + x * s * (1 - s))


{name}.register_autograd(_backward, setup_context=_setup_context)
"""

TRITON = '''import torch
import triton
import triton.language as tl


@triton.jit
def _forward_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x.to(tl.float32)), mask=mask)


@triton.jit
def _backward_kernel(grad_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    grad = tl.load(grad_ptr + offsets, mask=mask, other=0.0)
    s = tl.sigmoid(x.to(tl.float32))
    tl.store(out_ptr + offsets, grad * (s + x * s * (1 - s)), mask=mask)


class {cls}(torch.autograd.Function):
    """x * sigmoid(x) in one kernel each way."""

    @staticmethod
    def forward(x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        _forward_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
        return y

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        x, grad_output = x.contiguous(), grad_output.contiguous()
        out = torch.empty_like(x)
        n = x.numel()
        _backward_kernel[(triton.cdiv(n, 1024),)](grad_output, x, out, n, BLOCK=1024)
        return out


def {name}(x):
    return {cls}.apply(x)
'''
WHOLE = {"surrogate": SURROGATE, "custom-op": CUSTOM_OP, "triton": TRITON}
NAMES = (*FORWARDS, *WHOLE)
