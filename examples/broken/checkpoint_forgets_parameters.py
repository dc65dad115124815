# expect: hidden-parameter
"""Gradient checkpointing for a stack of layers."""
import torch
import torch.nn as nn


class CheckpointedSequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layers: nn.Module, x):
        ctx.layers = layers
        ctx.save_for_backward(x)
        return layers(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.layers(x)
        (grad_x,) = torch.autograd.grad(y, x, grad_output)
        return None, grad_x


def layers_and_input():
    layers = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    return layers, torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"CheckpointedSequence": layers_and_input}
