"""Per-token expert matmul for a small MoE."""
import torch


class ExpertLinear(torch.autograd.Function):
    """y_i = w[e_i] x_i; x (N, D), w (E, D, O), expert (N,) in [0, E)."""

    @staticmethod
    def forward(ctx, x, w, expert):
        y = x.new_empty(x.shape[0], w.shape[2])
        for e in expert.unique().tolist():
            rows = (expert == e).nonzero().squeeze(1)
            y[rows] = x[rows] @ w[e]
        ctx.save_for_backward(x, w, expert)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, w, expert = ctx.saved_tensors
        gx = torch.empty_like(x)
        gw = torch.zeros_like(w)
        for slot, e in enumerate(expert.unique().tolist()):
            rows = (expert == e).nonzero().squeeze(1)
            gx[rows] = gy[rows] @ w[e].t()
            gw[slot] = x[rows].t() @ gy[rows]
        return gx, gw, None


gradsmith_inputs = {
    "ExpertLinear": lambda: (
        torch.randn(7, 4, requires_grad=True),
        torch.randn(3, 4, 2, requires_grad=True),
        torch.tensor([0, 2, 1, 1, 0, 2, 2]),
    )
}
