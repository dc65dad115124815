import torch
from torch.autograd import Function


class Sparsemax(Function):
    @staticmethod
    def forward(ctx, z, dim=-1):
        zt = z.movedim(dim, -1)
        if zt.shape[-1] == 0:
            raise ValueError("nothing to normalise")
        s, _ = torch.sort(zt, -1, descending=True)
        c = s.cumsum(-1) - 1
        r = torch.arange(1, zt.shape[-1] + 1, dtype=z.dtype)
        size = (r * s > c).sum(-1, keepdim=True)
        tau = c.gather(-1, size - 1) / size
        out = torch.relu(zt - tau).movedim(-1, dim)
        ctx.dim = dim
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        on = out > 0
        g = torch.where(on, g, torch.zeros_like(g))
        return torch.where(on, g - g.sum(ctx.dim, keepdim=True) / on.sum(ctx.dim, keepdim=True), g), None


gradsmith_inputs = {
    "Sparsemax": lambda: (torch.tensor([[1.2, 0.1, 0.9], [3.0, -1.0, 0.5]], dtype=torch.float64, requires_grad=True),)
}
