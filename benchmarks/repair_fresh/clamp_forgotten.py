import torch

KIND = "the clamp of forward is not in backward"
WRONG = [(" * (p > 1e-3) * (p < 1 - 1e-3)", "")]


class ClampedBCE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, y):
        q = p.clamp(1e-3, 1 - 1e-3)
        ctx.save_for_backward(p, y)
        return -(y * q.log() + (1 - y) * (1 - q).log()).mean()

    @staticmethod
    def backward(ctx, g):
        p, y = ctx.saved_tensors
        q = p.clamp(1e-3, 1 - 1e-3)
        grad_p = g * (q - y) / (q * (1 - q)) / p.numel() * (p > 1e-3) * (p < 1 - 1e-3)
        return grad_p, None


def _inputs():
    p = torch.tensor([[0.2, 0.9999, 0.4], [0.0002, 0.7, 0.5]], dtype=torch.float64, requires_grad=True)
    return p, torch.tensor([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]], dtype=torch.float64)


gradsmith_inputs = {"ClampedBCE": _inputs}
