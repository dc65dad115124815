import torch
import torch.nn.functional as F


class BinaryFocalLoss(torch.autograd.Function):
    """Focal loss of logits, one value per element: -(1 - p_t)^gamma * log(p_t). target holds 0 and 1."""

    @staticmethod
    def forward(ctx, logits, target, gamma=2.0):
        if logits.shape != target.shape:
            raise ValueError("logits and target must have the same shape")
        if gamma < 1:
            raise ValueError("gamma must be at least 1")
        ctx.save_for_backward(logits, target)
        ctx.gamma = gamma
        z = (2 * target.to(logits.dtype) - 1) * logits
        return -torch.sigmoid(-z) ** gamma * F.logsigmoid(z)

    @staticmethod
    def backward(ctx, grad_out):
        logits, target = ctx.saved_tensors
        gamma = ctx.gamma
        sign = 2 * target.to(logits.dtype) - 1
        z = sign * logits
        pt, qt = torch.sigmoid(z), torch.sigmoid(-z)
        dz = gamma * pt * qt.square() * F.logsigmoid(z) - qt ** (gamma + 1)
        return grad_out * sign * dz, None, None


def example():
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(6, generator=g, dtype=torch.float64, requires_grad=True)
    return logits, torch.tensor([0, 1, 1, 0, 1, 0]), 2.0


gradsmith_inputs = {"BinaryFocalLoss": example}
