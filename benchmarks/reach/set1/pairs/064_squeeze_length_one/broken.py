import torch


class AttnPool(torch.autograd.Function):
    """Pool tokens x (B, T, D) with weights softmax(x q), q (D,) -> (B, D)."""

    @staticmethod
    def forward(ctx, x, q):
        p = torch.softmax(x @ q, dim=1)
        ctx.save_for_backward(x, q, p)
        return torch.bmm(p.unsqueeze(1), x).squeeze(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, q, p = ctx.saved_tensors
        gp = torch.bmm(x, g.unsqueeze(2)).squeeze()
        gs = p * (gp - (gp * p).sum(-1, keepdim=True))
        gx = p.unsqueeze(2) * g.unsqueeze(1) + gs.unsqueeze(2) * q
        gq = torch.einsum("bt,btd->d", gs, x)
        return gx, gq


gradsmith_inputs = {
    "AttnPool": lambda: (torch.randn(3, 4, 5, requires_grad=True), torch.randn(5, requires_grad=True))
}
