# expect: dropped-hook
import torch
import torch.nn as nn


class WatchedLinear(nn.Module):
    """Logs the norm of its weight gradient."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norms = []

    def forward(self, x):
        self.linear.weight.register_hook(lambda grad: self.norms.append(grad.norm().item()))
        return self.linear(x)


layer = WatchedLinear(3, 5).double()

gradsmith_inputs = {"layer": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
