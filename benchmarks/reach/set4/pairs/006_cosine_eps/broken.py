import torch


class CosineSimilarity(torch.autograd.Function):
    """Cosine of the angle between rows; norms below eps count as eps."""

    @staticmethod
    def forward(ctx, a, b, eps=1e-2):
        na, nb = a.norm(dim=-1, keepdim=True), b.norm(dim=-1, keepdim=True)
        ca, cb = na.clamp(min=eps), nb.clamp(min=eps)
        ctx.save_for_backward(a, b, na, nb)
        ctx.eps = eps
        return (a * b).sum(-1) / (ca * cb).squeeze(-1)

    @staticmethod
    def backward(ctx, grad):
        a, b, na, nb = ctx.saved_tensors
        ca, cb = na.clamp(min=ctx.eps), nb.clamp(min=ctx.eps)
        cos = (a * b).sum(-1, keepdim=True) / (ca * cb)
        g = grad.unsqueeze(-1)
        ga = b / (ca * cb) - cos * a / ca**2
        gb = a / (ca * cb) - cos * b / cb**2
        return g * ga, g * gb, None


gradsmith_inputs = {"CosineSimilarity": lambda: (torch.randn(4, 5, requires_grad=True), torch.randn(4, 5, requires_grad=True),)}
