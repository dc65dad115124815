import torch


class KLToPrior(torch.autograd.Function):
    """sum p log(p / prior) for prior (D,) and rows p (..., D) on the simplex (sum 1 within 1e-2, entries > 0)."""

    @staticmethod
    def forward(ctx, p, prior):
        assert torch.allclose(p.sum(-1), torch.ones_like(p.sum(-1)), atol=1e-2), "p is not normalised"
        assert (p > 0).all() and (prior > 0).all()
        ctx.save_for_backward(p, prior)
        return (p * (p / prior).log()).sum(-1)

    @staticmethod
    def backward(ctx, g):
        p, prior = ctx.saved_tensors
        g = g.unsqueeze(-1)
        gp = g * ((p / prior).log() + 1)
        gprior = (-g * p / prior).reshape(-1, prior.shape[-1]).sum(0)
        return gp, gprior


def _inputs():
    p = torch.randn(4, 5, dtype=torch.float64).softmax(-1)
    prior = torch.full((5,), 0.2, dtype=torch.float64)
    return p.requires_grad_(), prior.requires_grad_()


gradsmith_inputs = {"KLToPrior": _inputs}
