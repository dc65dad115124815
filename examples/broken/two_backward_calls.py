# expect: retain-graph
"""Gradient statistics before the real step."""
import torch


def train_step(x, weight):
    loss = torch.tanh(x @ weight).square().mean()
    loss.backward()
    norm = weight.grad.norm().clone()
    weight.grad = None
    loss.backward()
    return weight.grad / norm


gradsmith_inputs = {
    "train_step": lambda: (
        torch.randn(4, 3, dtype=torch.float64),
        torch.randn(3, 5, dtype=torch.float64, requires_grad=True),
    )
}
