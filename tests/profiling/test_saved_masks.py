"""A mask is a tensor of zeros and ones, of both."""

from __future__ import annotations

import pytest
import torch

import gradsmith as gs


class Decay(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        slope = -torch.exp(-x)
        ctx.save_for_backward(slope)
        return torch.exp(-x)

    @staticmethod
    def backward(ctx, grad_output):
        (slope,) = ctx.saved_tensors
        return grad_output * slope


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        gate = (x > 200).to(x.dtype)
        ctx.save_for_backward(gate)
        return x * gate

    @staticmethod
    def backward(ctx, grad_output):
        (gate,) = ctx.saved_tensors
        return grad_output * gate


@pytest.mark.parametrize(("function", "expected"), [(Decay, False), (Gate, True)])
def test_what_has_become_zero_everywhere_is_no_mask(function, expected):
    x = torch.linspace(150, 250, 256 * 64).reshape(256, 64).requires_grad_()
    found = [f.rule for f in gs.profile(function, x).findings]
    assert ("oversaved" in found) is expected
