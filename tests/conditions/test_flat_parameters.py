"""Adjoint methods pass a module, and its parameters once more as one flat tensor."""

from __future__ import annotations

import torch
from torch import nn

import gradsmith as gs


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, flat, module):
        ctx.module = module
        ctx.save_for_backward(x)
        return module(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        parameters = tuple(ctx.module.parameters())
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            grads = torch.autograd.grad(ctx.module(again), (again, *parameters), grad_output)
        return grads[0], torch.cat([g.reshape(-1) for g in grads[1:]]), None


def test_parameters_that_come_in_a_flat_tensor_are_not_hidden():
    module = nn.Linear(3, 2).double()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    flat = torch.cat([p.reshape(-1) for p in module.parameters()])
    found = {f.rule for f in gs.check(Adjoint, x, flat.detach().requires_grad_(), module).findings}
    assert "hidden-parameter" not in found
    other = {f.rule for f in gs.check(Adjoint, x, torch.zeros_like(flat).requires_grad_(), module).findings}
    assert "hidden-parameter" in other
