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


class FlatParameters(torch.autograd.Function):
    """The parameters of `layer` come once more in one flat tensor, which is how their gradient gets out."""

    factor = 1

    @staticmethod
    def forward(ctx, x, layer, flat):
        ctx.layer = layer
        ctx.save_for_backward(x, flat)
        with torch.no_grad():
            return layer(x)

    @classmethod
    def backward(cls, ctx, grad_output):
        x, _ = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            wanted = [p for p in ctx.layer.parameters() if p.requires_grad]
            found = torch.autograd.grad(ctx.layer(x), (x, *wanted), grad_output)
        parts = [g.reshape(-1) for g in found[1:]]
        return found[0], None, cls.factor * torch.cat(parts) if parts else None


class TwiceFlatParameters(FlatParameters):
    factor = 2


def _flat_parameters():
    layer = torch.nn.Linear(4, 2).double()
    return (
        torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
        layer,
        torch.cat([p.reshape(-1) for p in layer.parameters()]),
    )


def test_parameters_in_one_flat_tensor_are_those_of_the_module():
    assert gs.check(FlatParameters, *_flat_parameters()).subjects[0].verdict == "verified"
    report = gs.check(TwiceFlatParameters, *_flat_parameters())
    (finding,) = [f for f in report.findings if f.rule == "wrong-gradient"]
    assert (finding.severity, finding.argument) == ("error", "flat")


class FreezeBlind(FlatParameters):
    @classmethod
    def backward(cls, ctx, grad_output):
        x, _ = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            found = torch.autograd.grad(ctx.layer(x), (x, *ctx.layer.parameters()), grad_output)
        return found[0], None, torch.cat([g.reshape(-1) for g in found[1:]])


def test_a_frozen_module_is_a_warning():
    report = gs.check(FreezeBlind, *_flat_parameters())
    (finding,) = [f for f in report.findings if f.rule == "frozen-input"]
    assert finding.severity == "warning"
    assert "require grad" in finding.advice
    assert report.subjects[0].verdict == "verified"
