# expect: inplace-hook
import torch


def residual(x, weight):
    """A residual block; the gradient into the branch is clipped."""
    branch = torch.tanh(x * weight)
    branch.register_hook(lambda grad: grad.clamp_(-0.1, 0.1))
    return x + branch


gradsmith_inputs = {
    "residual": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, dtype=torch.float64, requires_grad=True),
    )
}
