# expect: retain-graph
"""Two losses on one encoder."""
import torch


def train_step(x, weight):
    hidden = torch.tanh(x @ weight)
    reconstruction = (hidden @ weight.t() - x).pow(2).mean()
    sparsity = hidden.abs().mean()
    reconstruction.backward()
    sparsity.backward()
    return weight.grad


gradsmith_inputs = {
    "train_step": lambda: (
        torch.randn(4, 3, dtype=torch.float64),
        torch.randn(3, 5, dtype=torch.float64, requires_grad=True),
    )
}
